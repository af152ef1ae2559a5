package stratalog

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestPowerCutExt4 stops a real file system in the middle of appends, again and
// again, and goes on with what is on the disk.
func TestPowerCutExt4(t *testing.T) {
	cycles := 20
	if testing.Short() {
		cycles = 4
	}
	d := ext4(t, 96<<20)
	dir := d.dir + "/store"
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	k := killed{}
	for q := range killQueues {
		k.order[q] = [2]int{-1, -1}
	}
	lost := 0
	for run := range cycles {
		c := startChild(t, "appender", dir, runVar+"="+strconv.Itoa(run))
		for _, want := range []string{"opening", "started"} {
			if got := c.line(); got != want {
				_ = c.cmd.Wait()
				t.Fatalf("run %d: the child said %q: %s", run, got, c.stderr.String())
			}
		}
		time.Sleep(time.Duration(5000+rng.IntN(30000)) * time.Microsecond)
		d.cut()
		_ = c.cmd.Process.Kill()
		acks := readAcks(c.out)
		_ = c.cmd.Wait()
		d.unmount()
		d.mount()

		s, err := Open(context.Background(), killOptions(dir, run/2))
		if err != nil {
			t.Fatalf("run %d: %v", run, err)
		}
		all := len(acks)
		acks = slices.DeleteFunc(acks, func(a ack) bool { return a.durability != Sync })
		if err := k.check(s, acks); err != nil {
			t.Fatalf("run %d: %v", run, err)
		}
		lost += all - len(acks)
		if err := errors.Join(s.log.Close(false), s.queues.Close(), s.lock.Close()); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, killOptions(dir, 0))
	k.checkAll(t, s)
	if a, err := rebuiltCopy(t, s); err != nil || a != mustAnswers(t, s) {
		t.Errorf("a full rebuild gives other answers (%v)", err)
	}
	closeClean(t, s)
	t.Logf("%d power cuts, %d Sync acks kept, %d acks of less may have been lost", cycles, k.acked, lost)
	ran(t)
}
