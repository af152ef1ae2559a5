package cq

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

const extRoot = "/store/consumequeue_ext"

// TestExtGoldenBytes compares an extension file with bytes written down by hand:
// two units fit into 50 bytes with 4 to spare, and the third goes on in the next.
func TestExtGoldenBytes(t *testing.T) {
	sim := newSim(t)
	s := mustOpen(t, sim, Options{FileSize: 100, ExtWrite: true, ExtFileSize: 50})
	es := []entry{{topic: "T", at: 0, tag: "TagA"}, {topic: "T", at: 1, phy: 2000, tag: "TagA"}, {topic: "T", at: 2, phy: 3001}}
	mustApply(t, s, es...)
	must(t, s.Flush())
	unit := "0014" + "000000000027a807" + "0000000000000001" + "0000"
	want, err := hex.DecodeString(unit + unit + "ffff" + "0000000000000000")
	must(t, err)
	if got := readAll(t, sim, extRoot+"/T/0/00000000000000000000"); !bytes.Equal(got, want) {
		t.Errorf("got\n%x\nwant\n%x", got, want)
	}
	want, err = hex.DecodeString("0014" + "0000000000000000" + "0000000000000002" + "0000")
	must(t, err)
	if got := readAll(t, sim, extRoot+"/T/0/00000000000000000050"); !bytes.Equal(got[:20], want) {
		t.Errorf("got\n%x\nwant\n%x", got, want)
	}
	units := make([]codec.QueueUnit, 3)
	n, err := s.Units("T", 0, 0, units)
	if n != 3 || err != nil {
		t.Fatal(n, err)
	}
	for i, want := range []uint64{0x8000000000000000, 0x8000000000000014, 0x8000000000000032} {
		if uint64(units[i].TagsCode) != want {
			t.Errorf("unit %d has address %x, want %x", i, units[i].TagsCode, want)
		}
	}
}

// TestExtAddresses: hashes are no addresses.
func TestExtAddresses(t *testing.T) {
	for code, want := range map[int64]bool{0: false, -1 << 31: false, -1<<31 - 1: true, -1 << 63: true, 1<<63 - 1: false} {
		if IsExtAddress(code) != want {
			t.Errorf("%d", code)
		}
	}
}

// TestExtKept: a unit that is applied again keeps the extension that it has, with
// the bits that a broker put there, with and without ExtWrite.
func TestExtKept(t *testing.T) {
	for _, write := range []bool{false, true} {
		sim := newSim(t)
		opts := Options{FileSize: 100, ExtWrite: true, ExtFileSize: 200}
		s := mustOpen(t, sim, opts)
		es := []entry{{topic: "T", at: 0, tag: "a"}, {topic: "T", at: 1, phy: 500, tag: "b"}}
		mustApply(t, s, es...)
		must(t, s.Flush())
		before := readAll(t, sim, testRoot+"/T/0/00000000000000000000")
		// The bits of a filter, and another address for the last unit.
		filter := codec.QueueExtUnit{TagsCode: es[1].unit().TagsCode, StoreTime: 1, Filter: []byte{0xAA, 0x55}}
		b, err := filter.Append(nil)
		must(t, err)
		overwrite(t, sim, extRoot+"/T/0/00000000000000000000", 40, b)
		before[20+12+7] = 40
		overwrite(t, sim, testRoot+"/T/0/00000000000000000000", 0, before[:40])

		opts.ExtWrite = write
		s = mustOpen(t, sim, opts)
		mustApply(t, s, es...)
		mustApply(t, s, entry{topic: "T", at: 2, phy: 900, tag: "c"})
		must(t, s.Flush())
		units := make([]codec.QueueUnit, 3)
		_, err = s.Units("T", 0, 0, units)
		must(t, err)
		got, err := s.ExtUnit("T", 0, units[1].TagsCode)
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", filter) {
			t.Errorf("write %v: the extension is %+v, %v", write, got, err)
		}
		if IsExtAddress(units[2].TagsCode) != write {
			t.Errorf("write %v: a new unit's tags code is %d", write, units[2].TagsCode)
		}
	}
}

// TestExtMissing: an address that leads nowhere is damage, and names the file.
func TestExtMissing(t *testing.T) {
	sim := newSim(t)
	s := mustOpen(t, sim, Options{FileSize: 100, ExtWrite: true, ExtFileSize: 50})
	mustApply(t, s, entry{topic: "T", at: 0, tag: "a"})
	for _, code := range []int64{-1<<63 + 20, -1<<63 + 49, -1<<63 + 50, -1<<63 + 1, -1<<31 - 1} {
		_, err := s.ExtUnit("T", 0, code)
		var c *contract.CorruptionError
		if !errors.As(err, &c) || c.File == "" {
			t.Errorf("%x: %v", code, err)
		}
	}
}

// TestExtExpires: extension files go with the queue files whose units led to them.
func TestExtExpires(t *testing.T) {
	sim := newSim(t)
	s := mustOpen(t, sim, Options{FileSize: 100, ExtWrite: true, ExtFileSize: 50})
	for i := range int64(40) {
		mustApply(t, s, entry{topic: "T", at: i, phy: i * 1000})
	}
	must(t, s.Flush())
	if _, err := s.DeleteExpired(21_000); err != nil {
		t.Fatal(err)
	}
	list, err := sim.ReadDir(extRoot + "/T/0")
	must(t, err)
	if len(list) != 10 || list[0].Name != fileName(500) {
		t.Errorf("%d files, the first is %v", len(list), list[0])
	}
	must(t, s.DropAll())
	if list, err := sim.ReadDir(extRoot); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}
