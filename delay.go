package stratalog

import (
	"strconv"
	"strings"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/cq"
)

// ParseDelayLevels reads delays as Java's messageDelayLevel lists them, from level
// 1 on: numbers with one of the units s, m, h and d, with spaces between.
func ParseDelayLevels(text string) ([]time.Duration, error) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	var levels []time.Duration
	for _, word := range strings.Fields(text) {
		unit := units[word[len(word)-1]]
		n, err := strconv.ParseInt(word[:len(word)-1], 10, 32)
		if err != nil || unit == 0 || n < 0 {
			return nil, invalid("delay %q is no number with s, m, h or d", word)
		}
		levels = append(levels, time.Duration(n)*unit)
	}
	return levels, nil
}

// Delayed returns m as a broker appends it to have it delivered after the delay of
// a level, from 1 to levels: to the topic and queue in which records of that level
// wait, with its own topic and queue among its properties. A level above the
// largest counts as that. The queue's entry then carries the time of delivery, by
// Options.DelayLevels. Properties of m with the same names are replaced.
func Delayed(m Message, level, levels int) Message {
	level = max(1, min(level, levels))
	props := m.Properties
	for _, name := range []string{codec.PropertyDelay, codec.PropertyRealTopic, codec.PropertyRealQueue} {
		props = codec.DropProperty(props, name)
	}
	out := append([]byte(nil), props...)
	if n := len(out); n > 0 && out[n-1] != codec.PropertyEnd {
		out = append(out, codec.PropertyEnd)
	}
	out = codec.AppendProperty(out, codec.PropertyDelay, strconv.Itoa(level))
	out = codec.AppendProperty(out, codec.PropertyRealTopic, m.Topic)
	out = codec.AppendProperty(out, codec.PropertyRealQueue, strconv.Itoa(int(m.QueueID)))
	m.Topic, m.QueueID, m.Properties = codec.ScheduleTopic, int32(level-1), out
	return m
}

// RealQueue returns the topic and queue that a record which waits elsewhere is for:
// one with a delay, or of a transaction. False if its properties name none.
func RealQueue(r *Record) (topic string, queueID int32, ok bool) {
	name, found := codec.FindProperty(r.Properties(), codec.PropertyRealTopic)
	id, has := codec.FindProperty(r.Properties(), codec.PropertyRealQueue)
	n, err := strconv.ParseInt(string(id), 10, 32)
	return string(name), int32(n), found && has && err == nil
}

// delays returns the delays of the queues' entries.
func (o Options) delays() []time.Duration {
	if o.DelayLevels == nil {
		return cq.DefaultDelayLevels()
	}
	return o.DelayLevels
}
