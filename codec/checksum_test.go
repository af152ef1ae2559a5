package codec

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

func sealed(t testing.TB) []byte {
	t.Helper()
	m := example(ChecksumTrailerSize)
	rec := encode(t, &m)
	SealRecord(rec)
	return rec
}

func TestSealWorkedExample(t *testing.T) {
	rec := sealed(t)
	if len(rec) != 135 || string(rec[115:]) != "__CRC32#\x016648392590\x02" {
		t.Fatalf("%d bytes, trailer %q", len(rec), rec[115:])
	}
	if rec[95] != 0 || rec[96] != 0x26 {
		t.Errorf("properties length %x, want 0026", rec[95:97])
	}
	if state := CheckRecord(rec); state != ChecksumValid {
		t.Errorf("CheckRecord = %v", state)
	}
	var v MessageView
	if err := v.Parse(rec); err != nil || v.Checksum() != ChecksumValid {
		t.Errorf("%v, %v", err, v.Checksum())
	}
}

// TestSealedRecordHoldsEveryBit flips each bit of a sealed record, and each
// bit of each byte pair's worth of its trailer, and expects that none passes.
func TestSealedRecordHoldsEveryBit(t *testing.T) {
	big := benchMessage()
	big.PropertiesReserve = ChecksumTrailerSize
	long := encode(t, big)
	SealRecord(long)
	v2 := sampleMessageV2Ipv6()
	v6 := encode(t, &v2)
	SealRecord(v6)
	for _, rec := range [][]byte{sealed(t), long, v6} {
		if CheckRecord(rec) != ChecksumValid {
			t.Fatal("the record is not valid to begin with")
		}
		for bit := range 8 * len(rec) {
			rec[bit/8] ^= 1 << (bit % 8)
			if CheckRecord(rec) == ChecksumValid {
				t.Errorf("%d bytes: valid with bit %d of byte %d flipped", len(rec), bit%8, bit/8)
			}
			rec[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// TestTrailerDigits compares the digits with a slow way to write them.
func TestTrailerDigits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	sums := []uint32{0, 1, 9, 10, 99, 100, 9999, 10000, 99999999, 100000000, 0x7fffffff, 0x80000000, 0xffffffff}
	for range 1000 {
		sums = append(sums, rng.Uint32()>>(rng.Uint32()%32))
	}
	for _, sum := range sums {
		digits := []byte(fmt.Sprintf("%010d", sum&0x7fffffff))
		for i := range 5 {
			digits[i], digits[9-i] = digits[9-i], digits[i]
		}
		got := digitsOf(sum & 0x7fffffff)
		if string(got[:]) != string(digits) {
			t.Errorf("the digits of %d are %q, want %q", sum, got, digits)
		}
	}
}

func TestCheckRecordStates(t *testing.T) {
	trailer := "__CRC32#\x016648392590\x02"
	for _, c := range []struct {
		name, props string
		want        ChecksumState
	}{
		{"none", "KEYS\x01k1\x02", ChecksumAbsent},
		{"no properties", "", ChecksumAbsent},
		{"wrong value", "KEYS\x01k1\x02" + trailer, ChecksumInvalid},
		{"only one", trailer, ChecksumInvalid},
		{"nine digits", "KEYS\x01k1\x02__CRC32#\x01123456789\x02", ChecksumInvalid},
		{"no end", "KEYS\x01k1\x02__CRC32#\x016648392590", ChecksumInvalid},
		{"letters", "KEYS\x01k1\x02__CRC32#\x01664839259x\x02", ChecksumInvalid},
		{"first", trailer + "KEYS\x01k1\x02", ChecksumNotLast},
		{"before a fragment", trailer + "x", ChecksumNotLast},
		{"twice", trailer + trailer, ChecksumInvalid},
		{"in a value", "KEYS\x01__CRC32#\x02", ChecksumAbsent},
		{"longer name", "x__CRC32#\x016648392590\x02", ChecksumInvalid},
		{"empty value", "__CRC32#\x01\x02", ChecksumAbsent},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := example(0)
			m.Properties = []byte(c.props)
			if got := CheckRecord(encode(t, &m)); got != c.want {
				t.Errorf("CheckRecord = %v, want %v", got, c.want)
			}
		})
	}
	for _, b := range [][]byte{nil, make([]byte, 19), make([]byte, 20), make([]byte, 500)} {
		if got := CheckRecord(b); got != ChecksumAbsent {
			t.Errorf("CheckRecord of %d zeros = %v", len(b), got)
		}
	}
}

func FuzzCheckRecord(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(readGolden(f, "message_v1"))
	rec := sealed(f)
	f.Add(rec)
	f.Fuzz(func(t *testing.T, b []byte) {
		state := CheckRecord(b)
		if state == ChecksumValid {
			want := bytes.Clone(b)
			SealRecord(want)
			if !bytes.Equal(b, want) {
				t.Fatalf("valid, but sealing it again changes it: %x", b)
			}
		}
		var v MessageView
		if v.Parse(b) == nil && state == ChecksumValid && len(v.Bytes()) == len(b) &&
			len(v.Properties()) < ChecksumTrailerSize {
			t.Fatalf("a trailer that reaches over the properties: %x", b)
		}
	})
}

func TestTrailerCoversEverythingBefore(t *testing.T) {
	rec := sealed(t)
	if sum := crc32.ChecksumIEEE(rec[:115]) & 0x7fffffff; sum != 952938466 {
		t.Errorf("sum %d, want 952938466", sum)
	}
}
