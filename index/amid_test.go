package index

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// javaFile puts entries as Java does it through its mapping: store by store, so
// that a reader beside it may see the file behind each of them.
type javaFile struct {
	t    *testing.T
	file vfs.File
	l    layout
	head codec.IndexHeader
	// stored is called behind each store.
	stored func()
}

func (j *javaFile) store(at int64, encode func(b []byte) (int, error)) {
	b := make([]byte, 64)
	n, err := encode(b)
	must(j.t, err)
	_, err = j.file.WriteAt(b[:n], at)
	must(j.t, err)
	j.stored()
}

func (j *javaFile) header() { j.store(0, j.head.Encode) }

func (j *javaFile) put(hash int32, phy, time int64) {
	var b [slotSize]byte
	slot := j.l.slotAt(int64(hash) % j.l.slots)
	_, err := j.file.ReadAt(b[:], slot)
	must(j.t, err)
	before := int32(decodeSlot(b[:]))
	k := max(j.head.Count, 1)
	e := codec.IndexEntry{KeyHash: hash, PhysicalOffset: phy, Previous: before}
	if k > 1 {
		e.TimeDiff = timeDiff(j.head.BeginTime, time)
	}
	whole := make([]byte, entrySize)
	_, err = e.Encode(whole)
	must(j.t, err)
	for _, field := range [][2]int64{{0, 4}, {4, 12}, {12, 16}, {16, 20}} {
		j.store(j.l.entryAt(int64(k))+field[0], func(b []byte) (int, error) { return copy(b, whole[field[0]:field[1]]), nil })
	}
	j.store(slot, (&codec.IndexSlot{Entry: k}).Encode)
	if k == 1 {
		j.head.BeginPhysicalOffset = phy
		j.header()
		j.head.BeginTime = time
		j.header()
	}
	if before == 0 {
		j.head.UsedSlots++
		j.header()
	}
	j.head.Count = k + 1
	j.header()
	j.head.EndPhysicalOffset = phy
	j.header()
	j.head.EndTime = time
	j.header()
}

// A reader that knows no sizes finds those of a file that Java writes to, at every
// moment, and a verification finds nothing wrong.
func TestBesideJava(t *testing.T) {
	seeds := 100
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		l := layout{1 + rng.Int64N(150), 3 + rng.Int64N(60)}
		if rng.IntN(3) == 0 {
			l.slots += 1000 // The slots are further than a read.
		}
		sim := newSim(t)
		must(t, sim.MkdirAll(dir))
		f, err := sim.Open(dir+"/20261130083000000", vfs.ReadWrite|vfs.Create)
		must(t, errors.Join(err, f.Truncate(l.fileSize())))
		java := &javaFile{t: t, file: f, l: l}
		history := newLog(rng, rng.Int64N(1<<40))
		start := history.phy
		var done contract.Offset
		java.stored = func() {
			r, err := Open(sim, dir, Options{ReadOnly: true})
			must(t, err)
			defer func() { must(t, r.Close()) }()
			if files := r.Files(); len(files) == 1 && files[0].Entries > 0 && r.layout != l {
				t.Fatalf("seed %d: %+v taken for %+v behind %+v", seed, l, r.layout, java.head)
			}
			v := r.NewVerifier(contract.Offset(start), done, func(f Fault) { t.Fatalf("seed %d: %+v behind %+v", seed, f, java.head) })
			for _, rec := range history.records {
				must(t, v.Record(rec.view(t)))
			}
			must(t, v.Finish())
		}
		for int64(java.head.Count) < l.entries {
			r := history.grow()
			view := r.view(t)
			var keys keyer
			hashes, tagged := keys.of(view)
			if tagged {
				hashes = hashes[:len(hashes)-1]
			}
			if r.flag == codec.SysFlagTransactionRollback {
				hashes = nil
			}
			for _, hash := range hashes {
				if int64(java.head.Count) < l.entries {
					java.put(hash, r.phy, r.time)
				}
			}
			done = contract.Offset(history.phy)
			if int64(java.head.Count) >= l.entries {
				break // The rest of this record's keys belong into the next file.
			}
		}
		must(t, f.Close())
	}
}
