package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/stratalog/stratalog/perf/load"
)

// Marks are writes to a file that takes everything: only strace sees them.
const (
	markFile   = os.DevNull
	markPrefix = "peers "
	markBegin  = "begin"
	markAnswer = "answer"
)

// orderPause is how long a lone producer waits behind an answer. A sync that an
// engine owes for it has then begun, and cannot be taken for that of the next
// message, of an engine whose writes are not seen.
const orderPause = 2 * time.Millisecond

// tracedBody returns body seq with 8 bytes at its end that are in no other, as
// those at its beginning are.
func tracedBody(bodies *load.Bodies, buf []byte, seq int64) []byte {
	buf = bodies.Make(buf, seq)
	for i := range 8 {
		buf[len(buf)-8+i] = ^buf[i]
	}
	return buf
}

// order appends Records messages, each between two marks, for type order
// to look at, and looks whether all are there in the end.
func (c *cell) order(e *engine, r *load.Run) error {
	marks, err := os.OpenFile(markFile, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer marks.Close()
	st, err := e.open(c.Dir, c.settings())
	if err != nil {
		return err
	}
	f, err := c.front(st)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	errs := make([]error, c.Producers)
	var wg sync.WaitGroup
	for p := range c.Producers {
		wg.Go(func() { errs[p] = c.orderProducer(p, &f, marks) })
	}
	wg.Wait()
	f.close()
	if err := errors.Join(append(errs, st.Close())...); err != nil {
		return err
	}
	if st, err = e.open(c.Dir, c.settings()); err != nil {
		return fmt.Errorf("opened again: %w", err)
	}
	r.Verified = c.verifyTraced(st)
	return st.Close()
}

func (c *cell) orderProducer(p int, f *front, marks *os.File) error {
	bodies := c.bodies()
	var body, line []byte
	mark := func(word string, seq int64) error {
		line = append(append(append(line[:0], markPrefix...), word...), ' ')
		line = strconv.AppendInt(line, seq, 10)
		_, err := marks.Write(line)
		return err
	}
	for seq := int64(p); seq < c.Records; seq += int64(c.Producers) {
		body = tracedBody(bodies, body, seq)
		if err := mark(markBegin, seq); err != nil {
			return err
		}
		if err := f.append.Append(p, body); err != nil {
			return err
		}
		if err := mark(markAnswer, seq); err != nil {
			return err
		}
		if c.Producers == 1 {
			time.Sleep(orderPause)
		}
	}
	return nil
}

// verifyTraced looks for each message, once.
func (c *cell) verifyTraced(st store) load.Verify {
	start := time.Now()
	missing := map[string]bool{}
	bodies := c.bodies()
	for seq := range c.Records {
		missing[string(tracedBody(bodies, nil, seq))] = true
	}
	v := load.Verify{How: "every message, once"}
	err := st.Scan(func(body []byte) error {
		v.Records++
		if !missing[string(body)] {
			return errWrong
		}
		delete(missing, string(body))
		return nil
	})
	v.Missing = int64(len(missing))
	if err != nil {
		v.Wrong, v.First = 1, fmt.Sprintf("message %d of the log: %v", v.Records-1, err)
	} else if v.Missing > 0 {
		v.First = fmt.Sprintf("%d messages are missing", v.Missing)
	}
	v.OK = v.Missing == 0 && v.Wrong == 0
	v.Seconds = time.Since(start).Seconds()
	return v
}
