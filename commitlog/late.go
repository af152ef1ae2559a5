package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// A record in light queues holds its numbers there among its properties. They
// are known only when the record gets its place, and their length depends on
// them; so such a record is encoded twice: first with the longest numbers, which
// decides whether it fits, and again, under mu, with the real ones. A record of
// no light queue does not pay for that.

// lateProps are the properties of one record that wait for numbers.
type lateProps struct {
	msg   codec.Message
	born  [20]byte
	store [20]byte
	// base are the properties without the late ones.
	base []byte
	// names are the light queues, as the property lists them.
	names   []string
	numbers []int64
	states  []*queueState
	// inner is how many messages a record of a batch queue stands for, 0 for
	// any other, and base the number of the first.
	inner int64
	first int64
}

// count returns how many numbers the record takes in its own queue.
func (p *lateProps) count() int64 {
	if p == nil || p.inner == 0 {
		return 1
	}
	return p.inner
}

// kind is the kind of queue that p goes into.
func (p *prepared) kind() queueKind {
	if p.late != nil && p.late.inner > 0 {
		return kindBatch
	}
	return kindPlain
}

// innerCount returns how many messages a record stands for.
func innerCount(sysFlag codec.SysFlag, props []byte) int64 {
	if sysFlag&codec.SysFlagInnerBatch == 0 {
		return 1
	}
	digits, _ := codec.FindProperty(props, codec.PropertyInnerNumber)
	n, err := strconv.ParseInt(string(digits), 10, 16)
	if err != nil || n <= 0 {
		return 1
	}
	return n
}

// checkInner refuses a message whose flag and property do not agree on whether it
// stands for several.
func checkInner(m *contract.Message) error {
	flag := codec.SysFlag(m.SysFlag)&codec.SysFlagInnerBatch != 0
	if !flag && !bytes.Contains(m.Properties, storeOwned) {
		return nil
	}
	digits, found := codec.FindProperty(m.Properties, codec.PropertyInnerNumber)
	n, err := strconv.ParseInt(string(digits), 10, 16)
	switch {
	case flag && !found:
		return fmt.Errorf("the flag says that it stands for several messages, and no %s how many", codec.PropertyInnerNumber)
	case flag && (err != nil || n <= 0):
		return fmt.Errorf("%s is %q, not a number from 1 to %d", codec.PropertyInnerNumber, digits, math.MaxInt16)
	case !flag && found:
		return fmt.Errorf("there is %s without the flag that it stands for several messages", codec.PropertyInnerNumber)
	case flag && !countsInQueue(codec.SysFlag(m.SysFlag)):
		return errors.New("a record of several messages cannot be part of a transaction")
	}
	return nil
}

// storeOwned starts the names of the properties that the store itself gives.
var storeOwned = []byte("INNER_")

// ownProps returns props without what only the store may say: numbers in light
// queues that a producer gives would lead readers astray.
func ownProps(props []byte) []byte {
	if !bytes.Contains(props, storeOwned) {
		return props
	}
	return codec.DropProperty(props, codec.PropertyMultiOffsets)
}

// lateFor returns what waits for numbers in m, nil if nothing does. props are
// m's own, without a checksum.
func (l *Log) lateFor(m *contract.Message, props []byte, light bool) (*lateProps, error) {
	if codec.SysFlag(m.SysFlag)&codec.SysFlagInnerBatch != 0 {
		p := &lateProps{base: ended(codec.DropProperty(props, codec.PropertyInnerBase)), inner: innerCount(codec.SysFlag(m.SysFlag), props), first: math.MaxInt64}
		return p, nil
	}
	if !light || !bytes.Contains(props, storeOwned) || !countsInQueue(codec.SysFlag(m.SysFlag)) || !codec.MayBeLight(m.Topic) {
		return nil, nil
	}
	names := codec.SplitLight(props)
	if len(names) == 0 {
		return nil, nil
	}
	for _, name := range names {
		if err := checkLight(name); err != nil {
			return nil, reject(contract.StatusInvalidMessage, contract.KindInvalid, "light queues: "+err.Error(), nil)
		}
	}
	p := &lateProps{names: names, numbers: make([]int64, len(names)), states: make([]*queueState, len(names))}
	p.base = ended(props)
	for i := range p.numbers {
		p.numbers[i] = math.MaxInt64
	}
	return p, nil
}

// ended returns a copy of props that ends in a separator.
func ended(props []byte) []byte {
	out := append([]byte(nil), props...)
	if n := len(out); n > 0 && out[n-1] != codec.PropertyEnd {
		out = append(out, codec.PropertyEnd)
	}
	return out
}

// checkLight refuses what is no light queue, or none that could have a
// directory.
func checkLight(name string) error {
	if !codec.IsLight(name) {
		return fmt.Errorf("%q does not start with %s", name, codec.LightPrefix)
	}
	return checkTopic(name)
}

// render returns the properties with the numbers as they are.
func (p *lateProps) render() []byte {
	out := append([]byte(nil), p.base...)
	if p.inner > 0 {
		return codec.AppendProperty(out, codec.PropertyInnerBase, strconv.FormatInt(p.first, 10))
	}
	out = append(out, codec.PropertyMultiOffsets...)
	out = append(out, codec.PropertyNameEnd)
	out = codec.AppendNumbers(out, p.numbers)
	return append(out, codec.PropertyEnd)
}

// hold keeps what c leads to, since the encoder is used again.
func (p *lateProps) hold(c *codec.Message) {
	p.msg = *c
	p.msg.BornHost = p.born[:copy(p.born[:], c.BornHost)]
	p.msg.StoreHost = p.store[:copy(p.store[:], c.StoreHost)]
}

// number finds p's queue, which must be of p's kind, and encodes p once more if it
// waits for numbers, with those that it gets now. It changes no queue. Under mu.
func (l *Log) number(p *prepared) error {
	if !p.inQueue {
		return nil
	}
	p.queue = l.queues.queue(p.topic, p.queueID)
	if have := p.queue.topic.kind; have != kindUnknown && have != p.kind() {
		what := "topic has plain queues, and the record stands for several messages"
		if have == kindBatch {
			what = "topic has batch queues, and the record is no batch"
		}
		return reject(contract.StatusInvalidMessage, contract.KindInvalid, p.topic+": "+what, nil)
	}
	late := p.late
	if late == nil {
		return nil
	}
	late.first = p.queue.next
	for i, name := range late.names {
		late.states[i] = l.queues.queue(name, codec.LightQueueID)
		late.numbers[i] = late.states[i].next
	}
	late.msg.Properties = late.render()
	n := late.msg.Size()
	if n > len(p.buf) {
		return reject(contract.StatusUnknown, contract.KindInternal, "a record grew when it got its numbers", nil)
	}
	p.buf = p.buf[:n]
	if _, err := late.msg.Encode(p.buf); err != nil {
		return reject(contract.StatusInvalidMessage, contract.KindInvalid, "encode", err)
	}
	return nil
}

// take moves the light queues on, each once however often it is named, and not
// if it is the record's own queue, which has moved. Under mu.
func (p *lateProps) take() {
	for i, q := range p.states {
		if q.next == p.numbers[i] {
			q.next++
		}
	}
}
