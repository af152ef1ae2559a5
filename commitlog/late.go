package commitlog

import (
	"bytes"
	"fmt"
	"math"

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
func (l *Log) lateFor(m *contract.Message, props []byte) (*lateProps, error) {
	if !l.opt.LightQueues || !bytes.Contains(props, storeOwned) || !countsInQueue(m.SysFlag) || !codec.MayBeLight(m.Topic) {
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
	p.base = append(p.base, props...)
	if n := len(p.base); n > 0 && p.base[n-1] != codec.PropertyEnd {
		p.base = append(p.base, codec.PropertyEnd)
	}
	for i := range p.numbers {
		p.numbers[i] = math.MaxInt64
	}
	return p, nil
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

// number encodes p once more, with the numbers that it gets now. It changes no
// queue. Under mu.
func (l *Log) number(p *prepared) error {
	late := p.late
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
