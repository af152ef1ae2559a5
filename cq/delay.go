package cq

import (
	"errors"
	"strconv"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// DefaultDelayLevels returns RocketMQ's delays for the levels from 1 on.
func DefaultDelayLevels() []time.Duration {
	return []time.Duration{
		time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute,
		3 * time.Minute, 4 * time.Minute, 5 * time.Minute, 6 * time.Minute, 7 * time.Minute,
		8 * time.Minute, 9 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour,
	}
}

// Leads reports whether u is a unit of the record, which is number offset of the
// queue: its place and its tags code are the record's, the latter perhaps in the
// queue's extension.
func (s *Store) Leads(u codec.QueueUnit, rec *codec.MessageView, topic string, queue int32, offset int64) (bool, error) {
	if u.PhysicalOffset != rec.PhysicalOffset() || u.Size != rec.TotalSize() || !Belongs(rec, topic, queue, offset) {
		return false, nil
	}
	code := s.tagsCode(rec)
	if u.TagsCode == code || !IsExtAddress(u.TagsCode) {
		return u.TagsCode == code, nil
	}
	e, err := s.ExtUnit(topic, queue, u.TagsCode)
	if errors.Is(err, contract.ErrCorrupt) {
		return false, nil
	}
	return err == nil && e.TagsCode == code && e.StoreTime == rec.StoreTimestamp(), err
}

// tagsCode returns the tags code of a record's unit.
func (s *Store) tagsCode(rec *codec.MessageView) int64 {
	if string(rec.Topic()) == codec.ScheduleTopic && len(s.opts.DelayLevels) > 0 {
		if value, ok := codec.FindProperty(rec.Properties(), codec.PropertyDelay); ok {
			level, err := strconv.ParseInt(string(value), 10, 32)
			if err == nil && level > 0 {
				level = min(level, int64(len(s.opts.DelayLevels)))
				return rec.StoreTimestamp() + s.opts.DelayLevels[level-1].Milliseconds()
			}
		}
	}
	return codec.TagsCode(rec.Properties())
}
