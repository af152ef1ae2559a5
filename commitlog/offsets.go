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

// queueState is the next offset of one queue; guarded by Log.mu.
type queueState struct {
	next int64
}

// queueTable holds the next offset of every queue; guarded by Log.mu.
type queueTable struct {
	topics map[string]*topicQueues
}

// topicQueues holds the queues of one topic: small ids in a slice, the others
// in a map.
type topicQueues struct {
	small []*queueState
	large map[int32]*queueState
}

const smallQueueIDs = 1024

func newQueueTable() *queueTable { return &queueTable{topics: make(map[string]*topicQueues)} }

// queue returns the state of one queue, made at its first use.
func (t *queueTable) queue(topic string, id int32) *queueState {
	tq := t.topics[topic]
	if tq == nil {
		tq = &topicQueues{}
		t.topics[strings.Clone(topic)] = tq
	}
	if id >= smallQueueIDs {
		q := tq.large[id]
		if q == nil {
			if tq.large == nil {
				tq.large = make(map[int32]*queueState)
			}
			q = &queueState{}
			tq.large[id] = q
		}
		return q
	}
	for int(id) >= len(tq.small) {
		tq.small = append(tq.small, nil)
	}
	if tq.small[id] == nil {
		tq.small[id] = &queueState{}
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
		note(string(v.Topic()), v.QueueID(), v.QueueOffset()+1)
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
