package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/stratalog/stratalog/perf/load"
)

// headSize is how much of a body tells it from all others; bodies are no
// shorter.
const headSize = 8

// checker compares what a log holds with what its producers appended. Bodies
// depend on their numbers alone and each producer's come in order, so that it
// needs no copy: whatever comes next must be the next message of some producer.
type checker struct {
	bodies    *load.Bodies
	producers int64
	next      []int64          // messages found, by producer
	heads     map[uint64]int64 // producer, by the head of its next body
	buf       []byte
	found     int64
	wrong     string
}

// errWrong ends a scan.
var errWrong = errors.New("a message is wrong")

func newChecker(bodies *load.Bodies, producers int) *checker {
	c := &checker{bodies: bodies, producers: int64(producers), next: make([]int64, producers), heads: map[uint64]int64{}}
	for p := range c.producers {
		c.await(p)
	}
	return c
}

// await notes the head of the next body of p.
func (c *checker) await(p int64) {
	c.buf = c.bodies.Make(c.buf, c.next[p]*c.producers+p)
	c.heads[binary.LittleEndian.Uint64(c.buf)] = p
}

// visit takes the next message of the log.
func (c *checker) visit(body []byte) error {
	if len(body) < headSize {
		c.wrong = fmt.Sprintf("message %d of the log has %d bytes", c.found, len(body))
		return errWrong
	}
	head := binary.LittleEndian.Uint64(body)
	p, ok := c.heads[head]
	if !ok || !c.bodies.Check(body, c.next[p]*c.producers+p) {
		c.wrong = fmt.Sprintf("message %d of the log is no producer's next one, or differs from it", c.found)
		return errWrong
	}
	delete(c.heads, head)
	c.found++
	c.next[p]++
	c.await(p)
	return nil
}

// verify reads the whole of st: at least acked messages of each producer must
// be there, at most sent of them; sent may be nil.
func verify(st store, bodies *load.Bodies, acked, sent []int64) load.Verify {
	start := time.Now()
	c := newChecker(bodies, len(acked))
	err := st.Scan(c.visit)
	v := load.Verify{Records: c.found, How: "every message in the order of the log: the bytes, the order of each producer, none missing, none twice"}
	switch {
	case c.wrong != "":
		v.Wrong, v.First = 1, c.wrong
	case err != nil:
		v.Wrong, v.First = 1, fmt.Sprintf("behind message %d of the log: %v", c.found, err)
	}
	for p, n := range acked {
		if missing := n - c.next[p]; missing > 0 {
			v.Missing += missing
		}
		if sent != nil && c.next[p] > sent[p] && v.First == "" {
			v.Wrong, v.First = 1, fmt.Sprintf("producer %d sent %d messages, the log holds %d of them", p, sent[p], c.next[p])
		}
	}
	if v.Missing > 0 && v.First == "" {
		v.First = fmt.Sprintf("%d messages are missing at the end", v.Missing)
	}
	v.OK = v.Missing == 0 && v.Wrong == 0
	v.Seconds = time.Since(start).Seconds()
	return v
}
