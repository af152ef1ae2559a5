package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/internal/vfs"
	"github.com/stratalog/stratalog/perf/load"
)

// Config is what all workloads that append have in common.
type Config struct {
	// Dir is the store, made if it is not there.
	Dir string
	// Load is how many producers send what and when. Its bodies, if nil, are
	// made from Sizes, or from the files below Corpus.
	Load   load.Spec
	Sizes  load.Sizes
	Corpus string
	// Topics and Queues spread the messages; each topic has Queues queues.
	Topics int
	Queues int
	// Durability, WritePath, SegmentSize and DiskFloor are as in
	// stratalog.Options.
	Durability  stratalog.Durability
	WritePath   stratalog.WritePath
	SegmentSize int64
	DiskFloor   int64
	// Opened, if not nil, is called with what opening the store found and did.
	Opened func(stratalog.LoadReport)
	// FS, if not nil, replaces the operating system's, for runs with faults.
	FS vfs.FS
}

// Validate checks the numbers.
func (c *Config) Validate() error {
	if err := c.Load.Validate(); err != nil {
		return err
	}
	if c.Topics < 1 || c.Queues < 1 || int64(c.Topics)*int64(c.Queues) > 1<<20 {
		return fmt.Errorf("topics, queues: %d x %d is not in 1..%d queues", c.Topics, c.Queues, 1<<20)
	}
	return nil
}

// params lists what a reader of the result wants to know first.
func (c *Config) params(path stratalog.WritePath) []load.Param {
	l := c.Load
	how := "closed loop"
	if l.Arrivals != load.Closed {
		how = fmt.Sprintf("%v, %g/s", l.Arrivals, l.Rate)
	}
	all := []load.Param{
		{Name: "producers", Value: fmt.Sprint(l.Producers)},
		{Name: "async", Value: fmt.Sprint(l.Async)},
		{Name: "arrivals", Value: how},
		{Name: "bodies", Value: l.Bodies.String()},
		{Name: "topics", Value: fmt.Sprint(c.Topics)},
		{Name: "queues", Value: fmt.Sprint(c.Queues)},
		{Name: "durability", Value: c.Durability.String()},
		{Name: "write path", Value: path.String()},
	}
	if c.SegmentSize != 0 {
		all = append(all, load.Param{Name: "segment size", Value: fmt.Sprint(c.SegmentSize)})
	}
	if l.Records != 0 {
		return append(all, load.Param{Name: "records", Value: fmt.Sprint(l.Records)})
	}
	return append(all, load.Param{Name: "duration", Value: l.Duration.String()})
}

// promise says what an ack of durability d means.
func promise(d stratalog.Durability) string {
	switch d {
	case stratalog.Memory:
		return "memory: in the page cache when acknowledged; kept when the process is killed, at most 500 ms lost in a power cut"
	case stratalog.Interval:
		return "interval: in the page cache when acknowledged; at most 10 ms plus a sync lost in a power cut"
	}
	return "sync: on the disk when acknowledged (one fdatasync for many)"
}

// admissionWait is how long a generator waits for room: its own load is what
// fills the store, so a wait is no failure.
const admissionWait = time.Minute

// session is an open store under load.
type session struct {
	cfg    *Config
	store  *stratalog.Store
	trace  *vfs.Trace
	topics []string
	gen    *load.Generator
	mine   []*producer
	m      *measurement
	before map[string]int64 // ends of the queues that nothing is sent to
	warm   []int64          // sent by each producer before the measuring began
}

// open opens the store of a valid config and makes its generator.
func open(ctx context.Context, cfg *Config) (*session, error) {
	l := &cfg.Load
	switch {
	case l.Bodies != nil:
	case cfg.Corpus == "":
		l.Bodies = load.NewBodies(l.Seed, cfg.Sizes)
	default:
		var err error
		if l.Bodies, err = load.NewCorpus(l.Seed, cfg.Corpus, maxCorpusFile); err != nil {
			return nil, err
		}
	}
	inner := cfg.FS
	if inner == nil {
		inner = vfs.OS()
	}
	s := &session{cfg: cfg, trace: vfs.NewTrace(inner).WithHoles()}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	for i := range cfg.Topics {
		s.topics = append(s.topics, fmt.Sprintf("bench%d", i))
	}
	producers := make([]load.Producer, l.Producers)
	for p := range producers {
		one := &producer{s: s, p: p}
		s.mine, producers[p] = append(s.mine, one), one
	}
	var err error
	if s.gen, err = load.NewGenerator(*s.measured(), producers); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.before = s.others()
	return s, nil
}

// maxCorpusFile is the largest file that becomes a body.
const maxCorpusFile = 4 << 20

// start opens the store.
func (s *session) start(ctx context.Context) (err error) {
	c := s.cfg
	s.store, err = openStarted(ctx, stratalog.Options{Dir: c.Dir, SegmentSize: c.SegmentSize, Durability: c.Durability,
		WritePath: c.WritePath, MaxMessageSize: max(c.Load.Bodies.Max(), 4<<20), AdmissionWait: admissionWait, SyncTimeout: admissionWait,
		DiskFloor: c.DiskFloor, FS: s.trace}, c.Opened)
	return err
}

// reopen closes the store and opens it again; cold, it has the system forget in
// between what it caches of it.
func (s *session) reopen(ctx context.Context, cold bool) error {
	if err := s.close(); err != nil {
		return err
	}
	s.store = nil
	if cold {
		if err := DropCache(s.cfg.Dir); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return s.start(ctx)
}

// close closes the store, if there is one: opening it again may have failed.
func (s *session) close() error {
	if s.store == nil {
		return nil
	}
	return closeStore(s.store)
}

func openStarted(ctx context.Context, opt stratalog.Options, opened func(stratalog.LoadReport)) (*stratalog.Store, error) {
	store, err := stratalog.Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	if opened != nil {
		opened(store.Report())
	}
	if err := store.Start(ctx); err != nil {
		return nil, errors.Join(err, closeStore(store))
	}
	return store, nil
}

// closeStore closes within a minute, also after the run was interrupted.
func closeStore(store *stratalog.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := store.Close(ctx)
	return err
}

// queueOf returns the queue of a message, as an index over all topics: each
// producer goes round all of them.
func (s *session) queueOf(seq int64) int {
	producers := int64(s.cfg.Load.Producers)
	return int((seq/producers + seq%producers) % int64(len(s.topics)*s.cfg.Queues))
}

// queue returns topic and id of a queue's index.
func (s *session) queue(i int) (topic string, id int32) {
	return s.topics[i/s.cfg.Queues], int32(i % s.cfg.Queues)
}

// queues returns how many queues there are.
func (s *session) queues() int { return len(s.topics) * s.cfg.Queues }

// ends returns the end of each queue.
func (s *session) ends() []int64 {
	ends := make([]int64, s.queues())
	for i := range ends {
		topic, id := s.queue(i)
		_, ends[i] = s.store.QueueRange(topic, id)
	}
	return ends
}

// waitVisible waits until all that was appended can be read.
func (s *session) waitVisible(ctx context.Context) error {
	return s.store.WaitVisible(ctx, s.store.Health().Watermarks.Appended)
}
