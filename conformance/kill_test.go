package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/conformance/javapeer"
)

// TestKills has the cases in which one side dies and the other opens.
func TestKills(t *testing.T) {
	runCases(t, []testCase{
		{group: "d", name: "kill-in-turn", run: func(e *env) error { return killInTurn(e, kills{}) }},
		{group: "d", name: "kill-in-turn-we-recover", run: func(e *env) error { return killInTurn(e, kills{open: true}) }},
		{group: "d", name: "kill-in-turn-java-as-it-comes", run: func(e *env) error { return killInTurn(e, kills{plain: true}) }},
		{group: "d", name: "kill-in-turn-java-as-it-comes-we-recover", run: func(e *env) error { return killInTurn(e, kills{plain: true, open: true}) }},
	})
}

// random is a source that the environment may fix, and which says its seed.
func (e *env) random() *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv(seedVar); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	e.t.Logf("%s=%d", seedVar, seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// progress is what is known of a directory whose owners are killed.
type progress struct {
	next  [streamQueues]int64  // queue offsets checked so far
	order [streamQueues][2]int // run and number of the last record seen
	acked int
}

func newProgress() *progress {
	p := &progress{}
	for q := range p.order {
		p.order[q] = [2]int{-1, -1}
	}
	return p
}

// take checks what one side reads of a queue from the next offset on.
func (p *progress) take(queue int, raw []byte, found map[[2]int64]bool, acks map[[2]int64]ack) error {
	var v codec.MessageView
	if err := v.Parse(raw); err != nil {
		return err
	}
	var run, q, i int
	if n, _ := fmt.Sscanf(string(v.Body()), "%d %d %d ", &run, &q, &i); n != 3 || q != queue || string(v.Body()) != streamBody(run, q, i) {
		return fmt.Errorf("queue %d: record %d was never sent", queue, v.QueueOffset())
	}
	if v.QueueOffset() != p.next[queue] {
		return fmt.Errorf("queue %d: record %d where %d comes next", queue, v.QueueOffset(), p.next[queue])
	}
	// Each run sends 0, 1, 2 and so on: no hole, nothing twice.
	if last := p.order[queue]; run < last[0] || run == last[0] && i != last[1]+1 || run > last[0] && i != 0 {
		return fmt.Errorf("queue %d: record %d is number %d of run %d, behind %d of run %d", queue, v.QueueOffset(), i, run, last[1], last[0])
	}
	p.order[queue] = [2]int{run, i}
	p.next[queue]++
	key := [2]int64{int64(queue), v.QueueOffset()}
	if a, ok := acks[key]; ok {
		if a.Run != run || a.I != i || a.Phy != v.PhysicalOffset() {
			return fmt.Errorf("queue %d: record %d is number %d of run %d at %d, acknowledged was %+v", queue, v.QueueOffset(), i, run, v.PhysicalOffset(), a)
		}
		found[key] = true
	}
	return nil
}

// check reads all queues on from where the last check ended; each ack must be
// found.
func (p *progress) check(acks []ack, read func(queue int, from int64, each func(raw []byte) error) error) error {
	byKey, found := map[[2]int64]ack{}, map[[2]int64]bool{}
	for _, a := range acks {
		key := [2]int64{int64(a.Queue), a.Offset}
		if b, ok := byKey[key]; ok {
			return fmt.Errorf("an offset was acknowledged twice: %+v and %+v", b, a)
		}
		byKey[key] = a
	}
	for q := range streamQueues {
		if err := read(q, p.next[q], func(raw []byte) error { return p.take(q, raw, found, byKey) }); err != nil {
			return err
		}
	}
	for key, a := range byKey {
		if !found[key] {
			return fmt.Errorf("acknowledged and lost: %+v", a)
		}
	}
	p.acked += len(acks)
	return nil
}

func javaQueue(ctx context.Context, store *javapeer.Store) func(int, int64, func([]byte) error) error {
	return func(queue int, from int64, each func([]byte) error) error {
		got, err := store.All(ctx, streamTopic, int32(queue), from, "")
		if err != nil {
			return err
		}
		for i := range got.Records {
			if err := each(got.Records[i].Raw); err != nil {
				return fmt.Errorf("java: %w", err)
			}
		}
		return nil
	}
}

func ourQueue(ctx context.Context, s reading) func(int, int64, func([]byte) error) error {
	return func(queue int, from int64, each func([]byte) error) error {
		return follow(ctx, s, stratalog.Request{Topic: streamTopic, QueueID: int32(queue), Offset: from}, func(r *stratalog.Record) error {
			return each(r.Bytes())
		})
	}
}

// kills are the variations.
type kills struct {
	open  bool // see killInTurn
	plain bool // Java puts no checksum over the record, which is its default
}

// keepVar names a directory into which the store of a failed case is copied.
const keepVar = "STRATALOG_CONFORMANCE_KEEP"

func keepFailed(dir, name string, err error) error {
	keep := os.Getenv(keepVar)
	if err == nil || keep == "" {
		return nil
	}
	return os.CopyFS(filepath.Join(keep, strings.ReplaceAll(name, "/", "-")), os.DirFS(dir))
}

// killInTurn kills us and Java in turn over one directory, in the middle of
// appends or of opening; whoever comes next must find every acknowledged record,
// once, at its place. With open set, we open and close in order between Java's
// death and our next run, so that Java's next start is from a clean exit's state
// plus our death.
func killInTurn(e *env, how kills) (err error) {
	dir := e.dir()
	java := streamSetup(0)
	java.checksum = !how.plain
	defer func() { err = errors.Join(err, keepFailed(dir, e.t.Name(), err)) }()
	rng := e.random()
	p := newProgress()
	rounds := modeCounts().kills
	var ourAcks, javaAcks []ack
	early := 0
	for round := range rounds {
		if how.open {
			err := func() error {
				store, err := openOurs(e.ctx, streamSetup(0).options(dir))
				if err != nil {
					return err
				}
				err = p.check(javaAcks, ourQueue(e.ctx, store))
				return errors.Join(err, closeOurs(e.ctx, store), e.verifiedDir(streamSetup(0).options(dir)))
			}()
			if err != nil {
				return fmt.Errorf("round %d, ours after java's death: %w", round, err)
			}
			javaAcks = nil
		}
		if ourAcks, err = killUs(dir, 2*round, rng); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		ourAcks = append(javaAcks, ourAcks...)
		acks, err := e.killJava(dir, java, 2*round+1, rng, func(store *javapeer.Store) error { return p.check(ourAcks, javaQueue(e.ctx, store)) })
		if err != nil {
			return fmt.Errorf("round %d, java after our death: %w", round, err)
		}
		if acks == nil {
			early++
			javaAcks = ourAcks // it died before it was asked
		} else {
			javaAcks = acks
		}
	}
	store, err := openOurs(e.ctx, streamSetup(0).options(dir))
	if err != nil {
		return err
	}
	err = p.check(javaAcks, ourQueue(e.ctx, store))
	if err = errors.Join(err, closeOurs(e.ctx, store), e.verifiedDir(streamSetup(0).options(dir))); err != nil {
		return err
	}
	e.note = fmt.Sprintf("%d kills each, %d of java's while it opened, %d acked, 0 lost", rounds, early, p.acked)
	// And all of it once more, by both.
	last, err := e.openJava(e.java, dir, java)
	if err != nil {
		return err
	}
	err = newProgress().check(nil, javaQueue(e.ctx, last))
	return errors.Join(err, last.Shutdown(e.ctx))
}

// killUs runs us as a process that appends, and kills it.
func killUs(dir string, run int, rng *rand.Rand) ([]ack, error) {
	c, err := startChild("appender", dir, run)
	if err != nil {
		return nil, err
	}
	if err := c.expect("opening"); err != nil {
		return nil, err
	}
	if run%8 == 6 {
		time.Sleep(time.Duration(rng.IntN(8000)) * time.Microsecond) // while it opens
	} else {
		if err := c.expect("started"); err != nil {
			return nil, err
		}
		time.Sleep(time.Duration(1000+rng.IntN(60000)) * time.Microsecond)
	}
	return c.kill()
}

// killJava runs Java over dir, has check look at it, appends, and kills it. The
// acks are nil if it was killed while it opened, before check.
func (e *env) killJava(dir string, s setup, run int, rng *rand.Rand, check func(*javapeer.Store) error) ([]ack, error) {
	scratch := filepath.Join(filepath.Dir(dir), "peer")
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, err
	}
	p, err := javapeer.Start(e.ctx, root, e.version, scratch)
	if err != nil {
		return nil, err
	}
	if run%8 == 5 {
		done := make(chan error, 1)
		go func() {
			_, err := e.openJava(p, dir, s)
			done <- err
		}()
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		err := p.Kill()
		if opened := <-done; opened != nil && !errors.Is(opened, javapeer.ErrGone) {
			return nil, opened
		}
		return nil, err
	}
	store, err := e.openJava(p, dir, s)
	if err == nil {
		err = check(store)
	}
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	acks := []ack{}
	var mu sync.Mutex
	done := make(chan error, 1)
	first := make(chan struct{})
	go func() {
		done <- store.PutStream(e.ctx, streamTopic, run, streamQueues, 0, func(part json.RawMessage) {
			var a ack
			if err := json.Unmarshal(part, &a); err != nil {
				panic(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(acks) == 0 {
				close(first)
			}
			acks = append(acks, a)
		})
	}()
	select {
	case <-first:
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
	case err := <-done:
		return nil, errors.Join(err, p.Kill())
	}
	err = p.Kill()
	if ended := <-done; !errors.Is(ended, javapeer.ErrGone) {
		return nil, fmt.Errorf("the stream ended before the kill: %w", ended)
	}
	return acks, err
}
