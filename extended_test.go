package stratalog

import (
	"fmt"
	"math"
	"path"
	"slices"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/cq"
	"github.com/stratalog/stratalog/internal/vfs"
)

// withBits gives the entries of queue t/0 the bit maps of a broker's filters: of
// some that nobody passes, all zero, of some of another length, of some none.
func withBits(t *testing.T, sim *vfs.Sim, opt Options) (bits [][]byte) {
	t.Helper()
	name := queueFile(opt, 0, 0)
	queue := readFile(t, sim, name)
	ext := readFile(t, sim, path.Join(opt.Dir, "consumequeue_ext/t/0", fmt.Sprintf("%020d", 0)))
	var out []byte
	for i := 0; ; i++ {
		var u codec.QueueUnitView
		if err := u.Parse(queue[i*codec.QueueUnitSize:]); err != nil || u.Size() == 0 {
			break
		}
		var e codec.QueueExtUnitView
		if err := e.Parse(ext[u.TagsCode()-math.MinInt64:]); err != nil || len(e.Filter()) > 0 {
			t.Fatalf("entry %d: %v, bits %x", i, err, e.Filter())
		}
		bits = append(bits, [][]byte{make([]byte, 8), {0x80}, {}}[i%3])
		fresh := codec.QueueUnit{PhysicalOffset: u.PhysicalOffset(), Size: u.Size(), TagsCode: math.MinInt64 + int64(len(out))}
		more := codec.QueueExtUnit{TagsCode: e.TagsCode(), StoreTime: e.StoreTime(), Filter: bits[i]}
		var err error
		if out, err = more.Append(out); err == nil {
			_, err = fresh.Encode(queue[i*codec.QueueUnitSize:])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, sim, name, 0, queue, false)
	writeFile(t, sim, path.Join(opt.Dir, "consumequeue_ext/t/0", fmt.Sprintf("%020d", 0)), 0, out, false)
	return bits
}

// bitsOf are the bit maps of queue t/0; nil where an entry has its plain tags code.
func bitsOf(t *testing.T, queues *cq.Store) (bits [][]byte) {
	t.Helper()
	units := make([]codec.QueueUnit, 100)
	n, err := queues.Units("t", 0, 0, units)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range units[:n] {
		if !cq.IsExtAddress(u.TagsCode) {
			bits = append(bits, nil)
			continue
		}
		e, err := queues.ExtUnit("t", 0, u.TagsCode)
		if err != nil {
			t.Fatal(err)
		}
		bits = append(bits, append([]byte{}, e.Filter...))
	}
	return bits
}

// TestExtendedBitMaps: a bit map says whose filter a message passed when it came.
// It stays while its entry does. A rebuild knows of no filters: its entries have
// none, which stands for "may match", so that nobody misses a message. What we read
// asks the message itself, whatever the bits say.
func TestExtendedBitMaps(t *testing.T) {
	sim := vfs.NewSim()
	opt := testOptions(sim, "/store")
	opt.ExtendedQueues, opt.ExtendedFileSize = true, 4096
	s := start(t, opt)
	const n = 30
	want := map[string][]int64{}
	for i := range n {
		tag := fmt.Sprint("g", i%4)
		want[tag], want[""] = append(want[tag], int64(i)), append(want[""], int64(i))
		mustAppend(t, s, &Message{Topic: "t", Body: body(i), Properties: tags(tag)}, Sync)
	}
	closeClean(t, s)
	bits := withBits(t, sim, opt)
	finds := func(what string, s reading) {
		t.Helper()
		for tag, numbers := range want {
			all, _, err := follow(s, Request{Topic: "t", Tag: tag})
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, r := range all {
				got = append(got, r.at)
			}
			if !slices.Equal(got, numbers) {
				t.Errorf("%s: tag %q finds %v, want %v", what, tag, got, numbers)
			}
		}
	}
	same := func(a, b [][]byte) bool { return slices.EqualFunc(a, b, slices.Equal[[]byte]) }
	verifyClean(t, opt)
	r := openReading(t, opt, ReaderOptions{})
	finds("a reader", r)
	if got := bitsOf(t, r.queues); len(bits) != n || !same(got, bits) {
		t.Errorf("the reader has bits %x, want %x", got, bits)
	}
	s = start(t, opt)
	finds("the next open", s)
	if got := bitsOf(t, s.queues); !same(got, bits) {
		t.Errorf("the next open has bits %x, want %x", got, bits)
	}
	closeClean(t, s)
	for _, write := range []bool{true, false} {
		opt.ExtendedQueues = write
		s, err := Open(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Rebuild(t.Context(), "consumequeue", nil); err != nil {
			t.Fatal(err)
		}
		finds("a rebuild", s)
		for i, b := range bitsOf(t, s.queues) {
			if len(b) > 0 || (b != nil) != write {
				t.Errorf("extended %v: entry %d has bits %x", write, i, b)
			}
		}
		closeClean(t, s)
		verifyClean(t, opt)
	}
}
