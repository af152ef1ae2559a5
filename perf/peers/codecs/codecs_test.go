package codecs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stratalog/stratalog/codec"
)

// encoder returns the way to encode of that name.
func encoder(t testing.TB, name string) Encoder {
	t.Helper()
	for _, e := range Encoders() {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("no encoder is called %q", name)
	return Encoder{}
}

// TestAgree encodes random records and decodes them by every way.
func TestAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	rs := Batch(128)
	for range 2000 {
		rs = append(rs, Any(rng))
	}
	for _, d := range Decoders() {
		t.Run(d.Name, func(t *testing.T) {
			encoded, err := encodings(encoder(t, d.From), rs)
			if err != nil {
				t.Fatal(err)
			}
			sum := d.Prepare(encoded)
			want := uint64(0)
			for i := range rs {
				got, err := d.Record(encoded[i])
				if err != nil {
					t.Fatalf("record %d: %v", i, err)
				}
				if !got.Equal(&rs[i]) {
					t.Fatalf("record %d\ngot  %+v\nwant %+v", i, got, rs[i])
				}
				want += rs[i].Sum()
			}
			// Twice, since what is used again must not remember.
			for range 2 {
				if got, err := sum(); err != nil || got != want {
					t.Errorf("sum %d, error %v; want %d", got, err, want)
				}
			}
		})
	}
}

// TestEncodersAgree compares the ways that write the same bytes.
func TestEncodersAgree(t *testing.T) {
	rs := Batch(1024)
	sized, err := encodings(encoder(t, "vtprotobuf, sized"), rs)
	if err != nil {
		t.Fatal(err)
	}
	end, err := encodings(encoder(t, "vtprotobuf, to the end of a larger buffer"), rs)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(sized, end) {
		t.Error("the message at the end of a larger buffer is another one")
	}
}

// TestSameLayout holds our record to the one of the log: it is what package
// codec reads, less the checksum.
func TestSameLayout(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		r := Any(rng)
		m := codec.Message{
			Magic: r.Magic, QueueID: r.QueueID, Flag: r.Flag, QueueOffset: r.QueueOffset, PhysicalOffset: r.PhysicalOffset,
			SysFlag: codec.SysFlag(r.SysFlag), BornTimestamp: r.BornTimestamp, BornHost: r.BornHost, StoreTimestamp: r.StoreTimestamp,
			StoreHost: r.StoreHost, ReconsumeTimes: r.ReconsumeTimes, PreparedTransactionOffset: r.PreparedTransactionOffset,
			Body: r.Body, Topic: r.Topic, Properties: r.Properties,
		}
		want, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := encodings(Encoders()[0], []Record{r})
		if err != nil {
			t.Fatal(err)
		}
		// The size differs by the checksum's four bytes, and the checksum is out.
		if len(want) != len(got[0])+4 || !bytes.Equal(want[4:8], got[0][4:8]) || !bytes.Equal(want[12:], got[0][8:]) {
			t.Fatalf("%x\n%x", want, got[0])
		}
	}
}

// TestEveryFieldCounts changes one field after the other: the sum and Equal must
// notice, so no way may leave a field unread, and none unequal.
func TestEveryFieldCounts(t *testing.T) {
	whole := Batch(128)[0]
	fields := reflect.TypeFor[Record]()
	for i := range fields.NumField() {
		other := whole
		switch f := reflect.ValueOf(&other).Elem().Field(i); f.Kind() {
		case reflect.Uint32:
			f.SetUint(f.Uint() + 1)
		case reflect.Int32, reflect.Int64:
			f.SetInt(f.Int() + 1)
		default:
			f.SetBytes(append([]byte{f.Bytes()[0] ^ 1}, f.Bytes()[1:]...))
		}
		if other.Sum() == whole.Sum() {
			t.Errorf("%s is not in the sum", fields.Field(i).Name)
		}
		if other.Equal(&whole) {
			t.Errorf("%s is not compared", fields.Field(i).Name)
		}
	}
}

// TestMeasure runs every way a few times: each has its time, and ours is the
// measure of the ratios.
func TestMeasure(t *testing.T) {
	result, err := Measure(64, 3, 10*time.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Encode) != len(Encoders()) || len(result.Decode) != len(Decoders()) || result.Body != 64 {
		t.Fatalf("%+v", result)
	}
	for _, rows := range [][]Row{result.Encode, result.Decode} {
		for i, r := range rows {
			if r.Nanos <= 0 || r.Times <= 0 || r.Quarter > r.Times || r.ThreeQuarters < r.Times || r.Bytes < 64 {
				t.Errorf("%+v", r)
			}
			if i == 0 && r.Times != 1 {
				t.Errorf("ours takes %v times as long as ours", r.Times)
			}
		}
	}
}

// TestNothingIsAllocated holds every way to the promise that it uses its memory
// again.
func TestNothingIsAllocated(t *testing.T) {
	rs := Batch(1024)
	for _, e := range Encoders() {
		run := e.Prepare(rs)
		if n := testing.AllocsPerRun(100, func() { _, _ = run() }); n != 0 {
			t.Errorf("%s: %v allocations to encode", e.Name, n)
		}
	}
	for _, d := range Decoders() {
		encoded, err := encodings(encoder(t, d.From), rs)
		if err != nil {
			t.Fatal(err)
		}
		run := d.Prepare(encoded)
		// A collection empties the pool, so a pool may allocate now and then.
		if n := testing.AllocsPerRun(100, func() { _, _ = run() }); n >= 1 {
			t.Errorf("%s: %v allocations to decode", d.Name, n)
		}
	}
}

// TestCutOff gives decoders that check what they read every beginning of a
// record: they refuse it and do not panic.
func TestCutOff(t *testing.T) {
	rs := Batch(128)[:1]
	for _, d := range Decoders() {
		if d.Checks == unchecked {
			continue
		}
		encoded, err := encodings(encoder(t, d.From), rs)
		if err != nil {
			t.Fatal(err)
		}
		for n := range encoded[0] {
			got, err := d.Record(encoded[0][:n:n])
			// A message of vtprotobuf may end behind any of its fields.
			if err == nil && got.Equal(&rs[0]) {
				t.Errorf("%s: whole after %d of %d bytes", d.Name, n, len(encoded[0]))
			}
			if err == nil && d.From == Encoders()[0].Name {
				t.Errorf("%s: no error after %d of %d bytes", d.Name, n, len(encoded[0]))
			}
		}
	}
}

// TestGenerated generates all code again and compares it.
func TestGenerated(t *testing.T) {
	if _, err := exec.LookPath("flatc"); err != nil {
		t.Skip("flatc is missing; the Debian package flatbuffers-compiler has it")
	}
	out := t.TempDir()
	if said, err := exec.Command("go", "run", "./generate", "-out", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	files := 0
	err := filepath.WalkDir(out, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(out, path)
		if err != nil {
			return err
		}
		files++
		want, err1 := os.ReadFile(path)
		got, err2 := os.ReadFile(name)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what its generator writes: run go generate ./codecs", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files != 11 {
		t.Errorf("%d files were generated, not 11", files)
	}
}

func BenchmarkCodecs(b *testing.B) {
	for _, body := range []int{128, 1024} {
		rs := Batch(body)
		for _, e := range Encoders() {
			b.Run(fmt.Sprintf("encode/%d/%s", body, e.Name), func(b *testing.B) {
				run := e.Prepare(rs)
				b.ReportAllocs()
				for i := 0; i < b.N; i += len(rs) {
					if _, err := run(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		for _, d := range Decoders() {
			b.Run(fmt.Sprintf("decode/%d/%s", body, d.Name), func(b *testing.B) {
				encoded, err := encodings(encoder(b, d.From), rs)
				if err != nil {
					b.Fatal(err)
				}
				run := d.Prepare(encoded)
				b.ReportAllocs()
				b.ResetTimer()
				for i := 0; i < b.N; i += len(rs) {
					s, err := run()
					if err != nil {
						b.Fatal(err)
					}
					sink += s
				}
			})
		}
	}
}

// sink keeps sums alive.
var sink uint64
