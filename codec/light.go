package codec

import (
	"bytes"
	"strconv"
	"strings"
)

// Names of the properties by which a record is in light queues, and the start
// of such a queue's topic. A light queue has no records of its own: it is a
// consume queue whose entries lead to records of other topics.
const (
	// PropertyMultiDispatch lists the light queues, with commas.
	PropertyMultiDispatch = "INNER_MULTI_DISPATCH"
	// PropertyMultiOffsets lists the record's numbers in them, in the same
	// order. The store that appends the record gives them.
	PropertyMultiOffsets = "INNER_MULTI_QUEUE_OFFSET"
	// LightPrefix starts the name of every light queue.
	LightPrefix = "%LMQ%"
	// LightQueueID is the queue id of all light queues.
	LightQueueID int32 = 0
)

// MayBeLight says whether records of the topic can be in light queues: those of
// retries, of the system and of delays cannot.
func MayBeLight[T string | []byte](topic T) bool {
	return !hasPrefix(topic, "%RETRY%") && !hasPrefix(topic, "rmq_sys_") && string(topic) != ScheduleTopic
}

func hasPrefix[T string | []byte](s T, prefix string) bool {
	return len(s) >= len(prefix) && string(s[:len(prefix)]) == prefix
}

// IsLight says whether topic is that of a light queue.
func IsLight[T string | []byte](topic T) bool { return hasPrefix(topic, LightPrefix) }

// LightQueues walks the light queues of a record. Its zero value has none.
type LightQueues struct{ names, numbers []byte }

// LightQueues returns the light queues that the record has numbers in. Records
// of a prepared or rolled back transaction have none, and neither has one with
// more names than numbers, or the other way round: Java leaves both out.
func (v *MessageView) LightQueues() LightQueues {
	if !v.NamesLight() {
		return LightQueues{}
	}
	props := v.Properties()
	switch v.SysFlag() & SysFlagTransaction {
	case SysFlagTransactionPrepared, SysFlagTransactionRollback:
		return LightQueues{}
	}
	names, ok := FindProperty(props, PropertyMultiDispatch)
	numbers, found := FindProperty(props, PropertyMultiOffsets)
	if !ok || !found || !MayBeLight(v.Topic()) {
		return LightQueues{}
	}
	names, numbers = bytes.TrimRight(names, ","), bytes.TrimRight(numbers, ",")
	if bytes.Count(names, comma) != bytes.Count(numbers, comma) {
		return LightQueues{}
	}
	return LightQueues{names, numbers}
}

// lightMin is the size of the least properties of a record in a light queue: both
// names, each with a value of one byte behind the prefix, and their separators.
const lightMin = len(PropertyMultiDispatch) + 1 + len(LightPrefix) + 1 + len(PropertyMultiOffsets) + 1 + 1

// NamesLight says, at the price of a look, whether LightQueues may have any.
func (v *MessageView) NamesLight() bool {
	props := v.Properties()
	return len(props) >= lightMin && bytes.Contains(props, multiOffsets)
}

var (
	multiOffsets = []byte(PropertyMultiOffsets)
	comma        = []byte{','}
)

// Next returns the next queue's topic, which aliases the record, and the
// record's number in it; false behind the last. It passes over names of other
// kinds of queues, and over what is no number.
func (l *LightQueues) Next() (name []byte, number int64, ok bool) {
	for len(l.names) > 0 {
		var digits []byte
		name, l.names, _ = bytes.Cut(l.names, comma)
		digits, l.numbers, _ = bytes.Cut(l.numbers, comma)
		if number, ok = parseNumber(digits); ok && IsLight(name) {
			return name, number, true
		}
	}
	return nil, 0, false
}

// parseNumber reads what strconv makes of a number that is not negative.
func parseNumber(digits []byte) (int64, bool) {
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	n := uint64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return int64(n), n <= 1<<63-1
}

// SplitLight returns the names of queues that properties ask for, in order, whatever
// they are. Empty ones at the end do not count, as in Java's split.
func SplitLight(props []byte) []string {
	value, _ := FindProperty(props, PropertyMultiDispatch)
	text := strings.TrimRight(string(value), ",")
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// AppendNumbers appends numbers to dst, with commas.
func AppendNumbers(dst []byte, numbers []int64) []byte {
	for i, n := range numbers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, n, 10)
	}
	return dst
}

// DropProperty returns props without the pairs of one name. If there is none it
// returns props itself, else a new slice.
func DropProperty(props []byte, name string) []byte { return dropProperty(props, nil, name) }
