package conformance

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"net/netip"
	"strings"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// A kind is a set of messages that says something about the format. Three cases
// come of each: Java writes and we read, we write and Java reads, both write the
// same and the files are compared byte by byte.
type kind struct {
	name string
	// groups are put in order; more than one message in a group is a batch.
	groups [][]stratalog.Message
	setup  func(*setup)
	// javaOnly and oursOnly say why only one side can write it.
	javaOnly string
	oursOnly string
}

const born = 1_700_000_000_000

// body is n bytes that depend on i.
func body(i, n int) []byte {
	b := make([]byte, n)
	for k := range b {
		b[k] = byte('a' + (i*7+k)%26)
	}
	return b
}

func props(pairs ...string) []byte {
	var b []byte
	for i := 0; i+1 < len(pairs); i += 2 {
		b = codec.AppendProperty(b, pairs[i], pairs[i+1])
	}
	return b
}

func message(topic string, queue, i int) stratalog.Message {
	return stratalog.Message{Topic: topic, QueueID: int32(queue), BornTimestamp: born + int64(i), Body: body(i, 20+i*37%900)}
}

func singles(ms []stratalog.Message) [][]stratalog.Message {
	groups := make([][]stratalog.Message, len(ms))
	for i := range ms {
		groups[i] = ms[i : i+1 : i+1]
	}
	return groups
}

// several makes n messages and lets change make of each what it likes.
func several(n int, change func(i int, m *stratalog.Message)) [][]stratalog.Message {
	ms := make([]stratalog.Message, n)
	for i := range ms {
		ms[i] = message("kinds", i%3, i)
		change(i, &ms[i])
	}
	return singles(ms)
}

func addr(s string) stratalog.Host { return contract.HostOf(netip.MustParseAddrPort(s)) }

func kinds() []kind {
	return []kind{
		{name: "plain", groups: several(300, func(i int, m *stratalog.Message) {
			m.Topic = []string{"orders", "payments"}[i%2]
			m.Properties = props("UNIQ_KEY", fmt.Sprintf("id%06d", i), "KEYS", fmt.Sprintf("k%d shared", i%10), "TAGS", fmt.Sprintf("tag%d", i%4), "WAIT", "true")
		})},
		{name: "no-properties", groups: several(40, func(int, *stratalog.Message) {})},
		{name: "ipv6-born", groups: several(40, func(_ int, m *stratalog.Message) { m.BornHost = addr("[2001:db8::1]:40000") })},
		{name: "ipv6-store", groups: several(40, func(_ int, m *stratalog.Message) { m.StoreHost = addr("[fe80::abcd]:10911") })},
		{name: "ipv6-mixed", groups: several(60, func(i int, m *stratalog.Message) {
			if i&1 != 0 {
				m.BornHost = addr("[::1]:1")
			}
			if i&2 != 0 {
				m.StoreHost = addr("[2001:db8:1:2:3:4:5:6]:65535")
			}
		})},
		{name: "host-edges", groups: several(30, func(i int, m *stratalog.Message) {
			m.BornHost = addr([]string{"0.0.0.0:0", "255.255.255.255:65535", "127.0.0.1:1", "[::]:0", "10.0.0.2:10911"}[i%5])
		})},
		{name: "empty-body", groups: several(40, func(i int, m *stratalog.Message) {
			if i%3 != 2 {
				m.Body = nil
			}
			if i%2 == 0 {
				m.Properties = props("TAGS", "t")
			}
		})},
		{name: "flags", groups: several(48, func(i int, m *stratalog.Message) {
			m.Flag = []int32{0, 1, -1, 1 << 30, -1 << 31}[i%5]
			m.SysFlag = int32([]codec.SysFlag{0, codec.SysFlagCompressed, codec.SysFlagMultiTags, codec.SysFlagCompressed | codec.SysFlagCompressionLZ4,
				codec.SysFlagCompressed | codec.SysFlagCompressionZSTD, codec.SysFlagCompressed | codec.SysFlagCompressionZLIB, codec.SysFlagNeedUnwrap}[i%7])
			m.ReconsumeTimes = int32(i % 17)
			m.PreparedTransactionOffset = int64(i) << 33
		})},
		{name: "transactions", groups: several(60, func(i int, m *stratalog.Message) {
			m.SysFlag = int32([]codec.SysFlag{codec.SysFlagTransactionNone, codec.SysFlagTransactionPrepared, codec.SysFlagTransactionCommit, codec.SysFlagTransactionRollback}[i%4])
			m.PreparedTransactionOffset = int64(i)
			m.Properties = props("TRAN_MSG", "true", "PGROUP", "g", "UNIQ_KEY", fmt.Sprintf("u%d", i))
		})},
		{name: "properties", groups: several(44, func(i int, m *stratalog.Message) {
			m.Properties = [][]byte{
				nil, props("a", "b"), props("TAGS", "x"), props("KEYS", "one two  three"),
				props("a", "1", "a", "2", "TAGS", "first", "TAGS", "second"),
				props("名", "値", "ключ", "значение", "🔑", "🗝️"),
				props("long", strings.Repeat("v", 20000)),
				props(strings.Repeat("n", 1000), "v"),
				props("= ;,\"\\/", "\x03\x7f \t\n"),
				props("__CRC32", "x", "CRC32#", "y"),
				manyProps(300),
			}[i%11]
		})},
		{name: "checksum-property-incoming", groups: several(24, func(i int, m *stratalog.Message) {
			m.Properties = props("A", "b", "__CRC32#", "0123456789", "TAGS", "t")
			if i%2 == 0 {
				m.Properties = props("__CRC32#", "1")
			}
		})},
		{name: "properties-longest", groups: several(6, func(_ int, m *stratalog.Message) {
			m.Body = []byte("b")
			m.Properties = props("p", strings.Repeat("v", codec.MaxPropertiesLength-codec.ChecksumTrailerSize-3))
		})},
		{name: "body-longest", groups: several(3, func(i int, m *stratalog.Message) {
			m.Body = bytes.Repeat([]byte{byte(i)}, 4<<20-i%2)
		}), setup: func(s *setup) { s.segment, s.maxMessage = 8<<20, 4<<20 }},
		{name: "record-longest", groups: several(3, func(i int, m *stratalog.Message) {
			m.Topic, m.Body = strings.Repeat("t", 127), bytes.Repeat([]byte{byte(i)}, 4<<20)
			m.Properties = props("p", strings.Repeat("v", codec.MaxPropertiesLength-codec.ChecksumTrailerSize-3))
		}), setup: func(s *setup) { s.segment, s.maxMessage = 8<<20, 4<<20 }},
		{name: "topic-lengths", groups: several(20, func(i int, m *stratalog.Message) {
			m.Topic = strings.Repeat("L", []int{1, 2, 63, 64, 126, 127}[i%6])
		})},
		{name: "topic-scripts", groups: several(70, func(i int, m *stratalog.Message) {
			m.Topic = []string{"订单", "заказы", "注文", "주문", "طلبات", "παραγγελίες", "ऑर्डर", "פקודות", "😀🚀", "Ünïcödé-ǅ"}[i%10]
			m.Properties = props("KEYS", "clé-ключ", "TAGS", []string{"étiquette", "тег", "标签", "🏷"}[i%4])
		})},
		{name: "topic-signs", groups: several(60, func(i int, m *stratalog.Message) {
			m.Topic = []string{"%RETRY%group", "%DLQ%group", "a.b-c_d", "..a", "with space", "a#b?c*d", "'quoted\"", "~", "-", "TBW102"}[i%10]
		})},
		{name: "queue-ids", groups: several(30, func(i int, m *stratalog.Message) {
			m.QueueID = []int32{0, 1, 7, 4095, 1<<31 - 1}[i%5]
		})},
		{name: "many-queues", groups: several(600, func(i int, m *stratalog.Message) {
			m.Topic, m.QueueID = fmt.Sprintf("many%d", i%20), int32(i%8)
			m.Body = body(i, 30)
		})},
		{name: "queue-files-roll", groups: several(500, func(i int, m *stratalog.Message) {
			m.QueueID, m.Body = int32(i%2), body(i, 10)
		}), setup: func(s *setup) { s.queueFile = 200 }},
		{name: "queue-file-rounded", groups: several(120, func(i int, m *stratalog.Message) {
			m.QueueID, m.Body = 0, body(i, 10)
		}), setup: func(s *setup) { s.queueFile = 333 }},
		{name: "delay-levels", groups: several(66, func(i int, m *stratalog.Message) {
			m.Topic, m.QueueID = delayTopic, int32(i%18)
			if i%22 != 21 {
				m.Properties = props("DELAY", fmt.Sprint(i%22), "REAL_TOPIC", "orders", "REAL_QID", "0", "TAGS", "t")
			}
		})},
		{name: "batch", groups: batches(12, 25, 60)},
		{name: "batch-of-one-two", groups: append(batches(6, 1, 60), batches(6, 2, 60)...)},
		{name: "batch-at-the-end", groups: batches(30, 16, 700)},
		{name: "batch-ipv6", groups: hosts(batches(9, 5, 100))},
		{name: "batch-empty-bodies", groups: batches(9, 4, 0)},
		{name: "batch-large", groups: batches(4, 20, 2000)},
		{name: "body-lengths", groups: several(260, func(i int, m *stratalog.Message) {
			m.Body = body(i, []int{i, 4096 - 130 + i, 8192 - 130 + i}[i%3])
		})},
		{name: "compressed", groups: several(40, func(i int, m *stratalog.Message) {
			m.Body, m.SysFlag = deflated(body(i, 2000+i)), int32(codec.SysFlagCompressed|codec.SysFlagCompressionZLIB)
			m.Properties = props("UNIQ_KEY", fmt.Sprintf("z%d", i))
		})},
		{name: "blanks", groups: blanks(8, 150, 1), setup: func(s *setup) { s.segment, s.maxMessage = blankSegment, 4000 }},
		{name: "blanks-wide", groups: blanks(150, 3900, 37), setup: func(s *setup) { s.segment, s.maxMessage = blankSegment, 4000 }},
		{name: "sync-flush", groups: several(60, func(i int, m *stratalog.Message) { m.Properties = props("KEYS", fmt.Sprint(i)) }),
			setup: func(s *setup) { s.more = map[string]any{"flushDiskType": "SYNC_FLUSH"} }},
		{name: "transient-pool", groups: several(200, func(i int, m *stratalog.Message) { m.Properties = props("KEYS", fmt.Sprint(i)) }),
			setup: func(s *setup) {
				s.more = map[string]any{"transientStorePoolEnable": true, "transientStorePoolSize": 2}
			}},
		{name: "mmap-path", groups: several(300, func(i int, m *stratalog.Message) { m.Properties = props("KEYS", fmt.Sprint(i)) }),
			setup: func(s *setup) { s.path = stratalog.WriteMmap }},
		{name: "concurrent-recovery-options", groups: several(100, func(int, *stratalog.Message) {}),
			setup: func(s *setup) {
				s.more = map[string]any{"forceVerifyPropCRC": true, "enableAcceleratedRecovery?": true, "checkCommitLogOffsetOnRecover?": true}
			}},
		{name: "topic-v2", groups: several(30, func(i int, m *stratalog.Message) {
			m.Topic = strings.Repeat("V", []int{128, 129, 200, 255}[i%4])
		}), javaOnly: "we refuse topics over 127 bytes, as Java's broker does"},
		{name: "properties-no-last-separator", groups: several(24, func(i int, m *stratalog.Message) {
			m.Properties = [][]byte{[]byte("a\x01b"), []byte("TAGS\x01t\x02k\x01v"), []byte("a\x01\x02TAGS\x01t\x02"), []byte("\x01v\x02TAGS\x01t\x02"), []byte("novalue\x02"), []byte("x\x01y\x01z\x02")}[i%6]
		}), javaOnly: "we refuse properties that are not whole pairs"},
		{name: "born-edges", groups: several(12, func(i int, m *stratalog.Message) {
			m.BornTimestamp = []int64{0, -1, 1<<63 - 1, -1 << 63}[i%4]
		}), javaOnly: "0 stands for now on our side"},
	}
}

func manyProps(n int) []byte {
	var b []byte
	for i := range n {
		b = codec.AppendProperty(b, fmt.Sprintf("name%d", i), fmt.Sprint(i))
	}
	return b
}

// hosts gives each group one address of sixteen bytes, born or stored or both.
func hosts(groups [][]stratalog.Message) [][]stratalog.Message {
	for g, ms := range groups {
		for i := range ms {
			if g%3 != 0 {
				ms[i].BornHost = addr("[2001:db8::7]:4711")
			}
			if g%3 != 1 {
				ms[i].StoreHost = addr("[2001:db8::8]:10911")
			}
		}
	}
	return groups
}

// deflated is what a producer stores that compresses bodies.
func deflated(b []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		panic(err) // into memory
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// batches makes n batches of size messages with bodies of about length bytes.
func batches(n, size, length int) [][]stratalog.Message {
	var groups [][]stratalog.Message
	for b := range n {
		var g []stratalog.Message
		for i := range size {
			m := message("batches", b%3, b*size+i)
			m.BornTimestamp = born + int64(b) // one for all of a batch
			m.Body = body(i, length+i)
			m.Flag = int32(i)
			m.Properties = props("UNIQ_KEY", fmt.Sprintf("b%di%d", b, i), "TAGS", fmt.Sprintf("tag%d", i%3))
			g = append(g, m)
		}
		groups = append(groups, g)
	}
	return groups
}

const (
	blankSegment = 4096
	// least is the smallest record of a topic of one byte, with its checksum.
	least = 91 + 1 + 20
)

// sized is a message whose record takes n bytes.
func sized(i, n int) stratalog.Message {
	m := message("b", 0, i)
	m.Topic, m.Body = "b", body(i, n-least)
	return m
}

// blanks makes messages so that segments end in a blank record at each distance
// from from to to: one that leaves so many bytes, and one that does not fit into
// them and leaves the fewest that are possible.
func blanks(from, to, step int) [][]stratalog.Message {
	var ms []stratalog.Message
	for left := from; left <= to; left += step {
		ms = append(ms, sized(len(ms), blankSegment-left), sized(len(ms)+1, blankSegment-8))
	}
	return singles(ms)
}
