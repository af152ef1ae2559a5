package dump

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/internal/vfs"
)

// Kind is what a file is: how records follow one another in it.
type Kind struct {
	// Name is for people.
	Name string
	// Root is the directory of the store that the file is part of, as far as
	// its path tells; else "".
	Root string

	walk func(*walk) error
	// record is the layout of a file of one record after the other.
	record string
	// base is what the file's name says: the offset of its first byte in the
	// log, the queue or the timer log; -1 if it does not.
	base int64
	// full says that the file is a segment of its whole length.
	full bool
	// slot is the length of each of two slots.
	slot int64
	// ends says that nothing may stand behind zeros.
	ends bool
}

// Lengths of slots of the sidecar's files.
const (
	boundSlot = 4096
	stateSlot = 64 << 10
)

// Sizes that the files have with Java's defaults.
const (
	queueFileSize    = 300000 * codec.QueueUnitSize
	batchFileSize    = 300000 * codec.BatchUnitSize
	extFileSize      = 48 << 20
	timerLogFileSize = 100 << 20
	wheelFileSize    = 2 * 7 * 86400 * codec.TimerSlotSize
)

// The kinds, but for what a file's name says.
var (
	segmentKind  = Kind{Name: "segment of the log", walk: walkLog, full: true}
	guardKind    = Kind{Name: "second name of a segment", walk: walkLog, full: true}
	cutKind      = Kind{Name: "segment cut off by recovery", walk: walkLog, full: true}
	recordsKind  = Kind{Name: "log records", walk: walkLog}
	queueKind    = Kind{Name: "consume queue", walk: walkUnits, record: "QueueUnit", ends: true}
	batchKind    = Kind{Name: "consume queue of batches", walk: walkUnits, record: "BatchUnit", ends: true}
	extKind      = Kind{Name: "extension of a consume queue", walk: walkExt}
	indexKind    = Kind{Name: "key index", walk: walkIndex}
	checkKind    = Kind{Name: "checkpoint", walk: walkFront, record: "Checkpoint"}
	boundKind    = Kind{Name: "durable bound", walk: walkSlots, record: "Bound", slot: boundSlot}
	stateKind    = Kind{Name: "state of the log", walk: walkSlots, record: "State", slot: stateSlot}
	cursorsKind  = Kind{Name: "cursors", walk: walkSlots, record: "State", slot: stateSlot}
	wheelKind    = Kind{Name: "timer wheel", walk: walkUnits, record: "TimerSlot"}
	timerKind    = Kind{Name: "timer log", walk: walkTimer}
	timerChkKind = Kind{Name: "timer checkpoint", walk: walkFront, record: "TimerCheckpoint"}
	spareKind    = Kind{Name: "spare segment", walk: walkSpare, full: true}
	buildingKind = Kind{Name: "spare segment that is being made", walk: walkSpare}
	textKind     = Kind{Name: "text", walk: walkText}
)

// Names returns the names that KindOf knows.
func Names() []string {
	var names []string
	for _, r := range records {
		names = append(names, r.Name)
	}
	return names
}

// KindOf returns the kind of a file that holds records of that layout; file is
// its path, whose name may say where in a log it stands.
func KindOf(record, file string) (Kind, error) {
	info, ok := recordInfo(record)
	if !ok {
		return Kind{}, fmt.Errorf("no record is named %q; there are %s", record, strings.Join(Names(), ", "))
	}
	kind := Kind{Name: record + " records", walk: walkUnits, record: record}
	switch record {
	case "Message", "Blank":
		kind = recordsKind
	case "QueueUnit":
		kind = queueKind
	case "QueueExtUnit":
		kind = extKind
	case "BatchUnit":
		kind = batchKind
	case "IndexHeader":
		kind = indexKind
	case "Checkpoint":
		kind = checkKind
	case "TimerCheckpoint":
		kind = timerChkKind
	case "Bound":
		kind = boundKind
	case "State":
		kind = stateKind
	case "TimerUnit", "TimerBlank":
		kind = timerKind
	default:
		if !info.Fixed {
			kind.walk = walkSequence
		}
	}
	kind.base = baseOf(path.Base(file))
	return kind, nil
}

// Identify tells what the file f, whose path is absolute and with slashes, is: by
// where it stands in a store, else by its name, its size and the bytes at its
// front.
func Identify(f vfs.File, file string) (Kind, error) {
	kind, ok := byPath(strings.Split(path.Clean(file), "/"))
	if !ok {
		info, err := f.Stat()
		if err != nil {
			return Kind{}, err
		}
		if kind, ok, err = byContent(path.Base(file), &source{f: f, size: info.Size}); err != nil {
			return Kind{}, err
		}
	}
	if !ok {
		return Kind{}, fmt.Errorf("neither the path nor the content of %s tells what it is; name its records with --record: one of %s",
			file, strings.Join(Names(), ", "))
	}
	kind.base = baseOf(path.Base(file))
	return kind, nil
}

// byPath goes by where a file stands in the directory of a store.
func byPath(parts []string) (Kind, bool) {
	up := func(n int) string {
		if n >= len(parts) {
			return ""
		}
		return parts[len(parts)-1-n]
	}
	name := up(0)
	in := func(kind Kind, depth int) (Kind, bool) {
		kind.Root = strings.Join(parts[:len(parts)-1-depth], "/")
		if kind.Root == "" {
			kind.Root = "/"
		}
		return kind, true
	}
	numbered, queue := digits(name, 20), digits(up(1), 0)
	switch {
	case numbered && up(1) == "commitlog":
		return in(segmentKind, 1)
	case numbered && queue && up(3) == "consumequeue":
		return in(queueKind, 3)
	case numbered && queue && up(3) == "consumequeue_ext":
		return in(extKind, 3)
	case numbered && queue && up(3) == "batchconsumequeue":
		return in(batchKind, 3)
	case numbered && slices.Contains(parts, "compactionLog"):
		return recordsKind, true
	case numbered && slices.Contains(parts, "compactionCq"):
		return Kind{Name: batchKind.Name, walk: walkUnits, record: "BatchUnit"}, true
	case numbered && up(1) == "timerlog":
		return in(timerKind, 1)
	case digits(name, 17) && up(1) == "index":
		return in(indexKind, 1)
	case up(1) == "cut" && up(2) == "stratalog" && baseOf(name) >= 0:
		return cutKind, true // the sidecar says nothing of what was cut off
	case up(1) == "spare" && up(2) == "stratalog" && strings.HasSuffix(name, guardSuffix) && baseOf(name) >= 0:
		return in(guardKind, 2)
	case up(1) == "spare" && up(2) == "stratalog" && strings.HasSuffix(name, ".ready"):
		return in(spareKind, 2)
	case up(1) == "spare" && up(2) == "stratalog" && strings.HasSuffix(name, ".building"):
		return in(buildingKind, 2)
	case up(1) == "stratalog":
		switch strings.TrimSuffix(name, ".new") {
		case "bound":
			return in(boundKind, 1)
		case "state":
			return in(stateKind, 1)
		case "cursors":
			return in(cursorsKind, 1)
		}
	case up(1) == "config" && name == "timercheck":
		return in(timerChkKind, 1)
	case up(1) == "config":
		return in(textKind, 1)
	}
	switch name {
	case "checkpoint":
		return in(checkKind, 0)
	case "timerwheel":
		return in(wheelKind, 0)
	case "abort", "abort.bak", "lock":
		return in(textKind, 0)
	}
	return Kind{}, false
}

// byContent goes by what a file is by itself.
func byContent(name string, s *source) (Kind, bool, error) {
	front, err := s.at(0, boundSlot)
	if err != nil {
		return Kind{}, false, err
	}
	if _, magic, _ := codec.PeekMessage(front); magic == codec.MessageMagicV1 || magic == codec.MessageMagicV2 || magic == codec.BlankMagic {
		return recordsKind, true, nil
	}
	// The sidecar's records begin with their magic. One slot that is whole is
	// enough, whatever became of the other one.
	for _, k := range []Kind{boundKind, stateKind} {
		for off := int64(0); off < 2*k.slot && s.size == 2*k.slot; off += k.slot {
			slot, err := s.at(off, k.slot)
			if err != nil {
				return Kind{}, false, err
			}
			if _, err := mustInfo(k.record).View(slot); err == nil {
				return k, true, nil
			}
		}
	}
	switch {
	case name == "timercheck" && s.size == codec.CheckpointFileSize:
		return timerChkKind, true, nil
	case s.size == wheelFileSize:
		return wheelKind, true, nil
	case digits(name, 17):
		return indexKind, true, nil
	case !digits(name, 20):
	case s.size == queueFileSize:
		return queueKind, true, nil
	case s.size == batchFileSize:
		return batchKind, true, nil
	case s.size == extFileSize:
		return extKind, true, nil
	case s.size == timerLogFileSize:
		return timerKind, true, nil
	}
	return Kind{}, false, nil
}

// digits says whether name is n decimal digits; n of 0 is any number of them.
func digits(name string, n int) bool {
	return name != "" && (n == 0 || len(name) == n) && strings.Trim(name, "0123456789") == ""
}

// guardSuffix is that of the second name of a young segment.
const guardSuffix = ".guard"

// baseOf reads the start offset off a file's name, behind which a dot and a
// number, or guardSuffix, may stand; -1 if it is none.
func baseOf(name string) int64 {
	name, more, found := strings.Cut(strings.TrimSuffix(name, guardSuffix), ".")
	if !digits(name, 20) || found && !digits(more, 0) {
		return -1
	}
	n, err := strconv.ParseUint(name, 10, 64)
	if err != nil || n > math.MaxInt64 {
		return -1
	}
	return int64(n)
}
