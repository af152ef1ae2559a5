package commitlog

import (
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// A body may hold what looks like a record that ends where its own does. Where no
// checksum covers the whole of a record, the one that begins first is the record.
func TestRecordWithinABody(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		opt := smallOptions(vfs.OS(), t.TempDir())
		opt.NoRecordChecksum = !sealed
		r := openRig(t, opt)
		probe := mustAppend(t, r.log, message("T", 0), contract.DurabilitySync)
		at, _ := probe.Range()

		props := []byte("KEYS\x01k\x02")
		rest := 1 + len("T") + 2 + len(props) // of the outer record, behind its body
		if sealed {
			rest += codec.ChecksumTrailerSize
		}
		inner := codec.Message{Magic: codec.MessageMagicV1, PhysicalOffset: int64(at.End) + codec.MessageMinSize - int64(1+2), StoreTimestamp: 1 << 60,
			BornHost: make([]byte, 8), StoreHost: make([]byte, 8), Topic: []byte("T"), Properties: make([]byte, rest)}
		b, err := inner.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		forged := b[:len(b)-rest] // the rest of it is the outer record's
		got := mustAppend(t, r.log, &contract.Message{Topic: "T", Body: forged, Properties: props}, contract.DurabilitySync)
		place, _ := got.Range()
		seg := r.log.segs.Load().find(int64(place.Start))
		found := 0
		for i := range place.Len() {
			var v codec.MessageView
			off := int64(place.Start) + int64(i)
			if kind, size, _ := examine(&v, seg.file.Bytes()[off-seg.base:], off, sealed); kind == placeRecord && off+int64(size) == int64(place.End) {
				found++
			}
		}
		if want := 2; !sealed && found != want {
			t.Fatalf("%d records end there: the test shows nothing", found)
		}
		if when, ok := r.log.lastRecordTime(seg, int64(place.End)); !ok || when != got.StoreTime() {
			t.Errorf("sealed %v: the last record is of %d, %v, want %d", sealed, when, ok, got.StoreTime())
		}
		r.close(true)
	}
}
