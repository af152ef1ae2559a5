package commitlog

import (
	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// Walk calls f with each record of [from, end), in order, whatever the
// watermarks say. from must be where a record starts. The view is valid during
// the call. Damage ends the walk with a *contract.CorruptionError.
func (r *reader) Walk(from, end contract.Offset, f func(*codec.MessageView)) error {
	s := r.scanFrom(from, end)
	for s.Next() {
		f(s.View())
	}
	return s.Err()
}

// LastStoreTime returns the store time of the last record, in milliseconds; 0
// if there never was one.
func (l *Log) LastStoreTime() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastStoreTime
}

// Epoch returns the current epoch.
func (l *Log) Epoch() contract.Epoch { return l.side.epoch() }

// Epoch returns the current epoch, 0 without a sidecar.
func (r *ReadOnly) Epoch() contract.Epoch { return r.side.epoch() }

// OpenEnd is the end of a range that is still being written.
const OpenEnd = openEnd

// Segments lists the log's files.
func (r *reader) Segments() []SegmentFile {
	list := r.segs.Load()
	files := make([]SegmentFile, 0, len(list.segs))
	for _, s := range list.segs {
		files = append(files, SegmentFile{Base: contract.Offset(s.base), Path: s.file.Path(), Size: s.file.Size()})
	}
	return files
}

// File returns the path of the segment that holds off, or that is to.
func (r *ReadOnly) File(off contract.Offset) string {
	if seg := r.segs.Load().find(int64(off)); seg != nil {
		return seg.file.Path()
	}
	file, err := r.opt.Catalog.Place(off / contract.Offset(r.size) * contract.Offset(r.size))
	if err != nil {
		return segmentName(off)
	}
	return file
}

// Tail describes what stands beyond what r sees: the whole records, and the
// first thing that is none, nil if only zeros follow. After a kill both are
// normal; the owner's next Open takes the records and cuts the rest.
func (r *ReadOnly) Tail() (records int64, end contract.Offset, torn error) {
	list := r.segs.Load()
	s := newScanner(list, *r.ranges.Load(), r.confirmed.Load(), list.end())
	for s.Next() {
		records++
	}
	return records, contract.Offset(s.off), s.err
}
