package main

import (
	"fmt"
	"slices"
	"time"
)

// plan is what is measured.
type plan struct {
	engines   []*engine
	rounds    int
	duration  time.Duration
	producers []int
	sizes     []int // of durable appends
	memory    []int // sizes of appends without sync
	logSize   int64 // of the log that is read, and opened again
	logBody   int   // of its messages
	seed      uint64
	noGather  bool
	all       bool
}

// async is how many messages of a producer are on their way in the rows that
// say so, and with how many producers there are such rows.
const async = 64

var asyncProducers = []int{1, 16}

// nativeProducers is with how many producers the native way of an engine is
// shown that is faster in batches.
const nativeProducers = 64

// rotate returns list, begun at element n.
func rotate[T any](list []T, n int) []T {
	n %= max(len(list), 1)
	return slices.Concat(list[n:], list[:n])
}

// durable returns the cells of one round with so many producers.
func (p *plan) durable(round, producers, size int) []cell {
	var cells []cell
	for _, e := range p.engines {
		c := cell{Kind: "append", Workload: "durable append", Engine: e.name, Mode: modeSync, Producers: producers, Size: size,
			Round: round, Seed: p.seed, Duration: p.duration, NoGather: p.noGather}
		for i, w := range e.ways(producers) {
			if i > 0 && producers != nativeProducers && !p.all {
				continue
			}
			c.Way = w
			cells = append(cells, c)
		}
		if slices.Contains(asyncProducers, producers) {
			for _, w := range e.async {
				c.Way, c.Async = w, async
				cells = append(cells, c)
			}
		}
	}
	return rotate(cells, round*3)
}

// unsynced returns the cells of one round without sync.
func (p *plan) unsynced(round, size int) []cell {
	var cells []cell
	for _, e := range append(slices.Clone(p.engines), nothingEngine) {
		if _, ok := e.promiseOf(modeMemory); !ok {
			continue
		}
		cells = append(cells, cell{Kind: "append", Workload: "append without sync", Engine: e.name, Way: e.alone, Mode: modeMemory,
			Producers: 1, Size: size, Round: round, Seed: p.seed, Duration: p.duration})
	}
	return rotate(cells, round*3)
}

// built returns the cell that builds the log of an engine.
func (p *plan) built(e *engine, dir string, die bool) cell {
	return cell{Kind: "build", Workload: "build", Engine: e.name, Way: e.alone, Mode: modeSync, Producers: builders + 1, Size: p.logBody,
		Seed: p.seed, Records: p.logSize / int64(p.logBody), Dir: dir, Die: die}
}

// run does everything that is wanted.
func (b *bench) run(p *plan, workloads []string) error {
	for _, w := range workloads {
		var err error
		switch w {
		case "durable":
			err = b.appends(p, w, p.rounds, p.sizes, p.producers)
		case "memory":
			err = b.appends(p, w, p.rounds, p.memory, []int{1})
		case "read":
			err = b.reads(p)
		case "reopen":
			err = b.reopens(p)
		case "check":
			err = b.checks(p)
		default:
			err = fmt.Errorf("no workload is named %q", w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// appends runs the cells of a workload, all engines side by side in each round.
func (b *bench) appends(p *plan, workload string, rounds int, sizes, producers []int) error {
	for round := range rounds {
		for _, size := range sizes {
			for _, n := range producers {
				cells := p.unsynced(round, size)
				if workload == "durable" {
					cells = p.durable(round, n, size)
				}
				b.say("%s: round %d of %d, %d B, %d producers, %d cells", workload, round+1, rounds, size, n, len(cells))
				for _, c := range cells {
					if err := b.measure(c); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// reads builds a log of each engine and reads them, round by round.
func (b *bench) reads(p *plan) error {
	dirs := map[string]string{}
	defer func() {
		for _, dir := range dirs {
			removeAll(dir)
		}
	}()
	b.say("read: building a log of %d MiB for each engine", p.logSize>>20)
	for _, e := range p.engines {
		dir, err := b.fresh()
		if err != nil {
			return err
		}
		dirs[e.name] = dir
		c := p.built(e, dir, false)
		r, err := child(c)
		if err != nil {
			return err
		}
		// It is opened again and read in a process of its own, as all else is.
		c.Kind, c.Acked = "verify", c.built(e)
		again, err := child(c)
		if err != nil {
			return err
		}
		if r.Verified = again.Verified; !r.Verified.OK {
			return wrong(&c, r.Verified)
		}
		if err := b.keep(r); err != nil {
			return err
		}
	}
	for round := range p.rounds {
		b.say("read: round %d of %d", round+1, p.rounds)
		for _, e := range rotate(p.engines, round*3) {
			c := p.built(e, dirs[e.name], false)
			c.Kind, c.Workload, c.Round, c.Duration, c.Acked = "read", "read", round, p.duration, c.built(e)
			if err := b.measure(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// reopens builds logs, leaves them closed or killed, and opens them again.
func (b *bench) reopens(p *plan) error {
	rounds := min(p.rounds, 3)
	for round := range rounds {
		b.say("reopen: round %d of %d", round+1, rounds)
		for _, e := range rotate(p.engines, round*3) {
			for _, state := range []string{"clean", "killed"} {
				if err := b.reopenOne(p, e, round, state); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (b *bench) reopenOne(p *plan, e *engine, round int, state string) error {
	dir, err := b.fresh()
	if err != nil {
		return err
	}
	defer removeAll(dir)
	c := p.built(e, dir, state == "killed")
	if state == "killed" {
		err = killBuilt(c)
	} else {
		_, err = child(c)
	}
	if err != nil {
		return err
	}
	c.Kind, c.Workload, c.Round, c.State, c.Die, c.Acked = "reopen", "reopen", round, state, false, c.built(e)
	c.Acked[builders] = 1
	c.Profile = b.profileOf(c)
	r, err := child(c)
	if err != nil {
		return err
	}
	if !r.Verified.OK {
		return wrong(&c, r.Verified)
	}
	return b.keep(r)
}
