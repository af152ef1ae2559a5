package javapeer

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"

	"github.com/stratalog/stratalog"
)

// Config are options of Java's MessageStoreConfig, by name. A name that ends in
// ? may be unknown to the version.
type Config map[string]any

// With returns c and more.
func (c Config) With(more Config) Config {
	all := Config{}
	for _, from := range []Config{c, more} {
		for name, value := range from {
			all[name] = value
		}
	}
	return all
}

// Store is a Java store that was opened.
type Store struct {
	p  *Process
	id int64
}

// Message is what Java puts.
type Message struct {
	Topic     string `json:"topic"`
	Queue     int32  `json:"queue"`
	Flag      int32  `json:"flag"`
	SysFlag   int32  `json:"sysFlag"`
	Born      int64  `json:"born"`
	BornHost  string `json:"bornHost,omitempty"`
	StoreHost string `json:"storeHost,omitempty"`
	Reconsume int32  `json:"reconsume"`
	Prepared  int64  `json:"prepared"`
	Body      []byte `json:"body"`
	Props     []byte `json:"props"`
}

// MessageOf is m for Java: the zero host becomes the default one of both sides.
func MessageOf(m *stratalog.Message) Message {
	return Message{Topic: m.Topic, Queue: m.QueueID, Flag: m.Flag, SysFlag: m.SysFlag, Born: m.BornTimestamp,
		BornHost: hostText(m.BornHost), StoreHost: hostText(m.StoreHost), Reconsume: m.ReconsumeTimes,
		Prepared: m.PreparedTransactionOffset, Body: m.Body, Props: m.Properties}
}

func hostText(h stratalog.Host) string {
	if h == (stratalog.Host{}) {
		return ""
	}
	addr := netip.AddrFrom16(h.Addr)
	if !h.IPv6 {
		addr = addr.Unmap()
	}
	return netip.AddrPortFrom(addr, uint16(h.Port)).String()
}

// Put is Java's answer to a put.
type Put struct {
	Status string `json:"status"`
	Append string `json:"append"`
	Phy    int64  `json:"phy"`
	Size   int    `json:"size"`
	Offset int64  `json:"offset"`
	Count  int    `json:"count"`
	Stored int64  `json:"stored"`
	ID     string `json:"id"`
}

// Record is what Java reads: the raw bytes and what it makes of them.
type Record struct {
	Raw        []byte            `json:"raw"`
	Found      bool              `json:"found"`
	Undecoded  bool              `json:"undecoded"`
	Topic      string            `json:"topic"`
	Queue      int32             `json:"queue"`
	Offset     int64             `json:"offset"`
	Phy        int64             `json:"phy"`
	Flag       int32             `json:"flag"`
	SysFlag    int32             `json:"sysFlag"`
	Born       int64             `json:"born"`
	BornHost   string            `json:"bornHost"`
	Stored     int64             `json:"stored"`
	StoreHost  string            `json:"storeHost"`
	Reconsume  int32             `json:"reconsume"`
	Prepared   int64             `json:"prepared"`
	BodyCRC    int32             `json:"bodyCRC"`
	Body       []byte            `json:"body"`
	Properties map[string]string `json:"properties"`
	ID         string            `json:"id"`
}

// Got is Java's answer to a get.
type Got struct {
	Status  string   `json:"status"`
	Next    int64    `json:"next"`
	Min     int64    `json:"min"`
	Max     int64    `json:"max"`
	Records []Record `json:"records"`
}

// Queue is one consume queue as Java counts it.
type Queue struct {
	Topic string `json:"topic"`
	Queue int32  `json:"queue"`
	Min   int64  `json:"min"`
	Max   int64  `json:"max"`
}

// Unit is one entry of a consume queue as Java reads it.
type Unit struct {
	Offset int64 `json:"offset"`
	Phy    int64 `json:"phy"`
	Size   int32 `json:"size"`
	Tags   int64 `json:"tags"`
}

// Log is where Java's log begins and ends.
type Log struct {
	Min       int64 `json:"min"`
	Max       int64 `json:"max"`
	Flushed   int64 `json:"flushed"`
	Confirmed int64 `json:"confirmed"`
	Behind    int64 `json:"behind"`
	Flags     int   `json:"flags"`
}

// Open makes a store over dir; nothing is loaded yet. queueTypes gives topics a
// queue.type attribute.
func (p *Process) Open(ctx context.Context, dir string, config Config, queueTypes map[string]string) (*Store, error) {
	var out struct {
		Store int64 `json:"store"`
	}
	args := map[string]any{"dir": dir, "config": config}
	if queueTypes != nil {
		args["queueTypes"] = queueTypes
	}
	err := p.Call(ctx, "open", args, &out)
	return &Store{p, out.Store}, err
}

// Process returns the process in which s lives.
func (s *Store) Process() *Process { return s.p }

// Call runs op on s.
func (s *Store) Call(ctx context.Context, op string, args map[string]any, out any) error {
	all := map[string]any{"store": s.id}
	for name, value := range args {
		all[name] = value
	}
	return s.p.Call(ctx, op, all, out)
}

// Load loads and recovers; false is Java's own verdict.
func (s *Store) Load(ctx context.Context) (bool, error) {
	var out struct {
		Loaded bool `json:"loaded"`
	}
	err := s.Call(ctx, "load", nil, &out)
	return out.Loaded, err
}

// Start takes the lock and begins background work.
func (s *Store) Start(ctx context.Context) error { return s.Call(ctx, "start", nil, nil) }

// Put puts messages one after the other.
func (s *Store) Put(ctx context.Context, messages ...Message) ([]Put, error) {
	var out struct {
		Results []Put `json:"results"`
	}
	err := s.Call(ctx, "put", map[string]any{"messages": messages}, &out)
	return out.Results, err
}

// PutBatch puts messages as one producer's batch; topic, queue, hosts and so on
// are those of the first.
func (s *Store) PutBatch(ctx context.Context, messages ...Message) (Put, error) {
	m := messages[0]
	var out Put
	err := s.Call(ctx, "putBatch", map[string]any{"topic": m.Topic, "queue": m.Queue, "sysFlag": m.SysFlag, "born": m.Born,
		"bornHost": nilIfEmpty(m.BornHost), "storeHost": nilIfEmpty(m.StoreHost), "reconsume": m.Reconsume, "messages": messages}, &out)
	return out, err
}

func nilIfEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// PutStream appends from queues goroutines, count messages each (0: no end), and
// calls acked with each ack.
func (s *Store) PutStream(ctx context.Context, topic string, run, queues int, count int64, acked func(json.RawMessage)) error {
	args := map[string]any{"store": s.id, "topic": topic, "run": run, "queues": queues}
	if count > 0 {
		args["count"] = count
	}
	return s.p.Stream(ctx, "stream", args, nil, acked)
}

// Wait waits until all that was put is in the queues.
func (s *Store) Wait(ctx context.Context) error { return s.Call(ctx, "wait", nil, nil) }

// Get asks for records once; tag may be empty.
func (s *Store) Get(ctx context.Context, topic string, queue int32, offset int64, count int, tag string) (Got, error) {
	var out Got
	err := s.Call(ctx, "get", map[string]any{"topic": topic, "queue": queue, "offset": offset, "count": count, "tag": nilIfEmpty(tag)}, &out)
	return out, err
}

// All reads a queue from an offset to its end; tag may be empty.
func (s *Store) All(ctx context.Context, topic string, queue int32, from int64, tag string) (Got, error) {
	var out Got
	err := s.Call(ctx, "all", map[string]any{"topic": topic, "queue": queue, "offset": from, "tag": nilIfEmpty(tag)}, &out)
	return out, err
}

// Read reads the record at a physical offset.
func (s *Store) Read(ctx context.Context, phy int64) (Record, error) {
	var out Record
	err := s.Call(ctx, "read", map[string]any{"phy": phy}, &out)
	return out, err
}

// Log tells where the log begins and ends.
func (s *Store) Log(ctx context.Context) (Log, error) {
	var out Log
	err := s.Call(ctx, "log", nil, &out)
	return out, err
}

// Queues lists the consume queues, by topic and queue.
func (s *Store) Queues(ctx context.Context) ([]Queue, error) {
	var out struct {
		Queues []Queue `json:"queues"`
	}
	err := s.Call(ctx, "queues", nil, &out)
	slices.SortFunc(out.Queues, func(a, b Queue) int {
		if a.Topic != b.Topic {
			if a.Topic < b.Topic {
				return -1
			}
			return 1
		}
		return int(a.Queue - b.Queue)
	})
	return out.Queues, err
}

// Units reads a queue's entries from offset on.
func (s *Store) Units(ctx context.Context, topic string, queue int32, offset int64) ([]Unit, error) {
	var out struct {
		Units []Unit `json:"units"`
	}
	err := s.Call(ctx, "units", map[string]any{"topic": topic, "queue": queue, "offset": offset}, &out)
	return out.Units, err
}

// Query finds records by key.
func (s *Store) Query(ctx context.Context, topic, key string) ([]Record, error) {
	var out struct {
		Records []Record `json:"records"`
	}
	err := s.Call(ctx, "query", map[string]any{"topic": topic, "key": key, "from": 0}, &out)
	return out.Records, err
}

// OffsetByTime finds a queue offset by store time; boundary is lower or upper.
func (s *Store) OffsetByTime(ctx context.Context, topic string, queue int32, ms int64, boundary string) (int64, error) {
	var out struct {
		Offset int64 `json:"offset"`
	}
	err := s.Call(ctx, "offsetByTime", map[string]any{"topic": topic, "queue": queue, "time": ms, "boundary": boundary}, &out)
	return out.Offset, err
}

// Truncate cuts the log at phy, in Java's way: what stands behind stays in its
// files.
func (s *Store) Truncate(ctx context.Context, phy int64) (bool, error) {
	var out struct {
		Truncated bool `json:"truncated"`
	}
	err := s.Call(ctx, "truncate", map[string]any{"phy": phy}, &out)
	return out.Truncated, err
}

// DeleteExpired removes up to so many of the oldest log files, and what the
// queues hold of them. It returns how many went, and where the log begins then.
func (s *Store) DeleteExpired(ctx context.Context, files int) (deleted int, first int64, err error) {
	var out struct {
		Deleted int   `json:"deleted"`
		Min     int64 `json:"min"`
	}
	err = s.Call(ctx, "deleteExpired", map[string]any{"files": files}, &out)
	return out.Deleted, out.Min, err
}

// DeleteTopics removes the queues of topics.
func (s *Store) DeleteTopics(ctx context.Context, topics ...string) error {
	return s.Call(ctx, "deleteTopics", map[string]any{"topics": topics}, nil)
}

// Shutdown closes the store in order; it takes Java some seconds.
func (s *Store) Shutdown(ctx context.Context) error { return s.Call(ctx, "shutdown", nil, nil) }
