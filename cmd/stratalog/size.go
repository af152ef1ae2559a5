package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stratalog/stratalog/commitlog"
)

// units are the suffixes of a size, largest first.
var units = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// parseSize reads "8MiB", "512KiB", "1GiB", "100B" or "100".
func parseSize(text string) (int64, error) {
	number, unit := text, int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("size %q is not a whole number, alone or with B, KiB, MiB or GiB", text)
	}
	if n > math.MaxInt64/uint64(unit) {
		return 0, fmt.Errorf("size %q is too large", text)
	}
	return int64(n) * unit, nil
}

// formatSize is the shortest text that parseSize reads as n.
func formatSize(n int64) string {
	for _, u := range units {
		if n != 0 && n%u.bytes == 0 && u.bytes > 1 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// sizeFlag is a flag that holds a size.
type sizeFlag int64

// String returns the size as it is written.
func (s *sizeFlag) String() string { return formatSize(int64(*s)) }

// Set parses text.
func (s *sizeFlag) Set(text string) error {
	n, err := parseSize(text)
	*s = sizeFlag(n)
	return err
}

// Type is the word that help shows.
func (*sizeFlag) Type() string { return "SIZE" }

// The help of the flags of every command that writes.
const (
	segmentHelp = "length of a log file, taken at once, for a store that is made"
	floorHelp   = "free space of the disk that the log leaves alone (0: none)"
)

// addSegment adds --segment-size; s is 0 for the store's own default.
func addSegment(f *pflag.FlagSet, s *sizeFlag) {
	f.Var(s, "segment-size", segmentHelp)
	if *s == 0 {
		f.Lookup("segment-size").DefValue = formatSize(commitlog.DefaultSegmentSize)
	}
}

// newDiskFloor is a --disk-floor flag.
func newDiskFloor() sizeFlag { return commitlog.DefaultDiskFloor }

// diskFloor is what Options.DiskFloor takes for the flag.
func diskFloor(s sizeFlag) int64 {
	if s == 0 {
		return -1
	}
	return int64(s)
}

// checkSegmentSize refuses a --segment-size that no store has.
func checkSegmentSize(n int64) error {
	if n != 0 && (n < commitlog.MinSegmentSize || n > commitlog.MaxSegmentSize || n%commitlog.MinSegmentSize != 0) {
		return usage("--segment-size %s is not a multiple of 4KiB, from 4KiB to %s", formatSize(n), formatSize(commitlog.MaxSegmentSize))
	}
	return nil
}
