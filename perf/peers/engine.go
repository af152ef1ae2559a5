package main

import (
	"errors"
	"runtime/debug"
	"strings"
)

// mode is what an append waits for.
type mode string

const (
	// modeSync waits for a sync that covers the message.
	modeSync mode = "sync"
	// modeMemory does not: what the answer is worth differs, see promise.
	modeMemory mode = "memory"
)

// way is how the harness brings many producers to an engine.
type way string

const (
	// wayNative calls the engine from all producers at once: it has a group
	// commit, or what it takes for one.
	wayNative way = "native"
	// waySingle calls an engine that takes one caller at a time, one message a
	// call, under a mutex.
	waySingle way = "single"
	// wayBatch goes through our coalescer, which hands the engine what has
	// gathered as one batch.
	wayBatch way = "batch"
)

// promise is what an answer of an engine means in some mode.
type promise struct {
	// process: what was answered outlives a kill of the process. machine: a
	// power cut too, if the disk keeps what it says it synced.
	process, machine bool
	text             string
}

// settings is how a store is opened.
type settings struct {
	mode      mode
	producers int
	// bytes is how many bytes of bodies, each size long, will be appended at
	// most.
	bytes int64
	size  int
}

// store is an open log of an engine. It is also an appender or a batcher, or
// both, and may be a reader and a syncCounter.
type store interface {
	// Scan calls visit with every body in the order of the log; the body is
	// valid until visit returns. Nothing is appended meanwhile.
	Scan(visit func(body []byte) error) error
	Close() error
}

// appender is a store that many producers may call at once.
type appender interface {
	// Append returns when the message is as safe as the mode wants. Each
	// producer makes one call at a time.
	Append(producer int, body []byte) error
}

// batcher is a store that takes many messages from one caller at a time.
type batcher interface {
	AppendBatch(bodies [][]byte) error
}

// reader is a store that finds messages by number, which count from 0 in the
// order of Scan.
type reader interface {
	// Read calls visit with body n, valid until it returns.
	Read(n int64, visit func(body []byte)) error
}

// syncCounter is a store that counts its syncs.
type syncCounter interface {
	Syncs() int64
}

// engine is one of those that are compared.
type engine struct {
	name   string
	module string // whose version is told; empty for our own
	// sync and memory are its promises; one that it cannot give has no text.
	sync, memory promise
	// syncs is what a batch costs it, as the workload check counts them.
	syncs int
	// settings says how it is set up, checks what its reads check.
	settings, checks string
	// alone is the way of one producer, many are those of more.
	alone way
	many  []way
	// async are the ways in which a producer need not wait, of those that many
	// producers have.
	async []way
	open  func(dir string, s settings) (store, error)
}

// slot returns a function that hands a message over by submit and lets done know
// what wait returns, one message at a time. What it starts ends with the process,
// as a cell does.
func slot(submit func(body []byte) error, wait func() error, done func(error)) func(body []byte) error {
	handed := make(chan struct{}, 1)
	go func() {
		for range handed {
			done(wait())
		}
	}()
	return func(body []byte) error {
		if err := submit(body); err != nil {
			return err
		}
		handed <- struct{}{}
		return nil
	}
}

// promiseOf returns the promise for a mode, and whether there is one.
func (e *engine) promiseOf(m mode) (promise, bool) {
	p := e.sync
	if m == modeMemory {
		p = e.memory
	}
	return p, p.text != ""
}

// ways returns how so many producers are brought to e.
func (e *engine) ways(producers int) []way {
	if producers == 1 {
		return []way{e.alone}
	}
	return e.many
}

// version returns the version of the module of e that this program was built
// with.
func (e *engine) version() string {
	if e.module == "" {
		return ""
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == e.module {
			return m.Version
		}
	}
	return "unknown"
}

// synced is the promise of every engine that answers behind a sync.
func synced(how string) promise { return promise{process: true, machine: true, text: how} }

// The names of our own engine and of the yardstick.
const (
	ours      = "stratalog"
	yardstick = "limit"
)

// engines are all of them, in the order of the tables.
var engines = []*engine{
	stratalogEngine, limitEngine, pebbleRecordEngine, raftWALEngine, etcdWALEngine, promWALEngine, tidwallEngine,
	pebbleEngine, badgerEngine, bboltEngine, natsEngine,
}

// apart are engines that are in no plan.
var apart = []*engine{nothingEngine}

// engineNamed returns the engine of that name.
func engineNamed(name string) (*engine, error) {
	for _, e := range engines {
		if e.name == name {
			return e, nil
		}
	}
	for _, e := range apart {
		if e.name == name {
			return e, nil
		}
	}
	return nil, errors.New("no engine is named " + name)
}

// enginesNamed returns the engines of a comma-separated list; an empty one
// means all. Ours and the yardstick are always among them.
func enginesNamed(list string) ([]*engine, error) {
	if list == "" {
		return engines, nil
	}
	wanted := map[string]bool{ours: true, yardstick: true}
	for name := range strings.SplitSeq(list, ",") {
		e, err := engineNamed(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		wanted[e.name] = true
	}
	var chosen []*engine
	for _, e := range engines {
		if wanted[e.name] {
			chosen = append(chosen, e)
		}
	}
	return chosen, nil
}
