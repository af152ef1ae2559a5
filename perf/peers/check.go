package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stratalog/stratalog/perf/load"
)

// syncCalls is what strace saw of a run.
type syncCalls struct {
	syncs int64 // fsync, fdatasync and msync
	dsync int64 // files opened so that each write is a sync
}

var (
	syncCall = regexp.MustCompile(`\b(fsync|fdatasync|msync)\(`)
	dsync    = regexp.MustCompile(`\bO_D?SYNC\b`)
)

// traceLines runs a cell below strace and calls visit with each line of what it
// printed.
func traceLines(c cell, visit func(line string), options ...string) (load.Run, error) {
	file := filepath.Join(c.Dir, "..", filepath.Base(c.Dir)+".strace")
	defer removeAll(file)
	before := append([]string{"strace", "-f", "--seccomp-bpf", "-qq", "-e", "signal=none", "-o", file}, options...)
	r, err := child(c, before...)
	if err != nil {
		return r, err
	}
	if !r.Verified.OK {
		return r, wrong(&c, r.Verified)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	for line := range strings.Lines(string(text)) {
		visit(line)
	}
	return r, nil
}

// trace counts the syncs of a cell.
func trace(c cell) (syncCalls, load.Verify, error) {
	var s syncCalls
	r, err := traceLines(c, func(line string) {
		switch {
		case syncCall.MatchString(line):
			s.syncs++
		case strings.Contains(line, "openat(") && dsync.MatchString(line):
			s.dsync++
		}
	}, "-e", "trace=fsync,fdatasync,msync,openat")
	return s, r.Verified, err
}

// checks looks at every engine's syncs and kills it, and notes what breaks a
// promise.
func (b *bench) checks(p *plan) error {
	_, missing := exec.LookPath("strace")
	if missing != nil {
		b.say("check: NO SYNC IS LOOKED AT, strace is not here")
		b.broken = append(b.broken, "no engine's: strace is not here, and nothing else tells whether an answer is behind its sync")
	}
	for _, e := range p.engines {
		b.say("check: %s", e.name)
		if missing == nil {
			if err := b.syncs(e); err != nil {
				return err
			}
		}
		if err := b.kill(e); err != nil {
			return err
		}
	}
	return nil
}

// syncs looks at those of one producer, and of 64 in each way: whether each answer
// is behind its own, and how many there are.
func (b *bench) syncs(e *engine) error {
	for _, producers := range []int{1, 64} {
		for _, w := range e.ways(producers) {
			if err := b.checkOrder(e, w, producers); err != nil {
				return err
			}
			if err := b.countSyncs(e, w, producers); err != nil {
				return err
			}
		}
	}
	return nil
}

// orderWorkload is what it is called in the results that each answer was looked
// at, orderOp how many.
const (
	orderWorkload = "sync order"
	orderOp       = "answer behind its sync"
)

// checkOrder looks at each answer, see type order.
func (b *bench) checkOrder(e *engine, w way, producers int) error {
	c := cell{Kind: "order", Workload: orderWorkload, Engine: e.name, Way: w, Mode: modeSync, Producers: producers, Size: 1024, Seed: 1,
		Records: 60}
	if producers > 1 {
		c.Records = 10 * int64(producers)
	}
	var err error
	if c.Dir, err = b.fresh(); err != nil {
		return err
	}
	defer removeAll(c.Dir)
	o := newOrder(&c)
	r, err := traceLines(c, o.line, "-y", "-xx", "-s", strconv.Itoa(orderText), "-e", "trace="+orderCalls)
	if err != nil {
		return err
	}
	if err := o.finish(); err != nil {
		b.broken = append(b.broken, fmt.Sprintf("%s, %s, %s: %v", e.name, w, count(producers, "producer"), err))
	}
	good := c.Records - int64(len(o.broken))
	r.Ops = []load.Op{{Name: orderOp, Count: good, Records: good}}
	r.Notes = append(r.Notes, fmt.Sprintf("%d answers, %d of them to messages that went through a mapping", c.Records, o.unseen))
	return b.keep(r)
}

// kill kills an engine in each mode that it has.
func (b *bench) kill(e *engine) error {
	for _, m := range []mode{modeSync, modeMemory} {
		if _, ok := e.promiseOf(m); !ok {
			continue
		}
		if err := b.checkKill(e, m); err != nil {
			return err
		}
	}
	return nil
}

// countSyncs counts the syncs that messages cost an engine: it appends few and
// many, and takes the difference, so that those of opening and closing do not
// count. Whether they are in time is for checkOrder.
func (b *bench) countSyncs(e *engine, w way, producers int) error {
	few, many := int64(50), int64(250)
	if producers > 1 {
		few, many = int64(producers), 100*int64(producers)
	}
	c := cell{Kind: "append", Workload: "sync count", Engine: e.name, Way: w, Mode: modeSync, Producers: producers, Size: 1024, Seed: 1}
	var seen [2]syncCalls
	var verified load.Verify
	for i, n := range []int64{few, many} {
		var err error
		if c.Dir, err = b.fresh(); err != nil {
			return err
		}
		c.Records = n
		seen[i], verified, err = trace(c)
		removeAll(c.Dir)
		if err != nil {
			return err
		}
	}
	messages, syncs := many-few, seen[1].syncs-seen[0].syncs
	return b.keep(load.Run{Schema: load.Schema, Engine: e.name, Workload: c.Workload, Started: time.Now().UTC(), Promise: e.sync.text,
		Env: load.Environment(b.dir), Config: c.config(e), Ops: []load.Op{{Name: "append", Count: messages, Records: messages}},
		Log:      &load.LogCounts{Syncs: syncs, RecordsPerSync: load.Per(float64(messages), syncs)},
		Verified: verified, Notes: []string{fmt.Sprintf("files opened with O_DSYNC or O_SYNC: %d", seen[1].dsync)}})
}

// lostOp counts the messages that a kill took and that were not promised to
// outlive it.
const lostOp = "lost"

// checkKill appends until the process is killed in the middle of it, and then
// looks for every message that was answered.
func (b *bench) checkKill(e *engine, m mode) error {
	promise, _ := e.promiseOf(m)
	c := cell{Kind: "acks", Workload: "kill", Engine: e.name, Way: e.many[0], Mode: m, Producers: 8, Size: 1024, Seed: rand.Uint64(),
		Duration: time.Second}
	if m == modeMemory {
		c.Way, c.Producers, c.Size = e.alone, 1, 128
	}
	var err error
	if c.Dir, err = b.fresh(); err != nil {
		return err
	}
	defer removeAll(c.Dir)
	if c.Acked, err = killed(c, 100*time.Millisecond+rand.N(200*time.Millisecond)); err != nil {
		return err
	}
	acked := int64(0)
	for _, n := range c.Acked {
		acked += n
	}
	c.Kind = "verify"
	r, err := child(c)
	if err != nil { // it cannot be opened
		r = load.Run{Schema: load.Schema, Engine: e.name, Workload: c.Workload, Started: time.Now().UTC(), Promise: promise.text,
			Env: load.Environment(b.dir), Config: c.config(e), Verified: load.Verify{Missing: acked, First: err.Error()}}
	}
	r.Ops = []load.Op{{Name: "append", Count: acked, Records: acked}}
	if lost := r.Verified.Missing; !promise.process && lost > 0 && r.Verified.Wrong == 0 {
		r.Ops = append(r.Ops, load.Op{Name: lostOp, Count: lost, Records: lost})
		r.Verified = load.Verify{OK: true, Records: r.Verified.Records, How: r.Verified.How + "; it does not promise the last ones"}
	}
	if promise.process && !r.Verified.OK {
		b.broken = append(b.broken, fmt.Sprintf("%s, %s: killed, %d of %d answered messages are missing, %d wrong: %s", e.name, m,
			r.Verified.Missing, acked, r.Verified.Wrong, r.Verified.First))
	}
	return b.keep(r)
}

// killed runs a cell that tells its acks and kills it so long after the first
// of them.
func killed(c cell, after time.Duration) ([]int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), cellTimeout)
	defer cancel()
	cmd, err := command(ctx, c)
	if err != nil {
		return nil, err
	}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	acked := make([]int64, c.Producers)
	acks := bufio.NewReaderSize(stdout, 1<<20)
	for first := true; ; first = false {
		p, err := acks.ReadByte()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, errors.Join(err, cmd.Wait())
		}
		if first {
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() }) // if it has ended already, Wait tells how
		}
		acked[p]++
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		return nil, fmt.Errorf("%s: it was not killed: %w: %s", c.title(), err, lastLines(complaint.String(), 5))
	}
	return acked, nil
}

// killBuilt runs a build and kills it when it is done.
func killBuilt(c cell) error {
	ctx, cancel := context.WithTimeout(context.Background(), cellTimeout)
	defer cancel()
	cmd, err := command(ctx, c)
	if err != nil {
		return err
	}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if _, err := cmd.StdinPipe(); err != nil { // the child waits for its end
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = bufio.NewReader(stdout).ReadString('\n')
	_ = cmd.Process.Kill() // if it has ended already, Wait tells how
	if waited := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", c.title(), waited, lastLines(complaint.String(), 5))
	}
	return nil
}
