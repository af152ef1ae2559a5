package stratalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
	"github.com/stratalog/stratalog/internal/vfs"
)

// cell is one subtest's store on a simulated disk, under a clock that only the
// test moves: nothing is synced unless an append asks for it or time passes.
type cell struct {
	*testing.T
	opt   Options
	sim   *vfs.Sim
	clock *clock.Manual
	store *Store
	sent  [][]byte
	last  Receipt
}

func newCell(t *testing.T) *cell {
	c := &cell{T: t, sim: vfs.NewSim(), clock: manual()}
	c.opt = testOptions(c.sim, "/store")
	c.opt.Clock = c.clock
	c.store = start(t, c.opt)
	return c
}

func (c *cell) append(n int, d Durability) {
	c.Helper()
	for range n {
		m := Message{Topic: "t", Body: body(len(c.sent))}
		c.last = mustAppend(c, c.store, &m, d)
		c.sent = append(c.sent, m.Body)
	}
}

// found opens what a death left and returns how many of the records are there:
// the first ones, without a hole and without a stranger.
func (c *cell) found(image *vfs.Sim) int {
	c.Helper()
	opt := c.opt
	opt.FS = image
	s, err := Open(context.Background(), opt)
	if err != nil {
		c.Fatalf("open after the death: %v", err)
	}
	defer closeClean(c, s)
	_, end := s.QueueRange("t", 0)
	if end > int64(len(c.sent)) {
		c.Fatalf("%d records of %d", end, len(c.sent))
	}
	expect(c, s, "t", 0, c.sent[:end])
	return int(end)
}

// pass moves the clock and waits until what was appended is durable.
func (c *cell) pass(d time.Duration) {
	c.Helper()
	c.clock.Advance(d)
	if err := c.store.log.WaitConfirmed(within(c), endOf(c.last)-1); err != nil {
		c.Fatalf("not synced %v later: %v", d, err)
	}
}

// cuts are power cuts at this moment.
func (c *cell) cuts() []*vfs.Sim {
	rng := rand.New(rand.NewPCG(1, 2))
	images := []*vfs.Sim{c.sim.Crash(vfs.AllOld()), c.sim.Crash(vfs.AllNew())}
	for i := range 40 {
		images = append(images, c.sim.Crash(vfs.Random(rng, float64(i%10)/10)))
	}
	n := c.sim.PendingCount()
	for k := range n {
		images = append(images, c.sim.Crash(vfs.Hole(k)), c.sim.Crash(vfs.Prefix(k)))
	}
	return images
}

// TestDurabilityTable is the table of README.md, cell by cell.
func TestDurabilityTable(t *testing.T) {
	for _, row := range []struct {
		d        Durability
		powerCut func(*cell)
	}{
		{Memory, memoryPowerCut},
		{Interval, intervalPowerCut},
		{Sync, syncPowerCut},
	} {
		t.Run(row.d.String(), func(t *testing.T) {
			t.Run("process-killed", func(t *testing.T) { processKilled(newCell(t), row.d) })
			t.Run("power-cut", func(t *testing.T) {
				c := newCell(t)
				row.powerCut(c)
				closeClean(t, c.store)
			})
			t.Run("sync-failed", func(t *testing.T) { syncFailed(newCell(t), row.d) })
			t.Run("disk-full", func(t *testing.T) { diskFull(newCell(t), row.d) })
		})
	}
}

// processKilled: kept, whatever was asked, at each moment.
func processKilled(c *cell, d Durability) {
	for range 40 {
		c.append(5, d)
		if n := c.found(c.sim.Kill()); n != len(c.sent) {
			c.Fatalf("%d of %d acknowledged records are there", n, len(c.sent))
		}
	}
	closeClean(c, c.store)
}

// memoryPowerCut: may be lost, no hole.
func memoryPowerCut(c *cell) {
	c.append(20, Memory)
	c.append(1, Sync)
	kept := len(c.sent)
	c.append(60, Memory)
	if r := c.last.Reached(); r != contract.ReachedMemory {
		c.Fatalf("reached %v, nothing was synced", r)
	}
	lost := false
	for _, image := range c.cuts() {
		n := c.found(image)
		if n < kept {
			c.Fatalf("%d records, %d were durable", n, kept)
		}
		lost = lost || n < len(c.sent)
	}
	if !lost {
		c.Fatal("no power cut took anything: the test shows nothing")
	}
	// A background sync comes whatever was asked.
	c.pass(commitSyncInterval)
	if n := c.found(c.sim.Crash(vfs.AllOld())); n != len(c.sent) {
		c.Fatalf("%d of %d records after the background sync", n, len(c.sent))
	}
}

const (
	commitSyncInterval = 500 * time.Millisecond
	intervalT          = 10 * time.Millisecond
)

// intervalPowerCut: at most T plus one sync is lost, no hole.
func intervalPowerCut(c *cell) {
	for range 10 {
		c.append(5, Interval)
		c.clock.Advance(intervalT / 2)
		c.append(1, Interval) // does not put the sync off
		older := len(c.sent)
		// T after the first of them the sync runs; when it is through, all
		// that is older than it is there.
		c.pass(intervalT / 2)
		c.append(3, Interval)
		for _, image := range []*vfs.Sim{c.sim.Crash(vfs.AllOld()), c.sim.Crash(vfs.AllNew())} {
			if n := c.found(image); n < older {
				c.Fatalf("%d records are there, %d are older than T and a sync", n, older)
			}
		}
		c.pass(intervalT)
	}
	c.append(50, Interval)
	for _, image := range c.cuts() {
		if n := c.found(image); n < len(c.sent)-50 {
			c.Fatalf("%d of %d", n, len(c.sent))
		}
	}
	// What was appended while a sync was running is covered by the next one.
	c.pass(intervalT)
}

// syncPowerCut: kept.
func syncPowerCut(c *cell) {
	for range 60 {
		c.append(1, Sync)
		if c.last.Reached() != contract.ReachedLocal {
			c.Fatalf("reached %v", c.last.Reached())
		}
		if n := c.found(c.sim.Crash(vfs.AllOld())); n != len(c.sent) {
			c.Fatalf("%d of %d acknowledged records are there", n, len(c.sent))
		}
	}
	for _, image := range c.cuts() {
		if n := c.found(image); n != len(c.sent) {
			c.Fatalf("%d of %d acknowledged records are there", n, len(c.sent))
		}
	}
}

// syncFailed: an error to every waiter, and the log is fenced until Recover.
func syncFailed(c *cell, d Durability) {
	c.append(5, Sync)
	const waiters = 20
	fault := vfs.NewFault(c.sim)
	closeClean(c, c.store)
	c.opt.FS = fault
	c.store = start(c, c.opt)
	c.append(1, Sync)

	// The sync that fails is held until everybody is on board.
	hold := make(chan struct{})
	running := make(chan struct{}, 1)
	c.sim.FailSync("commitlog/*", 1, syscall.EIO, true)
	fault.Add(vfs.Rule{Kinds: vfs.KindsOf(vfs.OpDatasync), Path: "commitlog/*", Block: hold,
		Hook: func(vfs.Op) { running <- struct{}{} }})
	answer := make(chan error, waiters)
	acked := len(c.sent)
	for i := range waiters {
		m := Message{Topic: "t", Body: body(len(c.sent))}
		err := c.store.Submit(context.Background(), &m, d, func(r Receipt, err error) {
			if err == nil && d == Sync {
				err = fmt.Errorf("an ack of %v", r)
			} else if d == Sync && (!r.Accepted() || r.Status() != contract.StatusFlushDiskTimeout || !r.FailedWaits().Has(contract.WaitDisk)) &&
				!errors.Is(err, contract.ErrOutcomeUnknown) {
				err = fmt.Errorf("receipt %v (%v)", r, err)
			}
			answer <- err
		})
		if err != nil {
			c.Fatal(err)
		}
		c.sent = append(c.sent, m.Body)
		if i == 0 {
			if d != Sync {
				c.clock.Advance(commitSyncInterval)
			}
			<-running
		}
	}
	close(hold)
	for range waiters {
		err := <-answer
		if d != Sync && err != nil {
			c.Fatalf("%v was answered before the sync, and then: %v", d, err)
		}
		if d == Sync && !errors.Is(err, contract.ErrFenced) {
			c.Fatalf("a waiter got %v", err)
		}
		if d == Sync && !errors.Is(err, syscall.EIO) {
			c.Fatalf("a waiter does not learn the cause: %v", err)
		}
	}
	until(c, "the log is fenced", func() bool { return !c.store.Health().Writable }, nil)
	if reason := c.store.Health().Reason; !errors.Is(reason, syscall.EIO) || !errors.Is(reason, contract.ErrFenced) {
		c.Fatalf("health says %v", reason)
	}
	for _, any := range []Durability{Memory, Interval, Sync} {
		r, err := c.store.Append(context.Background(), &Message{Topic: "t"}, any)
		if _, in := r.Range(); !errors.Is(err, contract.ErrFenced) || in || r.Status() != contract.StatusServiceUnavailable {
			c.Fatalf("append to a fenced log: %v, %v", r, err)
		}
	}
	if acked > c.found(c.sim.Crash(vfs.AllOld())) {
		c.Fatal("what was durable before is gone")
	}
	// Recover writes again what the kernel gave up, and only that lifts the fence.
	report, err := c.store.Recover(context.Background())
	if err != nil {
		c.Fatal(err)
	}
	c.sent = c.sent[:acked+int(report.Records)]
	if d != Sync && len(c.sent) != acked+waiters {
		c.Fatalf("%d of %d records that were in the page cache are left", report.Records, waiters)
	}
	c.append(3, Sync)
	if n := c.found(c.sim.Crash(vfs.AllOld())); n != len(c.sent) {
		c.Fatalf("after Recover: %d of %d", n, len(c.sent))
	}
	closeClean(c, c.store)
}

// diskFull: refused, nothing written, and it heals by itself.
func diskFull(c *cell, d Durability) {
	c.append(5, Sync)
	waitVisible(c, c.store, endOf(c.last))
	c.sim.SetCapacity(c.sim.Used())
	refused := 0
	for refused == 0 {
		m := Message{Topic: "t", Body: body(len(c.sent))}
		r, err := c.store.Append(context.Background(), &m, d)
		if err == nil {
			c.last, c.sent = r, append(c.sent, m.Body)
			continue
		}
		if _, in := r.Range(); !errors.Is(err, contract.ErrDiskFull) || in || r.Status() != contract.StatusServiceUnavailable {
			c.Fatalf("append on a full disk: %v, %v", r, err)
		}
		refused++
	}
	if len(c.sent) < 20 {
		c.Fatalf("refused after %d records, the segment was not full", len(c.sent))
	}
	logDir := c.store.path("commitlog")
	before := tree(c, c.sim, logDir)
	marks := c.store.Health().Watermarks
	for range 10 {
		if _, err := c.store.Append(context.Background(), &Message{Topic: "t", Body: body(7)}, d); !errors.Is(err, contract.ErrDiskFull) {
			c.Fatal(err)
		}
	}
	sameTree(c, "a refused append", before, tree(c, c.sim, logDir))
	if now := c.store.Health().Watermarks; now.Appended != marks.Appended {
		c.Fatalf("appended moved from %d to %d", marks.Appended, now.Appended)
	}
	var rec Record
	place, _ := c.last.Range()
	c.pass(commitSyncInterval)
	if found, err := c.store.GetAt(context.Background(), place.Start, &rec); err != nil || !found {
		c.Fatalf("reads do not go on: %v, %v", found, err)
	}
	rec.Release()

	c.sim.SetCapacity(0)
	until(c, "appends go on when there is room", func() bool {
		m := Message{Topic: "t", Body: body(len(c.sent))}
		r, err := c.store.Append(context.Background(), &m, d)
		if err == nil {
			c.last, c.sent = r, append(c.sent, m.Body)
		} else if !errors.Is(err, contract.ErrDiskFull) {
			c.Fatal(err)
		}
		return err == nil
	}, func() { c.clock.Advance(time.Second) })
	c.append(1, Sync)
	until(c, "the lane catches up", func() bool { return c.store.Health().Frontier >= endOf(c.last) },
		func() { c.clock.Advance(time.Second) })
	if n := c.found(c.sim.Kill()); n != len(c.sent) {
		c.Fatalf("%d of %d", n, len(c.sent))
	}
	closeClean(c, c.store)
}
