package commitlog

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// Zeros are written close ahead of a tail that runs into them again and again;
// no record may be hit.
func TestZerosNeverHitRecords(t *testing.T) {
	for _, path := range []WritePath{WritePwrite, WriteMmap} {
		t.Run(path.String(), func(t *testing.T) {
			opt := smallOptions(vfs.OS(), t.TempDir())
			opt.SegmentSize, opt.MaxUnsynced, opt.WritePath = 4<<20, 8<<20, path
			opt.firstZeroed = 4096
			opt.zeroing = zeroing{ahead: 64 << 10, margin: 0, piece: 8 << 10}
			r := openRig(t, opt)
			const producers, each = 4, 3000
			receipts := make([][]contract.Receipt, producers)
			var wg sync.WaitGroup
			for p := range producers {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for i := range each {
						d := contract.DurabilityMemory
						if i%100 == 0 {
							d = contract.DurabilitySync
						}
						got, err := r.log.Append(context.Background(), message("T", i), d)
						if err != nil {
							t.Error(err)
							return
						}
						receipts[p] = append(receipts[p], got)
					}
				}()
			}
			wg.Wait()
			r.log.mu.Lock()
			pieces := r.log.zero.pieces
			r.log.mu.Unlock()
			if pieces == 0 {
				if _, ok := r.log.active.file.Handle().(holeFinder); ok {
					t.Error("no zeros were written: the test shows nothing")
				}
			}
			r.close(true)
			r = openRig(t, opt)
			defer r.close(true)
			for p := range producers {
				for i, got := range receipts[p] {
					readBack(t, r.log, got, message("T", i))
				}
			}
			if v, err := r.log.Verify(r.log.MinOffset(), r.log.Durable(), func(f error) bool { t.Error(f); return true }); err != nil || v.Records != producers*each {
				t.Errorf("verify: %+v, %v", v, err)
			}
		})
	}
}

// gateFS makes segments look unwritten, and holds back writes that go past the
// page cache until gate is closed.
type gateFS struct {
	vfs.FS
	entered chan struct{}
	gate    chan struct{}
}

func (g gateFS) Open(name string, flag vfs.Flag) (vfs.File, error) {
	f, err := g.FS.Open(name, flag&^vfs.Direct)
	return gateFile{f, g, flag&vfs.Direct != 0 && flag&vfs.Create == 0}, err
}

type gateFile struct {
	vfs.File
	fs   gateFS
	held bool
}

func (f gateFile) NextHole(off int64) (int64, error) { return off, nil }

func (f gateFile) WriteAt(p []byte, off int64) (int, error) {
	if f.held {
		f.fs.entered <- struct{}{}
		<-f.fs.gate
	}
	return f.File.WriteAt(p, off)
}

// While zeros are on their way to a claimed range, nothing is placed in it
// (Z1): the append is refused and not written over.
func TestZeroClaimKeepsRecordsOut(t *testing.T) {
	g := gateFS{vfs.NewSim(), make(chan struct{}, 64), make(chan struct{})}
	opt := smallOptions(g, "/store")
	opt.AdmissionWait = -1
	opt.zeroing = zeroing{ahead: 64 << 10, margin: 0, piece: 8 << 10}
	r := openRig(t, opt)
	<-g.entered
	var placed []contract.Receipt
	m := message("T", 20)
	for {
		got, err := r.log.Append(context.Background(), m, contract.DurabilityMemory)
		if err != nil {
			if !errors.Is(err, contract.ErrBusy) || len(placed) > 20 {
				t.Errorf("after %d records: %v", len(placed), err)
			}
			break
		}
		placed = append(placed, got)
		if len(placed) > 20 {
			t.Error("records were placed where zeros are being written")
			break
		}
	}
	close(g.gate)
	for {
		if _, err := r.log.Append(context.Background(), m, contract.DurabilitySync); err == nil {
			break
		} else if !errors.Is(err, contract.ErrBusy) {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	for _, got := range placed {
		readBack(t, r.log, got, m)
	}
	r.close(true)
}
