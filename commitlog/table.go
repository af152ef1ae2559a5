package commitlog

import "fmt"

// Recovery is two decisions, each a table: where to start reading, and what to
// do with what stands at the end. Every combination of inputs matches exactly
// one row; TestRecoveryTables enumerates them all.

// startFacts is what is known before a byte of the log is read.
type startFacts struct {
	segments bool       // there is at least one segment
	state    sideStatus // the state file
	bound    sideStatus // the bound file
	clean    bool       // state: the log was closed after this was written
	abort    bool       // the store's abort file was there
	stranger bool       // another program has owned the store since
	matches  bool       // state's fingerprint equals the log's end and first segment
	where    boundPlace // where the bound lies
}

// boundPlace says where the bound lies; without segments 0 is inside and any
// other place beyond.
type boundPlace uint8

const (
	boundInside boundPlace = iota // within the segments, or at their end
	boundBelow                    // below the first segment
	boundBeyond                   // beyond the last segment

	boundPlaceCount
)

// startAction says what recovery does first.
type startAction uint8

const (
	// startCreate: there is no log; make one.
	startCreate startAction = iota
	// startRefuseNewer: a newer version wrote here.
	startRefuseNewer
	// startRefuseLost: bytes that were durable are gone with their segments.
	startRefuseLost
	// startAtBound: everything below the bound was durable; read from there.
	startAtBound
	// startAll: the bound is not known; read everything.
	startAll
)

// startRow is one row of the first table.
type startRow struct {
	name   string
	action startAction
	// foreign tells that another program wrote here.
	foreign bool
	match   func(f startFacts) bool
}

func sideNewerThanUs(f startFacts) bool { return f.state == sideNewer || f.bound == sideNewer }
func sidecarOK(f startFacts) bool       { return f.state == sideOK && f.bound == sideOK }
func sidecarNone(f startFacts) bool     { return f.state == sideMissing && f.bound == sideMissing }

// A sidecar is only ever trusted whole, so the rows first tell newer, then
// whole, then absent, then anything else.
var startTable = []startRow{
	{"newer version", startRefuseNewer, false, sideNewerThanUs},

	{"new log", startCreate, false, func(f startFacts) bool {
		return !f.segments && !sideNewerThanUs(f) && (f.bound != sideOK || f.where == boundInside)
	}},
	{"all segments gone", startRefuseLost, false, func(f startFacts) bool {
		return !f.segments && !sideNewerThanUs(f) && f.bound == sideOK && f.where != boundInside
	}},

	{"no sidecar", startAll, false, func(f startFacts) bool {
		return f.segments && sidecarNone(f)
	}},
	{"sidecar damaged", startAll, false, func(f startFacts) bool {
		return f.segments && !sideNewerThanUs(f) && !sidecarOK(f) && !sidecarNone(f)
	}},

	{"last segments gone", startRefuseLost, false, func(f startFacts) bool {
		return f.segments && sidecarOK(f) && f.where == boundBeyond
	}},
	{"closed well", startAtBound, false, func(f startFacts) bool {
		return f.segments && sidecarOK(f) && f.clean && f.matches && f.where == boundInside
	}},
	{"closed well, changed since", startAll, true, func(f startFacts) bool {
		return f.segments && sidecarOK(f) && f.clean && (f.where == boundBelow || !f.matches && f.where == boundInside)
	}},
	{"not closed", startAtBound, false, func(f startFacts) bool {
		return f.segments && sidecarOK(f) && !f.clean && f.abort && !f.stranger && f.where == boundInside
	}},
	{"not closed, segments at the bound gone", startRefuseLost, false, func(f startFacts) bool {
		return f.segments && sidecarOK(f) && !f.clean && f.abort && !f.stranger && f.where == boundBelow
	}},
	{"not closed by another program", startAll, true, func(f startFacts) bool {
		return f.segments && sidecarOK(f) && !f.clean && f.abort && f.stranger && f.where != boundBeyond
	}},
	{"closed by another program", startAll, true, func(f startFacts) bool {
		return f.segments && sidecarOK(f) && !f.clean && !f.abort && f.where != boundBeyond
	}},
}

// decideStart returns the row that f matches.
func decideStart(f startFacts) startRow {
	for _, row := range startTable {
		if row.match(f) {
			return row
		}
	}
	panic(fmt.Sprintf("commitlog: no row for %+v", f)) // TestRecoveryTables proves that this cannot be
}

// tailFacts is what reading found at and behind the first place that holds no
// valid record.
type tailFacts struct {
	bounded bool   // reading began at a trusted bound
	clean   bool   // the log was closed well and nothing changed since
	abort   bool   // the store's abort file was there
	behind  behind // what stands at or behind the place
	// anchored: a record, or a segment's start, lies just below the place. It
	// matters at the bound only: one at which no record ends is not this log's,
	// or damage lies below it.
	anchored bool
	// covered: the last entry of the queues leads to the record before the place.
	covered bool
	// short: the place lies below what was durable by any part of the sidecar.
	short bool
}

// tailAction says what recovery does with the tail.
type tailAction uint8

const (
	// tailKeep: only zeros follow.
	tailKeep tailAction = iota
	// tailCut: what follows was never durable; cut it and say so.
	tailCut
	// tailDamage: what is invalid was durable, or may have been.
	tailDamage
)

// tailRow is one row of the second table.
type tailRow struct {
	name   string
	action tailAction
	match  func(f tailFacts) bool
}

var tailTable = []tailRow{
	{"ends below what was durable", tailDamage, func(f tailFacts) bool { return f.short }},
	{"nothing behind", tailKeep, func(f tailFacts) bool { return !f.short && f.behind == behindZeros }},
	{"a later record proves it was durable", tailDamage, func(f tailFacts) bool { return !f.short && f.behind == behindFar }},
	{"torn tail above the bound", tailCut, func(f tailFacts) bool {
		return !f.short && f.bounded && f.anchored && (f.behind == behindGarbage || f.behind == behindNear)
	}},
	{"no record ends at the bound", tailDamage, func(f tailFacts) bool {
		return !f.short && f.bounded && !f.anchored && (f.behind == behindGarbage || f.behind == behindNear)
	}},
	{"torn tail, no bound, not closed", tailCut, func(f tailFacts) bool {
		return !f.short && !f.bounded && f.abort && f.behind == behindGarbage
	}},
	{"valid records behind, no bound", tailDamage, func(f tailFacts) bool {
		return !f.short && !f.bounded && f.behind == behindNear
	}},
	{"bytes behind the end of a closed log, no bound", tailDamage, func(f tailFacts) bool {
		return !f.short && !f.bounded && !f.abort && f.behind == behindGarbage && !f.covered
	}},
	{"bytes behind the last entry of a closed log, no bound", tailCut, func(f tailFacts) bool {
		return !f.short && !f.bounded && !f.abort && f.behind == behindGarbage && f.covered
	}},
}

// decideTail returns the row that f matches.
func decideTail(f tailFacts) tailRow {
	for _, row := range tailTable {
		if row.match(f) {
			return row
		}
	}
	panic(fmt.Sprintf("commitlog: no row for %+v", f)) // TestRecoveryTables proves that this cannot be
}
