package commitlog

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// countsInQueue reports whether a record with these flags takes a place in its
// queue: prepared and rolled back ones do not.
func countsInQueue(sysFlag codec.SysFlag) bool {
	t := sysFlag & codec.SysFlagTransaction
	return t != codec.SysFlagTransactionPrepared && t != codec.SysFlagTransactionRollback
}

// prepared is one record, or a batch of them, encoded but for its late fields.
type prepared struct {
	topic   string
	queueID int32
	inQueue bool
	records int
	sizes   []int32 // of a batch; nil for one record
	buf     []byte
}

// encoders are reused encode targets: the message struct and its host bytes.
type encoder struct {
	msg   codec.Message
	born  [20]byte
	store [20]byte
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// checkTopic refuses what could not be a directory name of a queue.
func checkTopic(topic string) error {
	switch {
	case topic == "":
		return errors.New("topic is empty")
	case len(topic) > maxTopic:
		return fmt.Errorf("topic has %d bytes, at most %d are allowed", len(topic), maxTopic)
	case topic == "." || topic == "..":
		return fmt.Errorf("topic %q is not allowed", topic)
	}
	for i := 0; i < len(topic); i++ {
		if c := topic[i]; c < 0x20 || c == 0x7f || c == '/' || c == '\\' {
			return fmt.Errorf("topic %q holds a separator or control byte at %d", topic, i)
		}
	}
	return nil
}

// CheckTopic returns nil if topic may be appended to.
func CheckTopic(topic string) error {
	if err := checkTopic(topic); err != nil {
		return reject(contract.StatusInvalidMessage, contract.KindInvalid, err.Error(), nil)
	}
	return nil
}

// check judges m without encoding it.
func (l *Log) check(m *contract.Message) error {
	if m == nil {
		return reject(contract.StatusInvalidMessage, contract.KindInvalid, "no message", nil)
	}
	if err := checkTopic(m.Topic); err != nil {
		return reject(contract.StatusInvalidMessage, contract.KindInvalid, err.Error(), nil)
	}
	if m.QueueID < 0 {
		return reject(contract.StatusInvalidMessage, contract.KindInvalid, fmt.Sprintf("queue %d is negative", m.QueueID), nil)
	}
	if len(m.Body) > l.opt.MaxMessageSize {
		return reject(contract.StatusInvalidMessage, contract.KindInvalid,
			fmt.Sprintf("body has %d bytes, at most %d are allowed", len(m.Body), l.opt.MaxMessageSize), nil)
	}
	if n := len(m.Properties); n > maxProperties-codec.ChecksumTrailerSize {
		return reject(contract.StatusPropertiesTooLarge, contract.KindInvalid,
			fmt.Sprintf("properties take %d bytes, at most %d are allowed", n, maxProperties-codec.ChecksumTrailerSize), nil)
	}
	if len(m.Properties) > 0 {
		if err := codec.CheckProperties(m.Properties); err != nil {
			return reject(contract.StatusInvalidMessage, contract.KindInvalid, "properties", err)
		}
	}
	return nil
}

// encode appends the encoded record of m to dst.
func (l *Log) encode(dst []byte, m *contract.Message, now int64) ([]byte, error) {
	if err := l.check(m); err != nil {
		return dst, err
	}
	e := encoders.Get().(*encoder)
	defer func() {
		e.msg = codec.Message{} // must not keep the caller's slices alive
		encoders.Put(e)
	}()
	c := &e.msg
	*c = codec.Message{
		Magic:                     codec.MessageMagicV1,
		QueueID:                   m.QueueID,
		Flag:                      m.Flag,
		SysFlag:                   codec.SysFlag(m.SysFlag) &^ (codec.SysFlagBornHostV6 | codec.SysFlagStoreHostV6),
		BornTimestamp:             m.BornTimestamp,
		ReconsumeTimes:            m.ReconsumeTimes,
		PreparedTransactionOffset: m.PreparedTransactionOffset,
		Body:                      m.Body,
		// The bytes of a string are only read, and only until Encode returns.
		Topic:      unsafe.Slice(unsafe.StringData(m.Topic), len(m.Topic)),
		Properties: m.Properties,
	}
	if c.BornTimestamp == 0 {
		c.BornTimestamp = now
	}
	c.BornHost = l.host(e.born[:0], m.BornHost, codec.SysFlagBornHostV6, &c.SysFlag)
	c.StoreHost = l.host(e.store[:0], m.StoreHost, codec.SysFlagStoreHostV6, &c.SysFlag)
	separator := 0
	if !l.opt.NoRecordChecksum {
		c.Properties = codec.StripChecksum(m.Properties, nil)
		if n := len(c.Properties); n > 0 && c.Properties[n-1] != codec.PropertyEnd {
			separator = 1
		}
		c.PropertiesReserve = codec.ChecksumTrailerSize + separator
	}
	if n := len(c.Properties) + c.PropertiesReserve; n > maxProperties {
		return dst, reject(contract.StatusPropertiesTooLarge, contract.KindInvalid,
			fmt.Sprintf("properties take %d bytes, at most %d are allowed", n, maxProperties), nil)
	}
	size := c.Size()
	if limit := l.maxRecord(); int64(size) > limit {
		return dst, reject(contract.StatusInvalidMessage, contract.KindInvalid,
			fmt.Sprintf("record takes %d bytes, at most %d are allowed", size, limit), nil)
	}
	at := len(dst)
	dst = grow(dst, size)
	if _, err := c.Encode(dst[at:]); err != nil {
		return dst[:at], reject(contract.StatusInvalidMessage, contract.KindInvalid, "encode", err)
	}
	if separator == 1 {
		dst[len(dst)-codec.ChecksumTrailerSize-1] = codec.PropertyEnd
	}
	return dst, nil
}

// maxProperties is the format's limit, the checksum trailer included.
const maxProperties = 32767

// grow returns b with n more bytes, whatever they hold.
func grow(b []byte, n int) []byte {
	need := len(b) + n
	if need <= cap(b) {
		return b[:need]
	}
	bigger := make([]byte, need, max(need, 2*cap(b)))
	copy(bigger, b)
	return bigger
}

// host appends h, or the store's own host if h is zero.
func (l *Log) host(dst []byte, h contract.Host, v6 codec.SysFlag, sysFlag *codec.SysFlag) []byte {
	if h == (contract.Host{}) {
		h = l.opt.StoreHost
	}
	if h.IPv6 {
		*sysFlag |= v6
	}
	return codec.AppendHost(dst, h.Addr, h.IPv6, h.Port)
}
