// Package dump prints the files of a store record by record, whatever state
// they are in: it goes on behind damage and names it. It reads through one
// window of bounded size, takes no lock and writes nothing. What the bytes of a
// record mean comes from the table codec.Records; this package knows only how
// records follow one another in each kind of file.
package dump

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// Options says what of a file to dump.
type Options struct {
	// From is the byte in the file at which to begin: at the first record that
	// starts there or behind.
	From int64
	// Count is how many records to hand out; 0 is all.
	Count int64
	// Slots is the number of hash slots of an index file; 0 finds it out from
	// what the file holds.
	Slots int64
	// Ours are the ranges of the log in which every record carries a checksum
	// over all its bytes: without one it is damaged there.
	Ours []contract.Range
	// Settle is asked before a finding is told, with the number of times that
	// it was asked for the same place. If it returns true the place is read
	// again: a live writer may be in the middle of it. Nil is never.
	Settle func(tries int) bool
}

// Note is something about a record that does not stand in its bytes.
type Note struct {
	// Name is in the form of a JSON key.
	Name string
	// Value is an int64, a bool or a string.
	Value any
}

// Record is a record that was found.
type Record struct {
	// Name is the name of its layout.
	Name string
	// Offset is where it starts in the file.
	Offset int64
	// View reads it; valid during the call.
	View codec.Describer
	// Notes say where it stands, and what its checksum says.
	Notes []Note
}

// Finding is a place at which something else stands than should. It is an
// error.
type Finding struct {
	// File is the path of the file.
	File string
	// Offset is where the wrong thing starts in the file, and End where reading
	// goes on behind it.
	Offset, End int64
	// Record and Field name what is wrong; empty if that is not known.
	Record, Field string
	// FieldOffset is where Field starts in the file, Offset if there is none.
	FieldOffset int64
	// Reason is a sentence without a full stop.
	Reason string
	// Bytes are the first bytes at Offset, and View the record if it can be
	// read in spite of the finding, else nil; both valid during the call.
	Bytes []byte
	View  codec.Describer
}

// Error names the file, the place and the reason.
func (f *Finding) Error() string {
	return fmt.Sprintf("%s: bytes %d to %d: %s", f.File, f.Offset, f.End, f.what())
}

// what is the finding without its place.
func (f *Finding) what() string {
	switch {
	case f.Field != "":
		return fmt.Sprintf("%s.%s at %d: %s", f.Record, f.Field, f.FieldOffset, f.Reason)
	case f.Record != "":
		return f.Record + ": " + f.Reason
	}
	return f.Reason
}

// Skipped is a part of a file that holds no record, and need not.
type Skipped struct {
	// Offset and End are the first and the last byte, exclusive, in the file.
	Offset, End int64
	// Zeros says that all of it is zero.
	Zeros bool
	// Why says what it is, if it is not zero.
	Why string
	// Text is the content of a file of plain text, else nil.
	Text []byte
}

// Sink takes what a file holds, in order. An error ends the dump.
type Sink interface {
	Record(*Record) error
	Finding(*Finding) error
	Skipped(*Skipped) error
}

// Summary counts what was handed to a Sink.
type Summary struct {
	Records, Findings int64
}

// maxRecord is the size of the largest record that is read, in bytes.
const maxRecord = 64 << 20

// findingBytes is how many bytes a finding shows.
const findingBytes = 64

// errEnough ends a dump at Options.Count.
var errEnough = errors.New("enough records")

// File dumps f, a file of that kind. The error says that it could not be read
// to its end, or is what the sink returned.
func File(f vfs.File, kind Kind, opt Options, sink Sink) (Summary, error) {
	info, err := f.Stat()
	if err != nil {
		return Summary{}, err
	}
	w := &walk{source: source{f: f, size: info.Size}, opt: opt, sink: sink, kind: kind, tried: -1}
	if opt.From < 0 || opt.From > w.size {
		return Summary{}, fmt.Errorf("%s has %d bytes, so nothing can begin at %d", f.Name(), w.size, opt.From)
	}
	err = kind.walk(w)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return w.sum, err
}

// walk is one dump.
type walk struct {
	source
	opt  Options
	sink Sink
	kind Kind
	sum  Summary
	// tried is the place for which Settle was asked last, tries how often.
	tried int64
	tries int
}

// record hands out a record.
func (w *walk) record(name string, off int64, view codec.Describer, notes ...Note) error {
	w.sum.Records++
	err := w.sink.Record(&Record{Name: name, Offset: off, View: view, Notes: notes})
	if err == nil && w.sum.Records == w.opt.Count {
		err = errEnough
	}
	return err
}

// again says whether the place off, which looks wrong, should be read once more.
func (w *walk) again(off int64) bool {
	if w.opt.Settle == nil {
		return false
	}
	if w.tried != off {
		w.tried, w.tries = off, 0
	}
	w.tries++
	if !w.opt.Settle(w.tries) {
		return false
	}
	w.forget()
	return true
}

// fault is what is wrong at a place; offsets are those in the record.
type fault struct {
	record, field string
	at            int64
	reason        string
}

// faultOf turns an error of a codec into a fault.
func faultOf(record string, err error) *fault {
	var e *codec.FieldError
	if errors.As(err, &e) {
		return &fault{record, e.Field, int64(e.Offset), e.Reason}
	}
	return &fault{record: record, reason: err.Error()}
}

// wrong hands out a finding at [off, end). view, which may be nil, reads the
// bytes at off again, since the window may have moved on.
func (w *walk) wrong(off, end int64, what *fault, view func(b []byte) (codec.Describer, error), size int64) error {
	f := &Finding{File: w.f.Name(), Offset: off, End: end, Record: what.record, Field: what.field, FieldOffset: off + what.at,
		Reason: what.reason}
	b, err := w.at(off, max(size, findingBytes))
	if err != nil {
		return err
	}
	if view != nil {
		if v, err := view(b); err == nil {
			f.View = v
		}
	}
	f.Bytes = b[:min(int64(len(b)), findingBytes, end-off)]
	w.sum.Findings++
	return w.sink.Finding(f)
}

// skip hands out [off, end), which holds no record: as zeros if all of it is
// zero.
func (w *walk) skip(off, end int64, why string) error {
	if off >= end {
		return nil
	}
	nz, err := w.nonZero(off, end)
	if err != nil {
		return err
	}
	return w.sink.Skipped(&Skipped{Offset: off, End: end, Zeros: nz == end, Why: why})
}

// zero says whether all of b is zero.
func zero(b []byte) bool {
	for len(b) > len(zeroBlock) {
		if !bytes.Equal(b[:len(zeroBlock)], zeroBlock[:]) {
			return false
		}
		b = b[len(zeroBlock):]
	}
	return bytes.Equal(b, zeroBlock[:len(b)])
}

// records is the table of the codecs.
var records = codec.Records()

// recordInfo finds a record in the table.
func recordInfo(name string) (codec.RecordInfo, bool) {
	for _, r := range records {
		if r.Name == name {
			return r, true
		}
	}
	return codec.RecordInfo{}, false
}

// mustInfo is recordInfo for a record that there is.
func mustInfo(name string) codec.RecordInfo {
	r, _ := recordInfo(name)
	return r
}
