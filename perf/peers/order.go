package main

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// order replays what strace saw of a cell of kind order, and holds every answer
// against it: before a message is answered, a sync must have begun behind its
// bytes and ended. Where bytes went is seen in the writes themselves, which strace
// prints. Bytes that went through a mapping are in no write; there the sync must
// have begun behind the call that appended the message.
//
// Strace prints the begin of a call before the thread may enter it and the end
// before the thread may go on. What happened before something else in an honest
// engine, whatever its threads, therefore stands before it in the text.
type order struct {
	at      int // events so far
	calls   map[string]systemCall
	byHead  map[uint64]part
	message []traced
	// synced is, for each file, when the latest began of its syncs that have
	// ended; everything is the same for the calls that sync every file.
	synced     map[string]int
	everything int
	mapped     map[string]bool // files that are written through a mapping
	mappings   []mapping
	dsync      map[string]bool // descriptors whose every write is a sync
	broken     []string
	unseen     int // answered messages whose bytes are in no write
}

// part is an end of a message, told by 8 bytes.
type part struct {
	message int64
	tail    bool
}

// traced is what was seen of a message.
type traced struct {
	begun, answered bool
	begin           int
	files           map[string]*written
}

// written is when the parts of a message were first written to a file; 0 for one
// that was not. durable tells that the write itself was a sync.
type written struct {
	at      [2]int
	durable [2]bool
}

// mapping is a shared one of a file.
type mapping struct {
	from, to uint64
	file     string
}

// systemCall is one that has begun.
type systemCall struct {
	begin            int
	name, args, text string
}

// orderCalls are the system calls that order wants to see. sync_file_range is not
// among them: it is no sync, as its manual says.
const orderCalls = "write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,msync,sync,syncfs,openat,mmap"

// orderText bounds the bytes of a write that strace prints.
const orderText = 1 << 18

// newOrder returns one that knows the bodies of n messages.
func newOrder(c *cell) *order {
	o := &order{calls: map[string]systemCall{}, byHead: map[uint64]part{}, message: make([]traced, c.Records),
		synced: map[string]int{}, mapped: map[string]bool{}, dsync: map[string]bool{}}
	bodies := c.bodies()
	for seq := range c.Records {
		body := tracedBody(bodies, nil, seq)
		o.byHead[binary.LittleEndian.Uint64(body)] = part{message: seq}
		o.byHead[binary.LittleEndian.Uint64(body[len(body)-8:])] = part{message: seq, tail: true}
	}
	return o
}

// line takes the next line of strace.
func (o *order) line(text string) {
	thread, text, ok := strings.Cut(strings.TrimRight(text, "\n"), " ")
	text = strings.TrimLeft(text, " ")
	if !ok || text == "" {
		return
	}
	o.at++
	if strings.HasPrefix(text, "<... ") {
		if call, ok := o.calls[thread]; ok {
			delete(o.calls, thread)
			o.end(call, text)
		}
		return
	}
	name, args, ok := strings.Cut(text, "(")
	if !ok {
		return
	}
	call := systemCall{begin: o.at, name: name, args: args}
	o.begin(call)
	if strings.HasSuffix(text, "<unfinished ...>") {
		o.calls[thread] = call
		return
	}
	o.at++
	o.end(call, text)
}

// begin takes the begin of a call. That of a mark is what counts: what stands
// before it had ended when it was written.
func (o *order) begin(call systemCall) {
	if call.name != "write" || call.file() != markFile {
		return
	}
	word, number, _ := strings.Cut(strings.TrimPrefix(string(call.data()), markPrefix), " ")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 0 || seq >= int64(len(o.message)) {
		return // not one of ours
	}
	m := &o.message[seq]
	switch {
	case word == markBegin && !m.begun:
		m.begun, m.begin = true, o.at
	case word == markAnswer && m.begun && !m.answered:
		m.answered = true
		if len(m.files) == 0 {
			o.unseen++
		}
		if why := o.unsafe(m); why != "" {
			o.broken = append(o.broken, fmt.Sprintf("message %d was answered %s", seq, why))
		}
	default:
		o.broken = append(o.broken, fmt.Sprintf("message %d: a mark %q that does not fit", seq, word))
	}
}

// unsafe tells why a message may not be answered now; empty if it may.
func (o *order) unsafe(m *traced) string {
	if len(m.files) == 0 {
		for file := range o.mapped {
			if max(o.synced[file], o.everything) > m.begin {
				return ""
			}
		}
		if len(o.mapped) == 0 {
			return "and its bytes are in no write"
		}
		return "with no sync of a mapped file since its append began"
	}
	for file, w := range m.files {
		durable := true
		for i, at := range w.at {
			durable = durable && (at == 0 || w.durable[i] || max(o.synced[file], o.everything) > at)
		}
		if durable {
			return ""
		}
	}
	return "before a sync that began behind its bytes had ended, in " + strings.Join(slices.Sorted(maps.Keys(m.files)), " and ")
}

// end takes the end of a call.
func (o *order) end(call systemCall, text string) {
	at := strings.LastIndex(text, " = ")
	if at < 0 {
		return
	}
	result := text[at+len(" = "):]
	if strings.HasPrefix(result, "-1") || strings.HasPrefix(result, "?") {
		return
	}
	switch call.name {
	case "fsync", "fdatasync":
		o.sync(call.file(), call.begin)
	case "sync", "syncfs":
		o.everything = max(o.everything, call.begin)
	case "msync":
		o.msync(call)
	case "mmap":
		o.mmap(call, result)
	case "openat":
		fd, _, _ := strings.Cut(result, "<")
		o.dsync[fd] = strings.Contains(call.args, "O_DSYNC") || strings.Contains(call.args, "O_SYNC")
	default:
		if file := call.file(); file != markFile {
			n, _ := strconv.Atoi(strings.Fields(result)[0])
			o.wrote(call, file, n)
		}
	}
}

// sync notes that one of a file that began then has ended.
func (o *order) sync(file string, begin int) { o.synced[file] = max(o.synced[file], begin) }

// wrote notes where the parts of messages are in a write that took n bytes.
func (o *order) wrote(call systemCall, file string, n int) {
	data := call.data()
	data = data[:min(n, len(data))]
	fd, _, _ := strings.Cut(call.args, "<")
	durable := o.dsync[fd] || strings.Contains(call.args, "RWF_DSYNC") || strings.Contains(call.args, "RWF_SYNC")
	for i := 0; i+8 <= len(data); i++ {
		p, ok := o.byHead[binary.LittleEndian.Uint64(data[i:])]
		if !ok {
			continue
		}
		m := &o.message[p.message]
		if m.files == nil {
			m.files = map[string]*written{}
		}
		w := m.files[file]
		if w == nil {
			w = new(written)
			m.files[file] = w
		}
		which := 0
		if p.tail {
			which = 1
		}
		if w.at[which] == 0 {
			w.at[which], w.durable[which] = o.at, durable
		}
	}
}

// mmap notes a mapping through which a file is written.
func (o *order) mmap(call systemCall, result string) {
	args := strings.SplitN(call.args, ", ", 5)
	if len(args) < 5 || !strings.Contains(args[2], "PROT_WRITE") || !strings.Contains(args[3], "MAP_SHARED") {
		return
	}
	from, err := strconv.ParseUint(result, 0, 64)
	size, err2 := strconv.ParseUint(args[1], 0, 64)
	file := call.file()
	if err == nil && err2 == nil && file != "" {
		o.mapped[file] = true
		o.mappings = append(o.mappings, mapping{from: from, to: from + size, file: file})
	}
}

// msync is a sync of the file that was mapped there last, if it waits.
func (o *order) msync(call systemCall) {
	address, _, _ := strings.Cut(call.args, ",")
	at, err := strconv.ParseUint(address, 0, 64)
	if err != nil || !strings.Contains(call.args, "MS_SYNC") {
		return
	}
	for _, m := range slices.Backward(o.mappings) {
		if at >= m.from && at < m.to {
			o.sync(m.file, call.begin)
			return
		}
	}
}

// file returns the path of the descriptor that the call is for; empty for none.
func (c *systemCall) file() string {
	_, rest, ok := strings.Cut(c.args, "<\\x")
	if !ok {
		return ""
	}
	path, _, _ := strings.Cut(rest, ">")
	return string(unhex("\\x" + path))
}

// data returns the bytes that a write was called with.
func (c *systemCall) data() []byte {
	var all []byte
	for rest := c.args; ; {
		_, after, ok := strings.Cut(rest, "\"")
		if !ok {
			return all
		}
		var text string
		text, rest, _ = strings.Cut(after, "\"")
		all = append(all, unhex(text)...)
	}
}

// unhex reads what strace prints with -xx.
func unhex(text string) []byte {
	b, _ := hex.DecodeString(strings.ReplaceAll(text, "\\x", "")) // what is before a fault
	return b
}

// finish returns what was wrong, the first few in words.
func (o *order) finish() error {
	for seq := range o.message {
		if !o.message[seq].answered {
			o.broken = append(o.broken, fmt.Sprintf("message %d: no mark of its answer", seq))
		}
	}
	if len(o.broken) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d answers are not behind their syncs: %s", len(o.broken), len(o.message),
		strings.Join(o.broken[:min(2, len(o.broken))], "; "))
}
