package gen

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/codec"
)

// storeReader compares what Kaitai read of the files of a store with what the
// codecs read.
type storeReader struct {
	t *testing.T
	// names and records are by the name of a record.
	names   map[string]*kaitaiNames
	records map[string]*Record
	// count says how many records were compared.
	count map[string]int
}

// record compares the record at the front of b.
func (s *storeReader) record(what, record string, b []byte, value any) {
	s.t.Helper()
	s.count[record]++
	want, _, _ := describeCodec(s.t, record, b)
	for _, f := range want {
		group, _, _ := strings.Cut(f.name, "[")
		s.count[record+"."+group]++
	}
	m, ok := value.(map[string]any)
	if !ok {
		s.t.Errorf("%s: Kaitai has no %s", what, record)
		return
	}
	k := &kaitaiReader{s.t, s.names[record]}
	sameFields(s.t, what, flatten("", k.pieces(s.records[record], m)), want)
}

// list returns a list of what Kaitai read, which must have n elements.
func (s *storeReader) list(what string, value map[string]any, name string, n int) []map[string]any {
	s.t.Helper()
	list, _ := value[name].([]any)
	if len(list) != n {
		s.t.Fatalf("%s: Kaitai has %d %s, want %d", what, len(list), name, n)
	}
	var out []map[string]any
	for _, x := range list {
		out = append(out, x.(map[string]any))
	}
	return out
}

// segment compares the records of a segment.
func (s *storeReader) segment(what string, b []byte, value map[string]any) {
	entries := value["entries"].([]any)
	at, i := 0, 0
	for ; at < len(b); i++ {
		if i == len(entries) {
			s.t.Fatalf("%s: Kaitai ends after %d entries, at byte %d", what, i, at)
		}
		entry := entries[i].(map[string]any)
		where := fmt.Sprintf("%s at %d", what, at)
		size, magic, _ := codec.PeekMessage(b[at:])
		switch magic {
		case codec.MessageMagicV1, codec.MessageMagicV2:
			s.count[fmt.Sprintf("%#x", magic)]++
			s.record(where, "Message", b[at:at+int(size)], entry["message"])
			if left := fmt.Sprint(entry["message"].(map[string]any)["_left"]); left != "0" {
				s.t.Errorf("%s: Kaitai leaves %s bytes of the message", where, left)
			}
		case codec.BlankMagic:
			s.record(where, "Blank", b[at:at+codec.BlankSize], entry["blank"])
		default:
			if entry["message"] != nil || entry["blank"] != nil {
				s.t.Errorf("%s: Kaitai has a record where there is none", where)
			}
			size = int32(len(b) - at) // the end
		}
		at += int(size)
	}
	if i != len(entries) {
		s.t.Errorf("%s: Kaitai has %d entries, want %d", what, len(entries), i)
	}
}

// slots compares the slots of a sidecar file.
func (s *storeReader) slots(what string, b []byte, value map[string]any) {
	size := len(b) / 2
	for i, slot := range s.list(what, value, "slots", 2) {
		where := fmt.Sprintf("%s slot %d", what, i)
		b := b[i*size : (i+1)*size]
		if written, is := slot["isWritten"].(bool), !bytes.Equal(b[:4], make([]byte, 4)); written != is {
			s.t.Errorf("%s: written is %v, want %v", where, written, is)
			continue
		} else if !is {
			continue
		}
		record := "State"
		if strings.HasSuffix(what, "/bound") {
			record = "Bound"
		}
		s.record(where, record, b, slot["record"])
	}
}

// file compares a whole file.
func (s *storeReader) file(what, parser string, b []byte, value map[string]any) {
	switch parser {
	case "commitlog_segment":
		s.segment(what, b, value)
	case "consumequeue_file":
		for i, unit := range s.list(what, value, "units", len(b)/codec.QueueUnitSize) {
			s.record(fmt.Sprintf("%s unit %d", what, i), "QueueUnit", b[i*codec.QueueUnitSize:][:codec.QueueUnitSize], unit)
		}
	case "checkpoint_file":
		s.record(what, "Checkpoint", b[:codec.CheckpointSize], value["checkpoint"])
		if zeros := fmt.Sprintf("%x", b[codec.CheckpointSize:]); value["zeros"] != zeros {
			s.t.Errorf("%s: the rest differs", what)
		}
	case "bound_file", "state_file":
		s.slots(what, b, value)
	default:
		s.t.Errorf("%s: nobody compares what %s reads", what, parser)
	}
}

// TestKaitaiReadsStore: parsers made from the Kaitai files read the files that
// a store wrote, field by field as the codecs do.
func TestKaitaiReadsStore(t *testing.T) {
	needNode(t)
	dir := t.TempDir()
	makeStore(t, dir, func() {})
	s := &storeReader{t: t, names: map[string]*kaitaiNames{}, records: map[string]*Record{}, count: map[string]int{}}
	for _, f := range parseSchemas(t, "../codec/*.layout") {
		names := newKaitaiNames(f)
		for _, r := range f.Records {
			s.names[r.Name], s.records[r.Name] = names, r
		}
	}
	var jobs []job
	var files []string
	rows := fileTable(t)
	for _, file := range listFiles(t, dir) {
		i := slices.IndexFunc(rows, func(r fileRow) bool { return r.match.MatchString(file) })
		if i >= 0 && rows[i].parser != "" {
			jobs = append(jobs, job{Schema: rows[i].parser, File: filepath.Join(dir, file)})
			files = append(files, file)
		}
	}
	for i, a := range runKaitai(t, []string{ksyFolder}, jobs) {
		if a.Error != "" {
			t.Errorf("%s: %s", files[i], a.Error)
			continue
		}
		b, err := os.ReadFile(jobs[i].File)
		if err != nil {
			t.Fatal(err)
		}
		s.file(files[i], jobs[i].Schema, b, a.Value)
	}
	t.Logf("%d files, %d messages, %d units", len(files), s.count["Message"], s.count["QueueUnit"])
	for _, record := range []string{"Message", "Blank", "QueueUnit", "Checkpoint", "Bound", "State", "State.Epochs",
		"State.Ranges", "State.Cursors", fmt.Sprintf("%#x", codec.MessageMagicV1), fmt.Sprintf("%#x", codec.MessageMagicV2)} {
		if s.count[record] == 0 {
			t.Errorf("the store has no %s", record)
		}
	}
}
