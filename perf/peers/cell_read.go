package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/stratalog/stratalog/perf/load"
)

// buildBatch is how many messages a build appends at a time, where the engine
// takes many.
const buildBatch = 512

// built returns how many messages of each producer a build appends.
func (c *cell) built(e *engine) []int64 {
	n := make([]int64, builders+1)
	for p := range builders {
		n[p] = c.Records*int64(p+1)/builders - c.Records*int64(p)/builders
	}
	if e.many[0] == wayBatch {
		clear(n)
		n[0] = c.Records
	}
	return n
}

// build writes a log, all of it synced, as fast as the engine takes it, for
// others to read. With Die it then says so and waits to be killed.
func (c *cell) build(e *engine, r *load.Run) error {
	st, err := e.open(c.Dir, c.settings())
	if err != nil {
		return err
	}
	start := time.Now()
	if err := c.fill(st, c.built(e)); err != nil {
		return errors.Join(err, st.Close())
	}
	took := time.Since(start)
	if c.Die {
		fmt.Println("done")
		_, err := io.Copy(io.Discard, os.Stdin) // ends with the parent, if that is not what kills it
		return err
	}
	if err := st.Close(); err != nil {
		return err
	}
	size, err := sizeOf(c.Dir)
	payload := c.Records * int64(c.Size)
	r.Ops = []load.Op{{Name: "append", Count: c.Records, Records: c.Records, Bytes: payload, Seconds: took.Seconds(),
		RecordsPerSec: load.Rate(float64(c.Records), took)}}
	r.Log = &load.LogCounts{Bytes: size, BytesPerPayload: load.Per(float64(size), payload)}
	return err
}

// fill appends so many messages of each producer.
func (c *cell) fill(st store, n []int64) error {
	if n[1] == 0 {
		batches, ok := st.(batcher)
		if !ok {
			return fmt.Errorf("%s takes no batches", c.Engine)
		}
		return c.fillBatches(batches, n[0])
	}
	one, ok := st.(appender)
	if !ok {
		return fmt.Errorf("%s takes one caller at a time", c.Engine)
	}
	bodies := c.bodies()
	errs := make([]error, len(n))
	var wg sync.WaitGroup
	for p := range n {
		wg.Go(func() {
			var body []byte
			for i := int64(0); i < n[p] && errs[p] == nil; i++ {
				body = bodies.Make(body, i*int64(len(n))+int64(p))
				errs[p] = one.Append(p, body)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// fillBatches appends n messages, all of producer 0.
func (c *cell) fillBatches(to batcher, n int64) error {
	bodies := c.bodies()
	var batch [buildBatch][]byte
	for at := int64(0); at < n; {
		some := min(buildBatch, n-at)
		for i := range some {
			batch[i] = bodies.Make(batch[i], (at+i)*(builders+1))
		}
		at += some
		if err := to.AppendBatch(batch[:some]); err != nil {
			return err
		}
	}
	return nil
}

// sizeOf returns the blocks that the files below dir take, in bytes.
func sizeOf(dir string) (int64, error) {
	sum := int64(0)
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += blocks(info)
		}
		return err
	})
	return sum, err
}

// touch reads one word of each cache line.
func touch(body []byte) (sum uint64) {
	for ; len(body) >= 8; body = body[min(64, len(body)):] {
		sum += binary.LittleEndian.Uint64(body)
	}
	return sum
}

// read measures a scan of a log that was built before, and reads at random
// places, in the page cache.
func (c *cell) read(e *engine, r *load.Run) error {
	st, err := e.open(c.Dir, c.settings())
	if err != nil {
		return err
	}
	r.Verified = verify(st, c.bodies(), c.Acked, c.Acked) // brings the files into the cache, too
	end, err := c.profile()
	if err != nil {
		return errors.Join(err, st.Close())
	}
	defer end()
	meter := load.StartMeter()
	n, sum := int64(0), uint64(0)
	start := time.Now()
	err = st.Scan(func(body []byte) error {
		sum += touch(body)
		n++
		return nil
	})
	took := time.Since(start)
	runtime.KeepAlive(sum)
	r.Usage = meter.Stop(n, n*int64(c.Size))
	r.Ops = []load.Op{{Name: "scan", Count: 1, Records: n, Bytes: n * int64(c.Size), Seconds: took.Seconds(),
		RecordsPerSec: load.Rate(float64(n), took), MBPerSec: load.Rate(float64(n*int64(c.Size))/1e6, took)}}
	if at, ok := st.(reader); ok && err == nil && n > 0 {
		var op load.Op
		op, err = c.readRandom(at, n)
		r.Ops = append(r.Ops, op)
	}
	return errors.Join(err, st.Close())
}

// readRandom reads single messages for the duration of the cell.
func (c *cell) readRandom(at reader, n int64) (load.Op, error) {
	op := load.Op{Name: "random read", Arrivals: load.Closed.String()}
	h := load.NewHistogram()
	random := rand.New(rand.NewPCG(c.Seed, uint64(c.Round)))
	size, sum := 0, uint64(0)
	start := time.Now()
	for now := start; now.Sub(start) < c.Duration; {
		if err := at.Read(random.Int64N(n), func(body []byte) { sum += touch(body); size = len(body) }); err != nil {
			return op, err
		}
		end := time.Now()
		h.Record(end.Sub(now))
		op.Count++
		op.Bytes += int64(size)
		now = end
	}
	took := time.Since(start)
	runtime.KeepAlive(sum)
	op.Records, op.Seconds, op.RecordsPerSec = op.Count, took.Seconds(), load.Rate(float64(op.Count), took)
	op.MBPerSec, op.Latency = load.Rate(float64(op.Bytes)/1e6, took), load.Summary(h)
	return op, nil
}

// reopen measures how long it takes until a log can be appended to, and until
// one message was.
func (c *cell) reopen(e *engine, r *load.Run) error {
	end, err := c.profile()
	if err != nil {
		return err
	}
	start := time.Now()
	st, err := e.open(c.Dir, c.settings())
	if err != nil {
		return err
	}
	opened := time.Since(start)
	end()
	f, err := c.front(st)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	err = f.append.Append(builders, c.bodies().Make(nil, builders))
	ready := time.Since(start)
	f.close()
	if err != nil {
		return errors.Join(err, st.Close())
	}
	r.Ops = []load.Op{once("open", opened), once("open and append", ready)}
	if err := st.Close(); err != nil {
		return err
	}
	if st, err = e.open(c.Dir, c.settings()); err != nil {
		return err
	}
	r.Verified = verify(st, c.bodies(), c.Acked, c.Acked)
	return st.Close()
}

// once is an operation that ran once.
func once(name string, took time.Duration) load.Op {
	h := load.NewHistogram()
	h.Record(took)
	return load.Op{Name: name, Count: 1, Records: 1, Seconds: took.Seconds(), Latency: load.Summary(h)}
}

// acks appends until it is killed, and tells each answer by the number of its
// producer, a byte.
func (c *cell) acks(e *engine, to io.Writer) error {
	st, err := e.open(c.Dir, c.settings())
	if err != nil {
		return err
	}
	f, err := c.front(st)
	if err != nil {
		return err
	}
	bodies := c.bodies()
	errs := make(chan error, c.Producers)
	var once sync.Once
	for p := range c.Producers {
		go func() {
			var body []byte
			for n := int64(0); ; n++ {
				body = bodies.Make(body, n*int64(c.Producers)+int64(p))
				if err := f.append.Append(p, body); err != nil {
					once.Do(func() { errs <- err })
					return
				}
				if _, err := to.Write([]byte{byte(p)}); err != nil {
					once.Do(func() { errs <- err })
					return
				}
			}
		}()
	}
	return <-errs
}

// verify reads a log that others wrote, who may have been killed before they told
// of an answer.
func (c *cell) verify(e *engine, r *load.Run) error {
	st, err := e.open(c.Dir, c.settings())
	if err != nil {
		return err
	}
	r.Verified = verify(st, c.bodies(), c.Acked, nil)
	return st.Close()
}

// profile begins a profile of the CPU, if one is wanted, which end ends.
func (c *cell) profile() (end func(), err error) {
	if c.Profile == "" {
		return func() {}, nil
	}
	file, err := os.Create(c.Profile)
	if err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close() // a profile that is cut short says so when it is read
	}, pprof.StartCPUProfile(file)
}

// removeAll removes what a cell left.
func removeAll(dir string) { _ = os.RemoveAll(dir) } // below a temporary directory, which is removed again
