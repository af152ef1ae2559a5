package index

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// keyed is an encoded record with a unique key of 24 digits, whose digits setKey
// changes in place.
func keyed(b *testing.B) ([]byte, int) {
	b.Helper()
	r := record{topic: "Topic", unique: "000000000000000000000000", time: 1_700_000_000_000}
	raw := r.encode(b)
	for i := range raw {
		if string(raw[i:i+24]) == r.unique {
			return raw, i
		}
	}
	b.Fatal("no key")
	return nil, 0
}

func setKey(raw []byte, at int, n uint64) {
	for i := range 16 {
		raw[at+i] = "0123456789ABCDEF"[n>>(4*i)&15]
	}
}

// mix spreads a counter over all keys.
func mix(i int) uint64 { return uint64(i) * 0x9E3779B97F4A7C15 }

// BenchmarkPut puts one key a record into files of the usual size, with keys at
// random, in batches of 5000 records, on the real file system. With flush it
// makes all durable each 200,000 records.
func BenchmarkPut(b *testing.B) {
	for _, every := range []int{0, 200_000} {
		b.Run(fmt.Sprintf("flush=%d", every), func(b *testing.B) {
			s, err := Open(vfs.OS(), b.TempDir()+"/index", Options{})
			must(b, err)
			raw, at := keyed(b)
			var v codec.MessageView
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				setKey(raw, at, mix(i))
				if err := v.Parse(raw); err != nil {
					b.Fatal(err)
				}
				if err := s.Apply(contract.RecordID{Epoch: 1, Offset: contract.Offset(i) * 200, Length: 200}, &v); err != nil {
					b.Fatal(err)
				}
				if i%5000 == 4999 {
					must(b, s.Commit())
				}
				if every > 0 && i%every == every-1 {
					must(b, s.Flush())
				}
			}
			must(b, s.Commit())
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			b.StopTimer()
			must(b, s.Close())
		})
	}
}

// BenchmarkSearch asks for one key of ten million, warm: of the file that is
// written, and of one that was opened.
func BenchmarkSearch(b *testing.B) {
	const keys = 10_000_000
	dir := b.TempDir() + "/index"
	s, err := Open(vfs.OS(), dir, Options{})
	must(b, err)
	raw, at := keyed(b)
	var v codec.MessageView
	for i := range keys {
		setKey(raw, at, mix(i))
		must(b, v.Parse(raw))
		must(b, s.Apply(contract.RecordID{Offset: contract.Offset(i) * 200, Length: 200}, &v))
		if i%5000 == 4999 {
			must(b, s.Commit())
		}
	}
	must(b, s.Flush())
	r, err := Open(vfs.OS(), dir, Options{ReadOnly: true})
	must(b, err)
	for _, c := range []struct {
		name string
		s    *Store
	}{{"active", s}, {"reader", r}} {
		b.Run(c.name, func(b *testing.B) {
			names := make([]string, 4096)
			rng := rand.New(rand.NewPCG(1, 1))
			for i := range names {
				setKey(raw, at, mix(rng.IntN(keys)))
				names[i] = string(raw[at : at+24])
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				found := counter{}
				_, done, err := c.s.Search(context.Background(), Query{Topic: "Topic", Key: names[i%len(names)]}, Position{}, &found)
				if err != nil || !done || found.n < 1 {
					b.Fatal(done, err, found.n)
				}
			}
		})
	}
	must(b, s.Close())
	must(b, r.Close())
}
