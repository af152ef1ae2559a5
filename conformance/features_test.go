package conformance

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/conformance/javapeer"
	"github.com/stratalog/stratalog/internal/clock"
)

// TestFeatures has the cases of queues that Java makes only when it is told to:
// we read them, and keep them as they are.
func TestFeatures(t *testing.T) {
	lmq := func(s *setup) { s.more = javapeer.Config{"enableLmq": true, "enableMultiDispatch": true} }
	ext := func(s *setup) { s.more = javapeer.Config{"enableConsumeQueueExt": true} }
	bcq := func(s *setup) { s.types = map[string]string{"inner": "BatchCQ"} }
	runCases(t, []testCase{
		{group: "b", name: "time-lookup", run: ourTimes},
		{group: "a", name: "light-queues", run: func(e *env) error { return readsFeature(e, lmq, lightMessages) }},
		{group: "a", name: "light-queues-kept", run: func(e *env) error { return keepsFeature(e, lmq, lightMessages) }},
		{group: "a", name: "extended-queues", run: func(e *env) error { return readsFeature(e, ext, taggedMessages) }},
		{group: "a", name: "extended-queues-kept", run: func(e *env) error { return keepsFeature(e, ext, taggedMessages) }},
		{group: "a", name: "batch-queues", run: func(e *env) error { return readsFeature(e, bcq, innerBatches) }},
		{group: "a", name: "batch-queues-kept", run: func(e *env) error { return keepsFeature(e, bcq, innerBatches) }},
	})
}

// lightMessages go into light queues, too.
func lightMessages() [][]stratalog.Message {
	return several(60, func(i int, m *stratalog.Message) {
		m.Properties = props("INNER_MULTI_DISPATCH", []string{"%LMQ%a", "%LMQ%a,%LMQ%b"}[i%2], "TAGS", "t")
	})
}

func taggedMessages() [][]stratalog.Message {
	return several(60, func(i int, m *stratalog.Message) { m.Properties = props("TAGS", fmt.Sprintf("tag%d", i%3)) })
}

// innerBatches are records that stand for several messages each, beside others.
func innerBatches() [][]stratalog.Message {
	return several(60, func(i int, m *stratalog.Message) {
		if i%2 == 0 {
			m.Topic, m.QueueID = "inner", 0
			m.SysFlag = int32(codec.SysFlagInnerBatch)
			m.Properties = props("INNER_NUM", "5", "TAGS", "t")
		}
	})
}

// featureSetup is the usual one without the checksum over the record, which Java
// leaves out where it renders the properties anew, and with change.
func featureSetup(change func(*setup)) setup {
	s := usual()
	s.checksum = false
	change(&s)
	return s
}

// readsFeature: Java writes what needs the feature, and we read all of it.
func readsFeature(e *env, change func(*setup), messages func() [][]stratalog.Message) error {
	s := featureSetup(change)
	dir := e.dir()
	_, java, err := e.javaWrites(dir, s, messages())
	if err != nil {
		return err
	}
	ours, err := e.weRead(s.options(dir))
	if err != nil {
		return err
	}
	return differs("ours", ours, java)
}

// keepsFeature: Java writes what needs the feature, we open and close, and Java
// finds what it found before, and goes on.
func keepsFeature(e *env, change func(*setup), messages func() [][]stratalog.Message) error {
	s := featureSetup(change)
	dir := e.dir()
	_, java, err := e.javaWrites(dir, s, messages())
	if err != nil {
		return err
	}
	store, err := openOurs(e.ctx, s.options(dir))
	if err != nil {
		return fmt.Errorf("we do not even open it: %w", err)
	}
	e.note = store.Report().QueueTally
	if err := closeOurs(e.ctx, store); err != nil {
		return err
	}
	again, err := e.javaReads(dir, s)
	if err != nil {
		return err
	}
	if err := differs("java again", again, java); err != nil {
		return err
	}
	_, _, err = e.javaWrites(dir, s, messages())
	return err
}

// times are the store times of a queue's records, and what a lookup by them must
// give.
type times []int64

// lower is the first offset whose time is not before ms, upper the last one whose
// time is not after it; Java's answers lie in the queue's range.
func (t times) lower(ms int64) int64 {
	for i, at := range t {
		if at >= ms {
			return int64(i)
		}
	}
	return int64(len(t))
}

func (t times) upper(ms int64) int64 {
	for i := len(t) - 1; i >= 0; i-- {
		if t[i] <= ms {
			return int64(i)
		}
	}
	return 0
}

// sameTimes asks Java for offsets by time, around each store time of a queue.
func sameTimes(e *env, store *javapeer.Store, topic string, queue int32, t times) error {
	var errs []error
	asked := map[int64]bool{}
	for _, at := range t {
		for _, ms := range []int64{at - 1, at, at + 1, t[0] - 10000, t[len(t)-1] + 10000} {
			if asked[ms] {
				continue
			}
			asked[ms] = true
			for boundary, want := range map[string]int64{"lower": t.lower(ms), "upper": t.upper(ms)} {
				got, err := store.OffsetByTime(e.ctx, topic, queue, ms, boundary)
				if err != nil {
					return err
				}
				if got != want {
					errs = append(errs, fmt.Errorf("%s of %d ms (the first is at %d): java says %d, the model %d", boundary, ms-t[0], 0, got, want))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// spread are messages of one queue, a few to each millisecond.
func spread() [][]stratalog.Message {
	return several(90, func(_ int, m *stratalog.Message) { m.QueueID = 0 })
}

// ourTimes: Java looks up by time in what we wrote, with many records to a
// millisecond and gaps between, over several queue files.
func ourTimes(e *env) error {
	s := usual()
	dir := e.dir()
	groups := spread()
	stamps := make([]sent, len(groups))
	for i := range stamps {
		stamps[i].stored = born + int64(i/7)*13
	}
	wall := &stampedClock{Clock: clock.Real()}
	wall.ms.Store(stamps[0].stored)
	opt := s.options(dir)
	opt.Clock = wall
	all, _, err := e.weWrite(opt, groups, wall, stamps)
	if err != nil {
		return err
	}
	var t times
	for _, m := range all {
		t = append(t, m.stored)
	}
	store, err := e.openJava(e.java, dir, s)
	if err != nil {
		return err
	}
	err = sameTimes(e, store, "kinds", 0, t)
	return errors.Join(err, store.Shutdown(e.ctx))
}
