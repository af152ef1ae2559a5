package codec

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestSealIsSealRecord seals records of many lengths in both ways.
func TestSealIsSealRecord(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	lengths := []int{0, 1, 255, 256, 257, 65535, 65536, 70000, 1 << 20, 1<<24 + 5}
	for range 300 {
		lengths = append(lengths, rng.IntN(3000))
	}
	var s Seal
	for i, n := range lengths {
		m := example(ChecksumTrailerSize)
		m.Body = make([]byte, n)
		for j := 0; j < n; j += 7 {
			m.Body[j] = byte(rng.Uint32())
		}
		if i%2 == 1 {
			m.SysFlag, m.BornHost = SysFlagBornHostV6, make([]byte, HostV6Size)
		}
		rec := encode(t, &m)
		s.Prepare(rec)
		PatchMessageQueueOffset(rec, rng.Int64())
		PatchMessagePhysicalOffset(rec, rng.Int64())
		PatchMessageStoreTimestamp(rec, rng.Int64())
		want := bytes.Clone(rec)
		SealRecord(want)
		s.Finish(rec)
		if !bytes.Equal(rec, want) {
			t.Fatalf("body of %d bytes: trailer %q, want %q", n, rec[len(rec)-20:], want[len(want)-20:])
		}
	}
	m := example(ChecksumTrailerSize)
	rec := encode(t, &m)
	requireNoAllocs(t, func() {
		s.Prepare(rec)
		s.Finish(rec)
	})
}

func BenchmarkSeal(b *testing.B) {
	m := benchMessage()
	m.PropertiesReserve = ChecksumTrailerSize
	rec := encode(b, m)
	var s Seal
	b.Run("prepare", func(b *testing.B) {
		for b.Loop() {
			s.Prepare(rec)
		}
	})
	b.Run("finish", func(b *testing.B) {
		for b.Loop() {
			s.Finish(rec)
		}
	})
}
