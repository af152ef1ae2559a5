package cq

import (
	"github.com/stratalog/stratalog/codec"
)

// Light queues are consume queues without records of their own: an entry leads
// to a record of another topic, whose properties name the queue and the
// record's number in it. Their files are like those of any queue. What is
// different is whom the numbers can be trusted to come from: a broker that has
// light queues switched off stores these properties as a producer wrote them.
// So a number without a place, or a name that is no directory's, is passed over
// here, where the same of a record's own queue is an error.

// applyLight notes the record's units in light queues.
func (s *Store) applyLight(rec *codec.MessageView, u codec.QueueUnit) error {
	light := rec.LightQueues()
	for {
		name, at, ok := light.Next()
		if !ok {
			return nil
		}
		if checkTopic(name) != nil || checkPlace(codec.LightQueueID, at) != nil {
			s.wild++
			continue
		}
		q, err := s.queueFor(name, codec.LightQueueID)
		if err != nil {
			return err
		}
		q.light = true
		if err := s.put(q, at, u); err != nil {
			return err
		}
	}
}

// HasPlace reports whether the store has a place for a number of a light queue: one
// without is passed over.
func (s *Store) HasPlace(name []byte, at int64) bool {
	return checkTopic(name) == nil && checkPlace(codec.LightQueueID, at) == nil &&
		at-s.Max(string(name), codec.LightQueueID) <= s.unitsPerFile*int64(s.opts.MaxGapFiles)
}

// Belongs reports whether the record is number at of a queue: of its own one, or
// of a light queue that it is in.
func Belongs(rec *codec.MessageView, topic string, queue int32, at int64) bool {
	if rec.QueueID() == queue && rec.QueueOffset() == at && string(rec.Topic()) == topic {
		return true
	}
	if queue != codec.LightQueueID || !codec.IsLight(topic) {
		return false
	}
	light := rec.LightQueues()
	for {
		name, number, ok := light.Next()
		if !ok || number == at && string(name) == topic {
			return ok
		}
	}
}
