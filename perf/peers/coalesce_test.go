package main

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// fakeLog is a batcher that remembers, is slow, and fails from some batch on.
type fakeLog struct {
	t       *testing.T
	delay   time.Duration
	failAt  int
	mu      sync.Mutex
	batches int
	largest int
	got     map[string]int
}

var errFake = errors.New("the log has failed")

func (l *fakeLog) AppendBatch(bodies [][]byte) error {
	if !l.mu.TryLock() {
		l.t.Error("two batches at a time")
		return nil
	}
	defer l.mu.Unlock()
	time.Sleep(l.delay)
	l.batches++
	l.largest = max(l.largest, len(bodies))
	if l.failAt != 0 && l.batches >= l.failAt {
		return errFake
	}
	for _, body := range bodies {
		l.got[string(body)]++
	}
	return nil
}

// produce appends each messages from each producer and returns what was
// answered well.
func produce(c *coalescer, producers, each int) (well map[string]bool, failed int) {
	well = map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for n := range each {
				body := fmt.Sprint(p, " ", n)
				err := c.Append(p, []byte(body))
				mu.Lock()
				if err == nil {
					well[body] = true
				} else {
					failed++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return well, failed
}

func TestCoalescer(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, noGather := range []bool{false, true} {
		for _, producers := range []int{1, 2, 16, 200} {
			l := &fakeLog{t: t, delay: 100 * time.Microsecond, got: map[string]int{}}
			c := newCoalescer(l, noGather)
			well, failed := produce(c, producers, 30)
			c.Close()
			if failed != 0 || len(well) != producers*30 || len(l.got) != producers*30 {
				t.Errorf("%d producers: %d answered, %d failed, %d in the log, want %d", producers, len(well), failed, len(l.got), producers*30)
			}
			for body, n := range l.got {
				if n != 1 {
					t.Errorf("%q is in the log %d times", body, n)
				}
			}
			if l.largest > producers || int64(l.batches) != c.batches.Load() {
				t.Errorf("%d producers: a batch of %d; %d batches, %d counted", producers, l.largest, l.batches, c.batches.Load())
			}
		}
	}
	noLeak(t, before)
}

// Every waiter of a batch that failed is told, and so is everybody later: what
// was answered well is what is in the log.
func TestCoalescerFails(t *testing.T) {
	before := runtime.NumGoroutine()
	l := &fakeLog{t: t, delay: 100 * time.Microsecond, failAt: 3, got: map[string]int{}}
	c := newCoalescer(l, false)
	well, failed := produce(c, 16, 20)
	if err := c.Append(0, []byte("late")); !errors.Is(err, errFake) {
		t.Errorf("an append behind the failure: %v", err)
	}
	c.Close()
	if len(well)+failed != 16*20 || len(well) == 0 || failed == 0 {
		t.Errorf("%d answered and %d failed of %d", len(well), failed, 16*20)
	}
	if len(l.got) != len(well) {
		t.Errorf("%d are in the log, %d were answered", len(l.got), len(well))
	}
	if l.batches != 3 {
		t.Errorf("the log was called %d times, want 3: none behind the failure", l.batches)
	}
	noLeak(t, before)
}

// Messages that nobody waits for share batches with those that somebody does; each
// answer comes once, and what it says is what is in the log.
func TestCoalescerSlots(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, failAt := range []int{0, 4} {
		l := &fakeLog{t: t, delay: 100 * time.Microsecond, failAt: failAt, got: map[string]int{}}
		c := newCoalescer(l, false)
		const slots, each = 8, 20
		answers := make(chan string, slots*each)
		var wg sync.WaitGroup
		for p := range slots {
			wg.Go(func() {
				var body string
				free := make(chan bool, 1)
				submit := c.Slot(p, func(err error) {
					if err == nil {
						answers <- body
					}
					free <- true
				})
				buf := make([]byte, 0, 16)
				for n := range each {
					body = fmt.Sprint("slot ", p, " ", n)
					buf = append(buf[:0], body...)
					if submit(buf) != nil {
						return
					}
					clear(buf) // it is the caller's again
					<-free
				}
			})
		}
		well, failed := produce(c, 4, 20)
		wg.Wait()
		c.Close()
		close(answers)
		for body := range answers {
			if well[body] {
				t.Errorf("%q was answered twice", body)
			}
			well[body] = true
		}
		if (failed > 0) != (failAt > 0) || failAt == 0 && len(well) != slots*each+80 || len(l.got) != len(well) {
			t.Errorf("fails at %d: %d answered well, %d failed, %d in the log", failAt, len(well), failed, len(l.got))
		}
		for body := range well {
			if l.got[body] != 1 {
				t.Errorf("%q is in the log %d times", body, l.got[body])
			}
		}
	}
	noLeak(t, before)
}

// noLeak waits until no more goroutines run than before.
func noLeak(t *testing.T, before int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines run, %d did before", runtime.NumGoroutine(), before)
		}
	}
}
