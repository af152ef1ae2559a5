package stratalog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stratalog/stratalog/internal/vfs"
)

const killQueues = 4

// killOptions are those of the store that is killed; every second run writes
// through the mapping.
func killOptions(dir string, run int) Options {
	opt := testOptions(vfs.OS(), dir)
	opt.MaxMessageSize = 4 << 10
	opt.QueueFileSize = 20 << 10
	if run%2 == 1 {
		opt.WritePath = WriteMmap
	}
	return opt
}

// killBody is the i-th body of a queue in a run: "run queue i " and filling.
func killBody(run, queue, i int) []byte {
	b := fmt.Appendf(nil, "%d %d %d ", run, queue, i)
	for n := (run*31 + queue*17 + i*7) % 1500; len(b) < n; {
		b = append(b, byte('a'+(len(b)+i)%26))
	}
	return b
}

// roleAppender appends from several goroutines until it is killed, and writes a
// line for each ack.
func roleAppender() error {
	run, err := strconv.Atoi(os.Getenv(runVar))
	if err != nil {
		return err
	}
	fmt.Println("opening")
	s, err := Open(context.Background(), killOptions(os.Getenv(dirVar), run))
	if err == nil {
		err = s.Start(context.Background())
	}
	if err != nil {
		return err
	}
	fmt.Println("started")
	var wg sync.WaitGroup
	errs := make([]error, killQueues)
	for q := range killQueues {
		wg.Go(func() {
			for i := 0; errs[q] == nil; i++ {
				d := []Durability{Memory, Interval, Sync, Memory, Sync}[(i+q)%5]
				m := Message{Topic: "k", QueueID: int32(q), Body: killBody(run, q, i)}
				var r Receipt
				if r, errs[q] = s.Append(context.Background(), &m, d); errs[q] != nil {
					return
				}
				place, _ := r.Range()
				// One write: a line is whole or not there.
				_, errs[q] = os.Stdout.WriteString(fmt.Sprintf("%d %d %d %d %d %d\n", run, q, i, r.QueueOffset(), place.Start, d))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ack is what a child was told about one append.
type ack struct {
	run, queue, i int
	offset, start int64
	durability    Durability
}

func readAcks(out *bufio.Reader) (acks []ack) {
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			return acks
		}
		var a ack
		if n, _ := fmt.Sscanf(line, "%d %d %d %d %d %d", &a.run, &a.queue, &a.i, &a.offset, &a.start, &a.durability); n == 6 {
			acks = append(acks, a)
		}
	}
}

// killed is what the parent knows of the directory.
type killed struct {
	next  [killQueues]int64  // queue offsets checked so far
	order [killQueues][2]int // run and i of the last record seen
	acked int
}

// check holds a reopened store against the acks of the last run.
func (k *killed) check(s reading, acks []ack) error {
	byOffset := map[[2]int64]seen{}
	for q := range killQueues {
		all, _, err := follow(s, Request{Topic: "k", QueueID: int32(q), Offset: k.next[q]})
		if err != nil {
			return err
		}
		for _, r := range all {
			var run, queue, i int
			if n, _ := fmt.Sscanf(r.body, "%d %d %d ", &run, &queue, &i); n != 3 || queue != q || r.body != string(killBody(run, queue, i)) {
				return fmt.Errorf("queue %d: record %d was never sent", q, r.at)
			}
			// Each run appends 0, 1, 2 and so on: no hole, nothing twice.
			if last := k.order[q]; run < last[0] || run == last[0] && i != last[1]+1 || run > last[0] && i != 0 {
				return fmt.Errorf("queue %d: record %d is number %d of run %d, behind %d of run %d", q, r.at, i, run, last[1], last[0])
			}
			if r.at != k.next[q] {
				return fmt.Errorf("queue %d: record %d where %d comes next", q, r.at, k.next[q])
			}
			k.order[q] = [2]int{run, i}
			k.next[q]++
			byOffset[[2]int64{int64(q), r.at}] = r
		}
	}
	for _, a := range acks {
		want := string(killBody(a.run, a.queue, a.i))
		r, ok := byOffset[[2]int64{int64(a.queue), a.offset}]
		if !ok || r.body != want || r.start != a.start {
			return fmt.Errorf("acknowledged record %+v is not in its queue", a)
		}
		var rec Record
		found, err := s.GetAt(context.Background(), Offset(a.start), &rec)
		if err != nil || !found || string(rec.Body()) != want {
			return fmt.Errorf("acknowledged record %+v is not at its place: %v, %v", a, found, err)
		}
		rec.Release()
	}
	k.acked += len(acks)
	return nil
}

// checkAll reads the whole directory again at the end.
func (k *killed) checkAll(t *testing.T, s *Store) {
	t.Helper()
	total := int64(0)
	for q := range killQueues {
		_, end := s.QueueRange("k", int32(q))
		if end != k.next[q] {
			t.Fatalf("queue %d ends at %d, want %d", q, end, k.next[q])
		}
		total += end
	}
	again := killed{}
	for q := range killQueues {
		again.order[q] = [2]int{-1, -1}
	}
	if err := again.check(s, nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records, %d of them acknowledged, log ends at %d", total, k.acked, s.Health().Watermarks.Appended)
}

// TestKill kills a process with signal 9 again and again, in the middle of
// appends or of opening, and goes on with the same directory.
func TestKill(t *testing.T) {
	cycles := 200
	if testing.Short() {
		cycles = 20
	}
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	k := killed{}
	for q := range killQueues {
		k.order[q] = [2]int{-1, -1}
	}
	inOpen := 0
	for run := range cycles {
		c := startChild(t, "appender", dir, runVar+"="+strconv.Itoa(run))
		if got := c.line(); got != "opening" {
			t.Fatalf("run %d: the child said %q: %s", run, got, c.stderr.String())
		}
		if run%4 == 3 {
			// In the middle of opening, recovering, or the first appends.
			time.Sleep(time.Duration(rng.IntN(6000)) * time.Microsecond)
		} else {
			if got := c.line(); got != "started" {
				_ = c.cmd.Wait()
				t.Fatalf("run %d: the child said %q: %s", run, got, c.stderr.String())
			}
			time.Sleep(time.Duration(1000+rng.IntN(19000)) * time.Microsecond)
		}
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		acks := readAcks(c.out)
		_ = c.cmd.Wait()
		if c.cmd.ProcessState.Exited() {
			t.Fatalf("run %d: the child ended by itself: %s", run, c.stderr.String())
		}
		if len(acks) == 0 {
			inOpen++
		}
		if err := killedCheck(&k, killOptions(dir, run/2), run, acks); err != nil {
			t.Fatalf("run %d: %v", run, err)
		}
	}
	s := start(t, killOptions(dir, 0))
	k.checkAll(t, s)
	if a, err := rebuiltCopy(t, s); err != nil || a != mustAnswers(t, s) {
		t.Fatalf("a full rebuild gives other answers (%v)", err)
	}
	closeClean(t, s)
	t.Logf("%d kills, %d of them before the first ack", cycles, inOpen)
}

// killedCheck reopens after a kill and checks. Sometimes the reopened store is
// not closed well either.
func killedCheck(k *killed, opt Options, run int, acks []ack) error {
	s, err := Open(context.Background(), opt)
	if err != nil {
		return err
	}
	if !s.Report().Unclean {
		return errors.New("the abort file is missing")
	}
	if err := k.check(s, acks); err != nil {
		return err
	}
	if run%3 == 0 {
		r, err := s.Close(context.Background())
		if err == nil && !r.Clean {
			err = fmt.Errorf("not closed well: %+v", r)
		}
		// The next run must still find what Java's presence test finds.
		if err == nil {
			err = os.WriteFile(opt.Dir+"/"+abortName, nil, 0o600)
		}
		return err
	}
	s.log.Close(false)
	return errors.Join(s.queues.Close(), s.lock.Close())
}

// rebuiltCopy is what a copy of s, whose queues are rebuilt, answers.
func rebuiltCopy(t *testing.T, s *Store) (string, error) {
	sim := vfs.NewSim()
	copyTree(t, vfs.OS(), s.opt.Dir, sim, "/copy")
	opt := s.opt
	opt.Dir = "/copy"
	return rebuilt(sim, opt)
}
