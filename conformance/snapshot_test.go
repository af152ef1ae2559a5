package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/conformance/javapeer"
	"github.com/stratalog/stratalog/contract"
)

// queueKey names a queue.
type queueKey struct {
	topic string
	queue int32
}

func (k queueKey) String() string { return fmt.Sprintf("%s/%d", k.topic, k.queue) }

// queueSeen is what one side finds in a queue.
type queueSeen struct {
	min, max int64
	// raw are the bytes of its records, from min on.
	raw [][]byte
}

// snapshot is all that one side finds through the queues of a directory. Queues
// that hold nothing are left out: Java makes them up when it is asked.
type snapshot map[queueKey]queueSeen

// records counts.
func (s snapshot) records() int {
	n := 0
	for _, q := range s {
		n += len(q.raw)
	}
	return n
}

// keys returns the queues, sorted.
func (s snapshot) keys() []queueKey {
	return slices.SortedFunc(maps.Keys(s), func(a, b queueKey) int {
		return strings.Compare(fmt.Sprintf("%s/%010d", a.topic, a.queue), fmt.Sprintf("%s/%010d", b.topic, b.queue))
	})
}

// differs returns how a differs from b, nil if not at all.
func differs(what string, a, b snapshot) error {
	var errs []error
	for _, k := range a.keys() {
		x, y := a[k], b[k]
		if x.min != y.min || x.max != y.max || len(x.raw) != len(y.raw) {
			errs = append(errs, fmt.Errorf("%s: %v is [%d,%d) with %d records, the other side has [%d,%d) with %d", what, k,
				x.min, x.max, len(x.raw), y.min, y.max, len(y.raw)))
			continue
		}
		for i := range x.raw {
			if !bytes.Equal(x.raw[i], y.raw[i]) {
				errs = append(errs, fmt.Errorf("%s: %v, record %d: %s", what, k, x.min+int64(i), firstDifference(x.raw[i], y.raw[i])))
				break
			}
		}
	}
	for _, k := range b.keys() {
		if _, ok := a[k]; !ok {
			errs = append(errs, fmt.Errorf("%s: %v with [%d,%d) is there on the other side only", what, k, b[k].min, b[k].max))
		}
	}
	return errors.Join(errs...)
}

func firstDifference(a, b []byte) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%d bytes and %d", len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			return fmt.Sprintf("byte %d of %d is %02x and %02x: %x and %x", i, len(a), a[i], b[i], around(a, i), around(b, i))
		}
	}
	return "equal"
}

func around(b []byte, i int) []byte { return b[max(0, i-8):min(len(b), i+16)] }

// reading is what our Store and Reader have in common.
type reading interface {
	Get(ctx context.Context, req stratalog.Request, out *stratalog.Records) error
	GetAt(ctx context.Context, off stratalog.Offset, out *stratalog.Record) (bool, error)
	Topics() []string
	Queues(topic string) []int32
	QueueRange(topic string, queueID int32) (int64, int64)
}

// follow reads a queue by following Next.
func follow(ctx context.Context, s reading, req stratalog.Request, each func(r *stratalog.Record) error) error {
	var out stratalog.Records
	defer out.Release()
	for {
		if err := s.Get(ctx, req, &out); err != nil {
			return fmt.Errorf("get %s/%d at %d: %w", req.Topic, req.QueueID, req.Offset, err)
		}
		for i := range out.Len() {
			if err := each(out.At(i)); err != nil {
				return err
			}
		}
		switch out.Status {
		case contract.GetOffsetOverflowOne, contract.GetNoMatchedLogicQueue, contract.GetNoMessageInQueue:
			return nil
		}
		if out.Next <= req.Offset {
			return fmt.Errorf("get %s/%d at %d: %v, next is %d", req.Topic, req.QueueID, req.Offset, out.Status, out.Next)
		}
		req.Offset, req.Epoch = out.Next, out.Epoch
	}
}

// oursSees is what we find, by every lookup that there is: each record through
// its queue, at its place, and, if it has a tag, by that.
func oursSees(ctx context.Context, s reading) (snapshot, error) {
	all := snapshot{}
	for _, topic := range s.Topics() {
		for _, queue := range s.Queues(topic) {
			q := queueSeen{}
			q.min, q.max = s.QueueRange(topic, queue)
			if q.min == q.max {
				continue
			}
			at := q.min
			byTag := map[string]int{}
			err := follow(ctx, s, stratalog.Request{Topic: topic, QueueID: queue, Offset: q.min}, func(r *stratalog.Record) error {
				if r.QueueOffset() != at {
					return fmt.Errorf("%s/%d: record %d where %d comes next", topic, queue, r.QueueOffset(), at)
				}
				at++
				q.raw = append(q.raw, bytes.Clone(r.Bytes()))
				if tag, ok := codec.FindProperty(r.Properties(), codec.PropertyTags); ok {
					byTag[string(tag)]++
				}
				return samePlace(ctx, s, r)
			})
			if err != nil {
				return nil, err
			}
			if err := byTags(ctx, s, queueKey{topic, queue}, byTag); err != nil {
				return nil, err
			}
			all[queueKey{topic, queue}] = q
		}
	}
	return all, nil
}

// samePlace reads r's record by its physical offset.
func samePlace(ctx context.Context, s reading, r *stratalog.Record) error {
	var again stratalog.Record
	defer again.Release()
	found, err := s.GetAt(ctx, stratalog.Offset(r.PhysicalOffset()), &again)
	if err != nil || !found || !bytes.Equal(again.Bytes(), r.Bytes()) {
		return fmt.Errorf("record at %d: found by its place: %v, %v", r.PhysicalOffset(), found, err)
	}
	return nil
}

// byTags reads a queue by each of up to some of its tags.
func byTags(ctx context.Context, s reading, k queueKey, want map[string]int) error {
	if k.topic == delayTopic {
		return nil // its units carry times, not tags
	}
	for _, tag := range slices.Sorted(maps.Keys(want))[:min(4, len(want))] {
		n := 0
		first, _ := s.QueueRange(k.topic, k.queue)
		err := follow(ctx, s, stratalog.Request{Topic: k.topic, QueueID: k.queue, Offset: first, Tag: tag}, func(*stratalog.Record) error {
			n++
			return nil
		})
		if err != nil {
			return err
		}
		if n != want[tag] {
			return fmt.Errorf("%v by tag %q: %d records, want %d", k, tag, n, want[tag])
		}
	}
	return nil
}

// javaSees is what Java finds: each record through its queue, at its place, and by
// its tag. What it decodes must be what the bytes say.
func javaSees(ctx context.Context, s *javapeer.Store) (snapshot, error) {
	queues, err := s.Queues(ctx)
	if err != nil {
		return nil, err
	}
	all := snapshot{}
	for _, q := range queues {
		if q.Min >= q.Max {
			continue
		}
		got, err := s.All(ctx, q.Topic, q.Queue, q.Min, "")
		if err != nil {
			return nil, err
		}
		seen := queueSeen{min: q.Min, max: q.Max}
		byTag := map[string]int{}
		for i := range got.Records {
			r := &got.Records[i]
			if r.Undecoded {
				return nil, fmt.Errorf("java cannot decode %s/%d record %d: %x", q.Topic, q.Queue, q.Min+int64(i), r.Raw)
			}
			if !shared(q.Topic) && r.Offset != q.Min+int64(i) {
				return nil, fmt.Errorf("java: %s/%d: record %d where %d comes next", q.Topic, q.Queue, r.Offset, q.Min+int64(i))
			}
			if err := decodedRight(r); err != nil {
				return nil, fmt.Errorf("%s/%d record %d: %w", q.Topic, q.Queue, r.Offset, err)
			}
			if tag := r.Properties["TAGS"]; tag != "" {
				byTag[tag]++
			}
			seen.raw = append(seen.raw, r.Raw)
		}
		if err := javaSpots(ctx, s, q, seen, byTag); err != nil {
			return nil, err
		}
		all[queueKey{q.Topic, q.Queue}] = seen
	}
	return all, nil
}

// shared tells that the records of a topic's queues count otherwise: those of light
// queues are in the queue of another topic, those of batch queues stand for several
// messages each.
func shared(topic string) bool { return strings.HasPrefix(topic, "%LMQ%") || topic == "inner" }

// javaSpots looks a few records up by place and by tag.
func javaSpots(ctx context.Context, s *javapeer.Store, q javapeer.Queue, seen queueSeen, byTag map[string]int) error {
	for i := 0; i < len(seen.raw); i += max(1, len(seen.raw)/4) {
		phy := placeOf(seen.raw[i])
		r, err := s.Read(ctx, phy)
		if err != nil {
			return err
		}
		if !r.Found || !bytes.Equal(r.Raw, seen.raw[i]) {
			return fmt.Errorf("java: record at %d by its place: %v", phy, r.Found)
		}
	}
	if q.Topic == delayTopic {
		return nil
	}
	for _, tag := range slices.Sorted(maps.Keys(byTag))[:min(2, len(byTag))] {
		got, err := s.All(ctx, q.Topic, q.Queue, q.Min, tag)
		if err != nil {
			return err
		}
		if len(got.Records) != byTag[tag] {
			return fmt.Errorf("java: %s/%d by tag %q: %d records, want %d", q.Topic, q.Queue, tag, len(got.Records), byTag[tag])
		}
	}
	return nil
}

const delayTopic = "SCHEDULE_TOPIC_XXXX"

// decodedRight holds what Java decoded against what our codec says.
func decodedRight(r *javapeer.Record) error {
	var v codec.MessageView
	if err := v.Parse(r.Raw); err != nil {
		return err
	}
	properties := map[string]string{}
	codec.WalkProperties(v.Properties(), func(name, value []byte) bool {
		properties[string(name)] = string(value)
		return true
	})
	ours := fmt.Sprint(string(v.Topic()), v.QueueID(), v.QueueOffset(), v.PhysicalOffset(), v.Flag(), int32(v.SysFlag()), v.BornTimestamp(),
		hostOf(v.BornHost()), v.StoreTimestamp(), hostOf(v.StoreHost()), v.ReconsumeTimes(), v.PreparedTransactionOffset(), properties)
	java := fmt.Sprint(r.Topic, r.Queue, r.Offset, r.Phy, r.Flag, r.SysFlag, r.Born, javaHost(r.BornHost), r.Stored,
		javaHost(r.StoreHost), r.Reconsume, r.Prepared, r.Properties)
	if ours != java {
		return fmt.Errorf("we decode %q, java %q", ours, java)
	}
	if !bytes.Equal(v.Body(), r.Body) {
		return fmt.Errorf("we find a body of %d bytes, java one of %d", len(v.Body()), len(r.Body))
	}
	return nil
}

func hostOf(b []byte) netip.AddrPort {
	var v4 codec.HostV4View
	var v6 codec.HostV6View
	if len(b) == codec.HostV6Size && v6.Parse(b) == nil {
		return netip.AddrPortFrom(netip.AddrFrom16(v6.Address()), uint16(v6.Port()))
	} else if v4.Parse(b) == nil {
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Address()), uint16(v4.Port()))
	}
	return netip.AddrPort{}
}

// placeOf returns the place in the log that a record says it has, -1 of what is
// no record.
func placeOf(raw []byte) int64 {
	var v codec.MessageView
	if v.Parse(raw) != nil {
		return -1
	}
	return v.PhysicalOffset()
}

// javaHost parses what Java prints: "/1.2.3.4:5" or "/[0:0:0:0:0:0:0:1]:5".
func javaHost(s string) netip.AddrPort {
	_, s, _ = strings.Cut(s, "/")
	a, _ := netip.ParseAddrPort(s)
	return a
}

// holds checks that every message is in what was seen, where its receipt says.
func holds(seen snapshot, sent []sent) error {
	for i, s := range sent {
		if !s.inQueue() {
			continue
		}
		q := seen[queueKey{s.m.Topic, s.m.QueueID}]
		at := s.offset - q.min
		if at < 0 || at >= int64(len(q.raw)) {
			return fmt.Errorf("message %d is not at %s/%d offset %d, which is [%d,%d)", i, s.m.Topic, s.m.QueueID, s.offset, q.min, q.max)
		}
		if err := s.stands(q.raw[at]); err != nil {
			return fmt.Errorf("message %d, %s/%d offset %d: %w", i, s.m.Topic, s.m.QueueID, s.offset, err)
		}
	}
	return nil
}

// sent is a message that was acknowledged.
type sent struct {
	m      stratalog.Message
	offset int64
	phy    int64
	stored int64
}

func (s sent) inQueue() bool {
	t := codec.SysFlag(s.m.SysFlag) & codec.SysFlagTransaction
	return t == codec.SysFlagTransactionNone || t == codec.SysFlagTransactionCommit
}

// stands checks that raw is the record of s.
func (s sent) stands(raw []byte) error {
	var v codec.MessageView
	if err := v.Parse(raw); err != nil {
		return err
	}
	m := &s.m
	want := fmt.Sprint(m.Topic, m.QueueID, s.offset, s.phy, m.Flag, m.SysFlag&^0x30, m.BornTimestamp, hostWanted(m.BornHost),
		s.stored, hostWanted(m.StoreHost), m.ReconsumeTimes, m.PreparedTransactionOffset, withoutChecksum(m.Properties))
	got := fmt.Sprint(string(v.Topic()), v.QueueID(), v.QueueOffset(), v.PhysicalOffset(), v.Flag(), int32(v.SysFlag()&^(codec.SysFlagBornHostV6|codec.SysFlagStoreHostV6)), v.BornTimestamp(),
		hostOf(v.BornHost()), v.StoreTimestamp(), hostOf(v.StoreHost()), v.ReconsumeTimes(), v.PreparedTransactionOffset(), withoutChecksum(v.Properties()))
	if want != got {
		return fmt.Errorf("stored as %q, sent was %q", got, want)
	}
	if !bytes.Equal(m.Body, v.Body()) {
		return fmt.Errorf("the body has %d bytes, sent were %d", len(v.Body()), len(m.Body))
	}
	return nil
}

// withoutChecksum returns the pairs in their order, without the record's checksum.
func withoutChecksum(props []byte) string {
	var b strings.Builder
	codec.WalkProperties(props, func(name, value []byte) bool {
		if string(name) != codec.PropertyChecksum {
			fmt.Fprintf(&b, "%s=%s;", name, value)
		}
		return true
	})
	return b.String()
}

func hostWanted(h stratalog.Host) netip.AddrPort {
	if h == (stratalog.Host{}) {
		return netip.MustParseAddrPort("127.0.0.1:10911")
	}
	addr := netip.AddrFrom16(h.Addr)
	if !h.IPv6 {
		addr = addr.Unmap()
		if a := addr.As16(); addr.Is6() { // the last 4 bytes count
			addr = netip.AddrFrom4([4]byte(a[12:]))
		}
	}
	return netip.AddrPortFrom(addr, uint16(h.Port))
}
