package commitlog

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/stratalog/stratalog/contract"
)

// RecoveryReport tells what opening (or Recover) found and did. Nothing is cut,
// moved or renumbered without a line here.
type RecoveryReport struct {
	// Start and Tail name the rows of the decision tables that applied.
	Start string
	Tail  string
	// Foreign tells that another program wrote to the log since.
	Foreign bool
	// ScannedFrom and End bound what was read; End is where the log ends.
	ScannedFrom contract.Offset
	End         contract.Offset
	// Records counts the records in [ScannedFrom, End).
	Records int64
	// Cut is the range from the end to the last byte that was not zero; empty
	// if nothing was cut. CutCause says why the first byte of it is invalid.
	Cut      contract.Range
	CutCause error
	// Restored lists the segments whose names were gone, and that got them back.
	Restored []string
	// SetAside lists the files that were moved to <root>/stratalog/cut.
	SetAside []string
	// SidecarReason describes damage to the sidecar, empty for none.
	SidecarReason string
	// Epoch is the current epoch; NewEpoch tells that it begins at End.
	Epoch    contract.Epoch
	NewEpoch bool
	// Took is how long it took.
	Took time.Duration
}

var fingerprintTable = crc32.MakeTable(crc32.Castagnoli)

// fingerprintBytes is how much below the log's end the fingerprint covers.
const fingerprintBytes = 4096

// fingerprint is a checksum of the bytes just below end, in its segment.
func fingerprint(list *segmentList, end int64) uint32 {
	seg := list.find(end - 1)
	if end <= 0 || seg == nil {
		return 0
	}
	to := end - seg.base
	from := max(0, to-fingerprintBytes)
	if err := seg.file.Populate(from, to-from); err != nil {
		return 0
	}
	return crc32.Checksum(seg.file.Bytes()[from:to], fingerprintTable)
}

// chained tells that the records of the segment below end follow each other up to
// end. A program that cut the log further below than the fingerprint reaches, and
// put something shorter there, left it as it was at end, but not that: had it cut
// below this segment, the bytes at end would be others.
func (l *Log) chained(list *segmentList, end int64) bool {
	seg := list.find(end - 1)
	if end <= list.min() || seg == nil {
		return true
	}
	s := newScanner(list, l.side.ranges(), seg.base, end)
	for s.Next() {
	}
	return s.off == end
}

// load opens and recovers. On failure the caller closes what was opened.
func (l *Log) load(ctx context.Context) error {
	began := l.clk.Mono()
	files, found, err := l.inventory()
	if err != nil {
		return err
	}
	facts := l.startFacts(files, found)
	row := decideStart(facts)
	l.report = RecoveryReport{Start: row.name, Foreign: row.foreign, SidecarReason: found.reason}
	switch row.action {
	case startRefuseNewer:
		return contract.NewError(contract.KindNewerFormat, contract.OpOpen, contract.ComponentSidecar, found.reason, nil)
	case startRefuseLost:
		return l.segmentsGone(facts)
	}
	if err := l.recoverLog(ctx, row, facts); err != nil {
		return err
	}
	l.report.Took = l.clk.Mono() - began
	return nil
}

// segmentsGone is the refusal when segments with durable bytes are missing: it
// names the first of them and what was lost.
func (l *Log) segmentsGone(facts startFacts) error {
	list, bound := l.segs.Load(), l.side.bound.Durable
	lost := contract.Range{End: contract.Offset(bound)}
	switch {
	case facts.where == boundBelow:
		lost = contract.Range{Start: contract.Offset(bound), End: contract.Offset(list.min())}
	case facts.segments:
		lost.Start = contract.Offset(list.last().end())
	case facts.state == sideOK:
		lost.Start = contract.Offset(l.side.state.FirstSegment)
	}
	file, err := l.opt.Catalog.Place(lost.Start / contract.Offset(l.size) * contract.Offset(l.size))
	if err != nil {
		return openError(contract.ComponentLog, err)
	}
	return &contract.CorruptionError{File: file, Lost: lost, Cause: errSegmentsGone}
}

// startFacts gathers the inputs of the first table.
func (l *Log) startFacts(files []SegmentFile, found sidecarFound) startFacts {
	f := startFacts{segments: len(files) > 0, state: found.state, bound: found.bound, abort: l.opt.Unclean,
		stranger: l.opt.Stranger}
	list := l.segs.Load()
	if found.bound == sideOK {
		b := l.side.bound.Durable
		switch {
		case !f.segments && b != 0, f.segments && b > list.last().end():
			f.where = boundBeyond
		case f.segments && b < list.min():
			f.where = boundBelow
		}
	}
	if found.state == sideOK {
		f.clean = l.side.state.Clean
		f.matches = f.segments && l.side.state.FirstSegment == list.min() && l.side.state.End == l.side.bound.Durable &&
			fingerprint(list, l.side.state.End) == l.side.state.EndCRC &&
			(!f.stranger || f.where == boundInside && l.chained(list, l.side.state.End))
	}
	return f
}

// recoverLog brings the log to a state in which appends may go on.
func (l *Log) recoverLog(ctx context.Context, row startRow, facts startFacts) error {
	list := l.segs.Load()
	from := list.min()
	if row.action == startAtBound {
		from = l.side.bound.Durable
	}
	ranges := l.trustedRanges(row, facts)
	l.ranges.Store(&ranges)

	s := newScanner(list, ranges, from, list.min()+int64(len(list.segs))*l.size)
	window := l.window()
	if facts.bound == sideOK {
		window = max(window, l.side.bound.Window) // the last owner's may have been wider
	}
	records := int64(0)
	lastStoreTime := int64(0)
	for s.Next() {
		records++
		lastStoreTime = max(lastStoreTime, s.View().StoreTimestamp())
	}
	end := s.off
	untouched := facts.untouched(end, s, list)
	var rest remains
	if !untouched {
		var err error
		if rest, err = survey(list, end); err != nil {
			return err
		}
	}
	tail, err := l.judgeTail(list, ranges, row, facts, end, window, s, rest)
	if err != nil {
		return err
	}
	l.report.ScannedFrom, l.report.End, l.report.Records = contract.Offset(from), contract.Offset(end), records
	l.report.Tail = tail.name

	// From here on files change.
	if err := l.prepareFiles(facts); err != nil {
		return openError(contract.ComponentSidecar, err)
	}
	foreignRecords := row.foreign || facts.clean && facts.segments && end > from
	l.report.Foreign = foreignRecords
	if tail.action == tailCut || foreignRecords {
		if tail.action == tailCut {
			l.report.CutCause = s.err
			if s.err == nil {
				l.report.CutCause = errZeroInside
			}
		}
		if err := l.side.newEpoch(l.epochStart(row, from, end)); err != nil {
			return err
		}
		l.report.NewEpoch = true
	}
	if !untouched {
		written, err := l.noteWritten(end, window, rest)
		if err != nil {
			return openError(contract.ComponentSidecar, err)
		}
		if err := l.cutTail(ctx, end, written, rest); err != nil {
			return openError(contract.ComponentSegment, err)
		}
	}
	rewrite := from
	if row.action != startAtBound {
		rewrite = max(from, end-window)
	}
	if err := l.rewriteTail(from, rewrite, end); err != nil {
		return openError(contract.ComponentSegment, err)
	}
	return l.enter(ctx, end, lastStoreTime)
}

// epochStart is where the new epoch begins: where the bytes may be others than
// before.
func (l *Log) epochStart(row startRow, from, end int64) int64 {
	if row.foreign {
		return from
	}
	return min(end, max(from, l.side.bound.Durable))
}

// trustedRanges returns the ranges in which every record must carry its
// checksum. The open one ends at the bound if another program wrote since.
func (l *Log) trustedRanges(row startRow, facts startFacts) ourRanges {
	if facts.state != sideOK {
		return nil
	}
	ranges := l.side.ranges()
	if row.foreign {
		ranges.endAt(contract.Offset(l.side.state.End))
	}
	return ranges
}

// judgeTail applies the second table to what the scan met at end.
func (l *Log) judgeTail(list *segmentList, ranges ourRanges, row startRow, facts startFacts, end, window int64, s *scanner, rest remains) (tailRow, error) {
	if s.err != nil && !errors.Is(s.err, contract.ErrCorrupt) {
		return tailRow{}, openError(contract.ComponentSegment, s.err) // a read error is no damage
	}
	known := l.knownDurable(facts)
	b, err := lookBehind(list, ranges, end, window, rest)
	if err != nil {
		return tailRow{}, openError(contract.ComponentSegment, err)
	}
	tail := decideTail(tailFacts{bounded: row.action == startAtBound, clean: facts.clean, abort: facts.abort || facts.leftOpen(), behind: b,
		covered:  end > 0 && int64(l.opt.Covered) == end,
		anchored: b == behindZeros || s.at >= 0 || l.anchored(list, end), short: end < known})
	if tail.action == tailDamage && l.opt.broken == brokenCutBelowBound {
		tail.action = tailCut
	}
	if tail.action != tailDamage {
		return tail, nil
	}
	var damage *contract.CorruptionError
	if !errors.As(s.err, &damage) {
		file, err := l.opt.Catalog.Place(contract.Offset(end / l.size * l.size))
		if err != nil {
			return tail, openError(contract.ComponentLog, err)
		}
		damage = &contract.CorruptionError{File: file, Offset: end % l.size, Cause: errZeroInside,
			Lost: contract.Range{Start: contract.Offset(end), End: contract.Offset(end + 1)}}
	}
	damage.Lost.End = max(damage.Lost.End, contract.Offset(known))
	return tail, fmt.Errorf("%s: %w", tail.name, damage)
}

// knownDurable returns up to where the log was durable by what the sidecar says,
// its parts taken each for itself.
func (l *Log) knownDurable(facts startFacts) int64 {
	known := int64(0)
	if facts.state == sideOK {
		known = l.side.state.End
	}
	if facts.bound == sideOK {
		known = max(known, l.side.bound.Durable)
	}
	return known
}

// anchored tells that what lies just below end belongs there: a record that
// ends at it, or nothing because a segment begins there.
func (l *Log) anchored(list *segmentList, end int64) bool {
	seg := list.find(end)
	if seg == nil || seg.base == end {
		return true
	}
	_, ok := l.lastRecordTime(seg, end)
	return ok
}

// leftOpen tells that nobody closed the log, although there may be no abort file:
// its owner did not, and no other program has owned it since. One that may not
// start beside the owner removes the file all the same.
func (f startFacts) leftOpen() bool { return sidecarOK(f) && !f.clean && !f.stranger }

// untouched tells that the log was closed well, that nothing was appended
// since, and that no segment lies behind the active one: then the rest of that
// is zero, and an open does not depend on its size.
func (f startFacts) untouched(end int64, s *scanner, list *segmentList) bool {
	return f.clean && !f.abort && f.matches && f.where == boundInside && s.kind != placeInvalid && s.at < 0 && len(list.segs) > 0 && list.last().base <= end
}
