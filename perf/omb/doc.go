// Package omb reads the workload files of the OpenMessaging Benchmark, so that a
// load that was described for brokers can be laid on a store. It reads and
// checks; it runs nothing.
//
// A file is one YAML mapping. A field that it leaves out has the default of the
// benchmark: 0, false or empty, but for warmupDurationMinutes (1),
// backlogDrainRatio (1.0) and keyDistributor (NO_KEY). The benchmark is
// lenient: it skips fields that it does not know, takes an unknown key
// distributor for NO_KEY and cuts fractions off; a slip of the pen so changes
// what is measured. This package refuses all that is not meant to be there, with
// the line where it stands.
//
// # What the benchmark measures
//
// These facts help to lay figures side by side:
//
//   - producerRate is shared by all producers. Messages are due at even distances
//     (in whole nanoseconds), whichever producer comes first takes the next. A
//     thread for each core, or less, goes round its producers, and does not wait
//     for answers: nothing but the driver bounds what is on its way.
//   - Its publish latency runs from when a message was handed over, not from when
//     it was due. How late it was handed over is a histogram of its own, the
//     publish delay. Both end at a minute.
//   - The search for the highest rate (producerRate 0) starts at 10000 messages a
//     second. Every 3 seconds it raises the rate, to the double at most, if
//     neither sending nor consuming is more than 1000 messages behind, and else
//     lowers it. It goes on during the whole test and is part of its figures.
//   - Warm-up and test are the same load; figures of latency start anew between
//     them. The clock is looked at every 10 seconds.
package omb

import (
	"fmt"
	"strconv"
	"strings"
)

// Error is the error of this package: what is wrong, and where.
type Error struct {
	// File is the name of the workload file.
	File string
	// Line counts from 1; 0 if the error is of no line, as of a field that is
	// missing.
	Line int
	// Field is the field as the file names it; empty if the error is of none.
	Field string
	Cause error
}

// Error returns "file:line: field: cause", without what is not known.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Field != "" {
		fmt.Fprintf(&b, ": %s", plain(e.Field))
	}
	fmt.Fprintf(&b, ": %v", e.Cause)
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// maxShown is how much of a text a message shows, in bytes.
const maxShown = 60

// quote shows a text of the file.
func quote(s string) string {
	if len(s) > maxShown {
		return strconv.Quote(strings.ToValidUTF8(s[:maxShown], "")) + "..."
	}
	return strconv.Quote(s)
}

// plain shows a text without quotes if it can be nothing else.
func plain(s string) string {
	odd := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("+-._:", c)
	}
	if s == "" || len(s) > maxShown || strings.ContainsFunc(s, odd) {
		return quote(s)
	}
	return s
}
