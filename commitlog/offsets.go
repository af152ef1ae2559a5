package commitlog

import (
	"strings"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// OffsetSource gives the next queue offset of every queue at open, and again
// after log bytes were cut. It may read the log up to end.
type OffsetSource interface {
	// QueueOffsets calls set once for each queue that ever had a record.
	QueueOffsets(log *Log, end contract.Offset, set func(topic string, queueID int32, next int64)) error
}

// BatchSource is what an OffsetSource may be beside: it knows, when QueueOffsets
// has returned, which topics have queues of batches. A topic is of one kind.
type BatchSource interface {
	BatchTopics() []string
}

// queueKind says what a topic's queues count.
type queueKind uint8

const (
	kindUnknown queueKind = iota // There is no record yet.
	kindPlain
	kindBatch
)

// queueState is the next offset of one queue; guarded by Log.mu.
type queueState struct {
	next  int64
	topic *topicQueues
}

// queueTable holds the next offset of every queue; guarded by Log.mu.
type queueTable struct {
	topics map[string]*topicQueues
}

// topicQueues holds the queues of one topic: small ids in a slice, the others
// in a map.
type topicQueues struct {
	kind  queueKind
	small []*queueState
	large map[int32]*queueState
}

const smallQueueIDs = 1024

func newQueueTable() *queueTable { return &queueTable{topics: make(map[string]*topicQueues)} }

// topic returns the queues of one topic, made at its first use.
func (t *queueTable) topic(topic string) *topicQueues {
	tq := t.topics[topic]
	if tq == nil {
		tq = &topicQueues{}
		t.topics[strings.Clone(topic)] = tq
	}
	return tq
}

// queue returns the state of one queue, made at its first use.
func (t *queueTable) queue(topic string, id int32) *queueState {
	tq := t.topic(topic)
	if id >= smallQueueIDs {
		q := tq.large[id]
		if q == nil {
			if tq.large == nil {
				tq.large = make(map[int32]*queueState)
			}
			q = &queueState{topic: tq}
			tq.large[id] = q
		}
		return q
	}
	for int(id) >= len(tq.small) {
		tq.small = append(tq.small, nil)
	}
	if tq.small[id] == nil {
		tq.small[id] = &queueState{topic: tq}
	}
	return tq.small[id]
}

// scanOffsets is the OffsetSource of a log that stands alone: it reads every
// record.
type scanOffsets struct{}

func (scanOffsets) QueueOffsets(log *Log, end contract.Offset, set func(string, int32, int64)) error {
	next := make(map[string]map[int32]int64)
	note := func(topic string, id int32, n int64) {
		if next[topic] == nil {
			next[topic] = make(map[int32]int64)
		}
		next[topic][id] = max(next[topic][id], n)
	}
	it := log.scanFrom(log.MinOffset(), end)
	for it.Next() {
		v := it.View()
		if !countsInQueue(v.SysFlag()) {
			continue
		}
		note(string(v.Topic()), v.QueueID(), v.QueueOffset()+innerCount(v.SysFlag(), v.Properties()))
		light := v.LightQueues()
		for name, at, ok := light.Next(); ok; name, at, ok = light.Next() {
			note(string(name), codec.LightQueueID, at+1)
		}
	}
	if err := it.Err(); err != nil {
		return err
	}
	for topic, queues := range next {
		for id, n := range queues {
			set(topic, id, n)
		}
	}
	return nil
}
