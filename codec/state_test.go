package codec

import (
	"bytes"
	"errors"
	"hash/crc32"
	"reflect"
	"testing"
)

func sampleState() State {
	return State{
		Incompatible: 1, Compatible: 2, Sequence: 3, LogID: [16]byte{1, 15: 2}, SegmentSize: 1 << 30,
		CreatedAt: 1700000000000, Clean: true, FirstSegment: 1 << 30, End: 1<<30 + 115, EndCRC: 0xDEADBEEF,
		Epochs:  []EpochEntry{{1, 0}, {2, 500}},
		Ranges:  []RangeEntry{{0, 500}, {700, 1<<30 + 115}},
		Cursors: []CursorEntry{{1, 2, 600, 9}, {2, 2, 500, -1}, {6, 1, 0, 0}},
	}
}

func stateBytes(t testing.TB, s State) []byte {
	t.Helper()
	b, err := AppendState([]byte("front"), &s)
	if err != nil || string(b[:5]) != "front" || len(b)-5 != s.Size() {
		t.Fatalf("AppendState: %v, %d bytes", err, len(b))
	}
	return b[5:]
}

func TestStateRoundTrip(t *testing.T) {
	want := sampleState()
	b := stateBytes(t, want)
	var got State
	if err := ParseState(append(bytes.Clone(b), 1, 2, 3), &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	requireNoAllocs(t, func() {
		if err := ParseState(b, &got); err != nil {
			t.Fatal(err)
		}
	})
	if err := ParseState(stateBytes(t, State{}), &got); err != nil || len(got.Epochs)+len(got.Ranges)+len(got.Cursors) != 0 {
		t.Errorf("an empty state: %v, %+v", err, got)
	}
}

func TestStateRefuses(t *testing.T) {
	b := stateBytes(t, sampleState())
	var s State
	for n := range b {
		if err := ParseState(b[:n:n], &s); err == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(b))
		}
	}
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		if err := ParseState(b, &s); err == nil {
			t.Errorf("bit %d of byte %d may flip", bit%8, bit/8)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	if err := ParseState(make([]byte, 4096), &s); err == nil {
		t.Error("zeros are a state")
	}
	bad := sampleState()
	bad.Cursors[2].Next = -1
	if _, err := AppendState(nil, &bad); err == nil {
		t.Error("a negative cursor is accepted")
	}
	bad = sampleState()
	bad.End = -1
	if _, err := AppendState(nil, &bad); err == nil {
		t.Error("a negative end is accepted")
	}
}

// TestNewerVersion: a record of a later version is not damage.
func TestNewerVersion(t *testing.T) {
	b := stateBytes(t, sampleState())
	b[5] = 2
	putBE(b[len(b)-4:], uint64(crc32.Checksum(b[:len(b)-4], castagnoli)))
	if err := ParseState(b, new(State)); !errors.Is(err, ErrNewerVersion) {
		t.Errorf("ParseState = %v", err)
	}
	bound := readGolden(t, "bound")
	bound[5] = 2
	err := new(BoundView).Parse(bound)
	if !errors.Is(err, ErrNewerVersion) ||
		err.Error() != "codec: Bound.Version at byte 4: is 2, this program knows 1" {
		t.Errorf("Parse = %v", err)
	}
	bound[5] = 0
	if err := new(BoundView).Parse(bound); err == nil || errors.Is(err, ErrNewerVersion) {
		t.Errorf("version 0: %v", err)
	}
}

func TestBoundHoldsEveryBit(t *testing.T) {
	b := readGolden(t, "bound")
	var v BoundView
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		if err := v.Parse(b); err == nil {
			t.Errorf("bit %d of byte %d may flip", bit%8, bit/8)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	if err := v.Parse(make([]byte, 4096)); err == nil {
		t.Error("zeros are a bound")
	}
}

func FuzzParseState(f *testing.F) {
	f.Add(make([]byte, 200))
	f.Add(stateBytes(f, sampleState()))
	f.Add(stateBytes(f, State{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		// The checksum would keep the fuzzer out, so it is set right where the
		// lengths allow it.
		const headerSize = StateMinSize - 4
		if len(b) >= StateMinSize {
			n := min(uint(getBE(b[headerSize-4:headerSize])), uint(len(b)-StateMinSize))
			end := headerSize + int(n)
			b = bytes.Clone(b)
			putBE(b[end:end+4], uint64(crc32.Checksum(b[:end], castagnoli)))
		}
		var s State
		if err := ParseState(b, &s); err != nil {
			var e *FieldError
			if !errors.As(err, &e) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		again, err := AppendState(nil, &s)
		if err != nil || !bytes.Equal(again, b[:len(again)]) {
			t.Fatalf("written again: %v\n%x\nread:\n%x", err, again, b)
		}
	})
}
