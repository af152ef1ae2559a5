package index

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// counted counts the files that are open.
type counted struct {
	vfs.FS
	open atomic.Int64
}

func (c *counted) Open(name string, flag vfs.Flag) (vfs.File, error) {
	f, err := c.FS.Open(name, flag)
	if err == nil {
		c.open.Add(1)
		f = countedFile{f, c}
	}
	return f, err
}

type countedFile struct {
	vfs.File
	c *counted
}

func (f countedFile) Close() error {
	f.c.open.Add(-1)
	return f.File.Close()
}

// tame is a Visitor that checks the order only.
type tame struct {
	t    *testing.T
	last contract.Offset
}

func (v *tame) Visit(c Candidate) (bool, error) {
	if c.Offset >= v.last {
		v.t.Errorf("%d behind %d", c.Offset, v.last)
	}
	v.last = c.Offset
	return true, nil
}

// Readers beside a lane that puts, flushes, rolls back and retires meet no
// damage, no entry twice, and leave no file open.
func TestReadersBesideLane(t *testing.T) {
	sim := &counted{FS: newSim(t)}
	opts := small()
	opts.MaxHandles = 2
	s, err := Open(sim, dir, opts)
	must(t, err)
	var readers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for i := range 3 {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			for ctx.Err() == nil {
				q := Query{Topic: topics[rng.IntN(len(topics))], Key: words[rng.IntN(len(words))]}
				v, at := &tame{t, 1 << 62}, Position{}
				for done := false; !done; {
					var err error
					if at, done, err = s.Search(context.Background(), q, at, v); err != nil {
						t.Error(err)
						return
					}
				}
				s.Files()
			}
		})
	}
	l := newLog(rand.New(rand.NewPCG(1, 7)), 0)
	rounds := 2000
	if testing.Short() {
		rounds = 300
	}
	for i := range rounds {
		for range 5 {
			must(t, l.grow().apply(t, s))
		}
		must(t, s.Commit())
		switch i % 20 {
		case 3, 11:
			must(t, s.Flush())
		case 7:
			n := len(l.records) - 1 - l.rng.IntN(20)
			l.phy = l.records[n].phy
			l.records = l.records[:n]
			must(t, s.RollBack(contract.Offset(l.phy)))
		case 15:
			_, err := s.DeleteExpired(contract.Offset(l.records[len(l.records)/2].phy))
			must(t, err)
		}
	}
	stop()
	readers.Wait()
	must(t, s.Close())
	if n := sim.open.Load(); n != 0 {
		t.Errorf("%d files left open", n)
	}
}
