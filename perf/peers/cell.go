package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/stratalog/stratalog/perf/load"
)

// cell is one measurement of one engine. Each runs in a process of its own, so
// that memory and garbage of one engine do not weigh on another.
type cell struct {
	// Kind is what is done: append, order, read, build, reopen, acks or verify.
	Kind string
	// Workload is what it is called in the results.
	Workload  string
	Engine    string
	Way       way
	Mode      mode
	Producers int
	// Async, if not 0, is how many messages of a producer are on their way.
	Async int
	Size  int
	Round int
	Dir   string
	Seed  uint64
	// Duration is how long an append or a read is measured; Records, if not
	// 0, how many messages are appended instead.
	Duration time.Duration
	Records  int64
	// Acked is what a read, reopen or verify must find of each producer.
	Acked []int64
	// NoGather is of the coalescer.
	NoGather bool
	// State tells how the log was left that is opened: clean or killed.
	State string
	// Profile, if not empty, is the file that takes a profile of the CPU while
	// it is measured.
	Profile string
	// Die makes a build announce that it is done and wait for the end.
	Die bool
}

// builders is the number of producers of a log that is built, and one more,
// from which comes what is appended later.
const builders = 64

// title is a line about the cell.
func (c *cell) title() string {
	s := fmt.Sprintf("%s: %s %s, %d producers, %d B, round %d", c.Workload, c.Engine, c.Way, c.Producers, c.Size, c.Round)
	if c.State != "" {
		s += ", " + c.State
	}
	return s
}

func (c *cell) bodies() *load.Bodies { return load.NewBodies(c.Seed, load.FixedSize(c.Size)) }

// settings returns how the store is opened.
func (c *cell) settings() settings {
	return settings{mode: c.Mode, producers: c.Producers, bytes: c.budget(), size: c.Size}
}

// budget bounds the bytes that an append cell writes, so that fast engines end
// before the disk's own limits show: more than a producer can sync, and less
// than dirties the page cache seriously.
func (c *cell) budget() int64 {
	most := int64(512 << 20)
	switch {
	case c.Engine == nothingEngine.name:
		return math.MaxInt64
	case c.Records > 0:
		return c.Records * int64(c.Size)
	case c.Mode == modeSync:
		messages := int64(float64(c.Producers*max(c.Async, 1)) * 15_000 * (c.Duration.Seconds() + 0.1))
		most = min(messages*int64(c.Size)+1<<20, 640<<20)
	}
	return most
}

// run does what the cell says.
func (c *cell) run() (load.Run, error) {
	e, err := engineNamed(c.Engine)
	if err != nil {
		return load.Run{}, err
	}
	promise, ok := e.promiseOf(c.Mode)
	if !ok {
		return load.Run{}, fmt.Errorf("%s has no answer of mode %s", e.name, c.Mode)
	}
	r := load.Run{Schema: load.Schema, Engine: e.name, Workload: c.Workload, Started: time.Now().UTC(), Promise: promise.text,
		Env: load.Environment(c.Dir), Seed: c.Seed, Config: c.config(e)}
	switch c.Kind {
	case "append":
		err = c.append(e, &r)
	case "order":
		err = c.order(e, &r)
	case "build":
		err = c.build(e, &r)
	case "read":
		err = c.read(e, &r)
	case "reopen":
		err = c.reopen(e, &r)
	case "acks":
		err = c.acks(e, os.Stdout)
	case "verify":
		err = c.verify(e, &r)
	default:
		err = fmt.Errorf("no kind of cell is named %q", c.Kind)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", c.title(), err)
	}
	return r, nil
}

// config lists the parameters.
func (c *cell) config(e *engine) []load.Param {
	p := []load.Param{{Name: "mode", Value: string(c.Mode)}, {Name: "way", Value: string(c.Way)},
		{Name: "size", Value: strconv.Itoa(c.Size)}, {Name: "round", Value: strconv.Itoa(c.Round)}}
	if c.Kind == "append" || c.Kind == "order" || c.Kind == "verify" {
		p = append(p, load.Param{Name: "producers", Value: strconv.Itoa(c.Producers)})
	}
	if c.Async > 0 {
		p = append(p, load.Param{Name: "async", Value: strconv.Itoa(c.Async)})
	}
	if c.State != "" {
		p = append(p, load.Param{Name: "state", Value: c.State})
	}
	if v := e.version(); v != "" {
		p = append(p, load.Param{Name: "version", Value: v})
	}
	return p
}

// warmup is how long a cell runs before it is measured.
const warmup = 60 * time.Millisecond

// front is how producers reach a store.
type front struct {
	append appender
	submit submitter // nil if the store has none
	close  func()
	// commits returns how many batches were handed over; nil if that is not
	// known here.
	commits func() int64
}

// submitter is an appender that need not wait: a slot takes a message, and the
// next one when done was called.
type submitter interface {
	Slot(producer int, done func(error)) func(body []byte) error
}

// front returns the way that the cell takes to st.
func (c *cell) front(st store) (front, error) {
	f := front{close: func() {}}
	batches, isBatcher := st.(batcher)
	switch c.Way {
	case waySingle, wayBatch:
		if !isBatcher {
			return f, fmt.Errorf("%s takes no batches", c.Engine)
		}
		if c.Way == waySingle {
			m := &mutexed{log: batches}
			f.append, f.commits = m, m.done.Load
			return f, nil
		}
		co := newCoalescer(batches, c.NoGather)
		f.append, f.submit, f.commits, f.close = co, co, co.batches.Load, co.Close
		return f, nil
	}
	f.append, _ = st.(appender)
	f.submit, _ = st.(submitter)
	if f.append == nil {
		return f, fmt.Errorf("%s takes one caller at a time", c.Engine)
	}
	return f, nil
}

// producer is one producer of a generator.
type producer struct {
	front  *front
	number int
	left   int64  // bytes until the cell has enough
	enough func() // then called
}

func (p *producer) count(body []byte) {
	if p.left -= int64(len(body)); p.left < 0 {
		p.enough()
	}
}

func (p *producer) Append(_ context.Context, _ int64, body []byte) error {
	p.count(body)
	return p.front.append.Append(p.number, body)
}

// asyncProducer is one that need not wait.
type asyncProducer struct{ *producer }

func (p asyncProducer) Slot(done func(error)) func(context.Context, int64, []byte) error {
	submit := p.front.submit.Slot(p.number, done)
	return func(_ context.Context, _ int64, body []byte) error {
		p.count(body)
		return submit(body)
	}
}

// generator returns the load of the cell, through f.
func (c *cell) generator(f *front) (*load.Generator, error) {
	spec := load.Spec{Producers: c.Producers, Async: c.Async, Records: c.Records, Bodies: c.bodies()}
	if c.Records == 0 {
		spec.Duration, spec.WarmupDuration = c.Duration, min(warmup, c.Duration)
	}
	var g *load.Generator
	producers := make([]load.Producer, c.Producers)
	for p := range producers {
		one := &producer{front: f, number: p, left: c.budget() / int64(c.Producers)}
		one.enough = sync.OnceFunc(func() { g.Stop() })
		if producers[p] = one; f.submit != nil {
			producers[p] = asyncProducer{one}
		}
	}
	g, err := load.NewGenerator(spec, producers)
	return g, err
}

// append measures appends and reads all back from a store that was opened anew.
func (c *cell) append(e *engine, r *load.Run) error {
	st, err := e.open(c.Dir, c.settings())
	if err != nil {
		return err
	}
	f, err := c.front(st)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	g, err := c.generator(&f)
	if err == nil {
		err = c.measure(g, st, e, &f, r)
	}
	f.close()
	if err := errors.Join(err, st.Close()); err != nil || e == nothingEngine {
		return err
	}
	acked, sent := make([]int64, c.Producers), make([]int64, c.Producers)
	for p := range acked {
		acked[p], sent[p] = g.Acked(p), g.Sent(p)
	}
	if st, err = e.open(c.Dir, c.settings()); err != nil {
		return fmt.Errorf("opened again: %w", err)
	}
	r.Verified = verify(st, c.bodies(), acked, sent)
	return st.Close()
}

// measure runs the generator and notes what it took.
func (c *cell) measure(g *load.Generator, st store, e *engine, f *front, r *load.Run) error {
	ctx := context.Background()
	if err := g.Warmup(ctx); err != nil {
		return err
	}
	counts := f.counts(st, e)
	before := counts()
	end, err := c.profile()
	if err != nil {
		return err
	}
	meter := load.StartMeter()
	op, err := g.Run(ctx, "append")
	end()
	r.Usage = meter.Stop(op.Records, op.Bytes)
	if err != nil {
		return err
	}
	r.Ops = []load.Op{op}
	if syncs := counts() - before; c.Mode == modeSync && syncs > 0 {
		r.Log = &load.LogCounts{Syncs: syncs, RecordsPerSync: load.Per(float64(op.Records), syncs)}
	}
	return nil
}

// counts returns a function that tells the syncs so far: counted by the engine,
// or by its batches and what -check found that each of them costs.
func (f *front) counts(st store, e *engine) func() int64 {
	if s, ok := st.(syncCounter); ok {
		return s.Syncs
	}
	if f.commits != nil {
		return func() int64 { return f.commits() * int64(e.syncs) }
	}
	return func() int64 { return 0 }
}
