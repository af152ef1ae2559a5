package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// fakes are small logs, some of which answer too early, and how many producers it
// takes to see it: that is what the check must find, and nothing in the others.
var fakes = []struct {
	engine fakeEngine
	honest bool
}{
	{fakeEngine{name: "sync-then-answer"}, true},
	{fakeEngine{name: "dsync", flags: syscall.O_DSYNC, noSync: true}, true},
	{fakeEngine{name: "mapped", mapped: true}, true},
	{fakeEngine{name: "answer-then-sync", early: true}, false},
	{fakeEngine{name: "mapped-answer-then-sync", mapped: true, early: true}, false},
	{fakeEngine{name: "sync-of-another-file", other: true}, false},
	{fakeEngine{name: "never", noSync: true}, false},
	{fakeEngine{name: "sync-before-write", before: true}, false},
}

func init() {
	for _, f := range fakes {
		promised := synced("says so")
		apart = append(apart, &engine{name: f.engine.name, sync: promised, syncs: 1, alone: waySingle, many: []way{wayBatch, waySingle},
			open: f.engine.open})
	}
}

// fakeEngine says when a log syncs.
type fakeEngine struct {
	name   string
	flags  int
	mapped bool
	noSync bool
	before bool // syncs before it writes
	other  bool // syncs some other file
	early  bool // answers, then syncs: once for each batch, all before it closes
}

// fakeStore is a file of lengths and bodies.
type fakeStore struct {
	fakeEngine
	file, elsewhere *os.File
	memory          []byte
	at              int64
	buf             []byte
	owed            chan struct{}
	paid            sync.WaitGroup
}

const fakeSize = 4 << 20

func (e fakeEngine) open(dir string, _ settings) (store, error) {
	file, err := os.OpenFile(filepath.Join(dir, "log"), os.O_RDWR|os.O_CREATE|e.flags, 0o600)
	if err != nil {
		return nil, err
	}
	elsewhere, err := os.Create(filepath.Join(dir, "elsewhere"))
	if err != nil {
		return nil, err
	}
	s := &fakeStore{fakeEngine: e, file: file, elsewhere: elsewhere, owed: make(chan struct{}, 1<<16)}
	if e.mapped {
		if err := file.Truncate(fakeSize); err != nil {
			return nil, err
		}
		if s.memory, err = syscall.Mmap(int(file.Fd()), 0, fakeSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED); err != nil {
			return nil, err
		}
	}
	s.paid.Go(func() {
		for range s.owed {
			_ = s.file.Sync() // a liar's
		}
	})
	return s, nil
}

func (s *fakeStore) AppendBatch(bodies [][]byte) error {
	s.buf = s.buf[:0]
	for _, body := range bodies {
		s.buf = append(binary.LittleEndian.AppendUint32(s.buf, uint32(len(body))), body...)
	}
	if s.before {
		if err := s.file.Sync(); err != nil {
			return err
		}
	}
	if s.mapped {
		copy(s.memory[s.at:], s.buf)
	} else if _, err := s.file.WriteAt(s.buf, s.at); err != nil {
		return err
	}
	s.at += int64(len(s.buf))
	switch {
	case s.noSync || s.before:
		return nil
	case s.other:
		return s.elsewhere.Sync()
	case s.early:
		s.owed <- struct{}{}
		return nil
	}
	return s.file.Sync()
}

func (s *fakeStore) Scan(visit func([]byte) error) error {
	r := bufio.NewReader(io.NewSectionReader(s.file, 0, fakeSize))
	for {
		var head [4]byte
		if _, err := io.ReadFull(r, head[:]); err != nil || head == [4]byte{} {
			return nil
		}
		body := make([]byte, binary.LittleEndian.Uint32(head[:]))
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		if err := visit(body); err != nil {
			return err
		}
	}
}

func (s *fakeStore) Close() error {
	close(s.owed)
	s.paid.Wait()
	if s.memory != nil {
		if err := syscall.Munmap(s.memory); err != nil {
			return err
		}
	}
	return errors.Join(s.file.Close(), s.elsewhere.Close())
}

// An answer before its sync is found, whoever's sync ends meanwhile, and honest
// logs are left alone.
func TestLiars(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is missing: install it with tools/setup.sh. Nothing here says now that a liar is found")
	}
	for _, f := range fakes {
		for producers, w := range map[int]way{1: waySingle, 64: wayBatch} {
			b := testBench(t)
			e, err := engineNamed(f.engine.name)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.checkOrder(e, w, producers); err != nil {
				t.Fatal(err)
			}
			// Of a mapping, only a lone producer's answers tell: see orderPause.
			if found := len(b.broken) > 0; found == f.honest && (f.honest || producers == 1 || !f.engine.mapped) {
				t.Errorf("%s, %d producers: honest %v, the check says %q", e.name, producers, f.honest, b.broken)
			}
		}
	}
}

// A liar that owes a sync for each answer, and pays, has as many as it should:
// counting them finds nothing.
func TestCountingIsNotEnough(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is missing")
	}
	b := testBench(t)
	e, err := engineNamed("answer-then-sync")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.countSyncs(e, waySingle, 1); err != nil {
		t.Fatal(err)
	}
	if r := b.runs[0]; r.Log.Syncs < r.Ops[0].Records {
		t.Errorf("%d syncs for %d messages: it does not pay", r.Log.Syncs, r.Ops[0].Records)
	}
}

// hexed writes text as strace -xx does.
func hexed(text string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, "\\x%02x", text[i])
	}
	return b.String()
}

// Lines of strace are read right, whatever came between the begin and the end of a
// call.
func TestOrderReadsLines(t *testing.T) {
	c := cell{Records: 2, Size: 64, Seed: 1}
	body := make([]string, c.Records)
	for seq := range body {
		body[seq] = hexed(string(tracedBody(c.bodies(), nil, int64(seq))))
	}
	f, g := hexed("/d/f"), hexed("/d/g")
	mark := func(word string, seq int) string {
		text := fmt.Sprintf("%s%s %d", markPrefix, word, seq)
		return fmt.Sprintf("1 write(9<%s>, \"%s\", %d) = %d", hexed(markFile), hexed(text), len(text), len(text))
	}
	begin, answer := mark(markBegin, 0), mark(markAnswer, 0)
	other := []string{mark(markBegin, 1), "1 pwrite64(4<" + f + ">, \"" + body[1] + "\", 64, 64) = 64", "1 fsync(4<" + f + ">) = 0", mark(markAnswer, 1)}
	write := "1 pwrite64(4<" + f + ">, \"\\x00" + body[0] + "\", 65, 0) = 65"
	for name, test := range map[string]struct {
		lines string
		ok    bool
	}{
		"plain":                {begin + "\n" + write + "\n1 fdatasync(4<" + f + ">) = 0\n" + answer, true},
		"another thread's":     {begin + "\n" + write + "\n2   fsync(4<" + f + "> <unfinished ...>\n3 sync() = 0\n2   <... fsync resumed>) = 0\n" + answer, true},
		"not ended":            {begin + "\n" + write + "\n2 fsync(4<" + f + "> <unfinished ...>\n" + answer + "\n2 <... fsync resumed>) = 0", false},
		"begun before":         {begin + "\n2 fsync(4<" + f + "> <unfinished ...>\n" + write + "\n2 <... fsync resumed>) = 0\n" + answer, false},
		"write ends behind it": {begin + "\n2 pwrite64(4<" + f + ">, \"" + body[0] + "\", 64, 0 <unfinished ...>\n1 fsync(4<" + f + ">) = 0\n2 <... pwrite64 resumed>) = 64\n" + answer, false},
		"failed":               {begin + "\n" + write + "\n1 fsync(4<" + f + ">) = -1 EIO (Input/output error)\n" + answer, false},
		"another file's":       {begin + "\n" + write + "\n1 fsync(5<" + g + ">) = 0\n" + answer, false},
		"a range is no sync":   {begin + "\n" + write + "\n1 sync_file_range(4<" + f + ">, 0, 0, SYNC_FILE_RANGE_WRITE) = 0\n" + answer, false},
		"a short write": {begin + "\n1 pwrite64(4<" + f + ">, \"" + body[0] + "\", 64, 0) = 32\n1 fsync(4<" + f + ">) = 0\n1 pwrite64(4<" + f +
			">, \"" + body[0][32*4:] + "\", 32, 32) = 32\n" + answer, false},
		"in two vectors": {begin + "\n1 pwritev(4<" + f + ">, [{iov_base=\"" + body[0][:80] + "\", iov_len=20}, {iov_base=\"" + body[0][80:] +
			"\", iov_len=44}], 2, 0) = 64\n1 fsync(4<" + f + ">) = 0\n" + answer, true},
		"O_DSYNC":   {"1 openat(AT_FDCWD, \"\", O_RDWR|O_DSYNC) = 4<" + f + ">\n" + begin + "\n" + write + "\n" + answer, true},
		"RWF_DSYNC": {begin + "\n1 pwritev2(4<" + f + ">, [{iov_base=\"" + body[0] + "\", iov_len=64}], 1, 0, RWF_DSYNC) = 64\n" + answer, true},
		"msync": {"1 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 4<" + f + ">, 0) = 0x7f0000001000\n" + begin +
			"\n1 msync(0x7f0000001000, 4096, MS_SYNC) = 0\n" + answer, true},
		"msync that does not wait": {"1 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 4<" + f + ">, 0) = 0x7f0000001000\n" + begin +
			"\n1 msync(0x7f0000001000, 4096, MS_ASYNC) = 0\n" + answer, false},
		"written nowhere": {begin + "\n1 fsync(4<" + f + ">) = 0\n" + answer, false},
		"no answer":       {begin + "\n" + write, false},
		"nothing":         {"", false},
	} {
		o := newOrder(&c)
		for line := range strings.Lines(test.lines + "\n" + strings.Join(other, "\n") + "\n") {
			o.line(line)
		}
		if err := o.finish(); err == nil != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
