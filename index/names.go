package index

import (
	"strings"
	"time"
)

// nameForm is a file's name as time.Format has it, without the point.
const nameForm = "20060102150405.000"

const nameDigits = 17

// isName reports whether Java takes name for an index file: one that reads as a
// positive long.
func isName(name string) bool {
	if len(name) == 0 || len(name) > 18 {
		return false
	}
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return false
		}
	}
	return true
}

// nextName returns the name of a file made at now behind one named last, "" for
// none: the local time, or the name before and a millisecond if that is later.
// Names are compared as text, as Java orders them.
func nextName(now time.Time, last string) string {
	name := strings.Replace(now.Local().Format(nameForm), ".", "", 1)
	if name > last {
		return name
	}
	if t, ok := parseName(last); ok {
		return strings.Replace(t.Add(time.Millisecond).Format(nameForm), ".", "", 1)
	}
	return increment(last)
}

// parseName reads a name as a time of no zone in particular: a millisecond more
// is then a millisecond more on the clock face, over a change of the zone, too.
func parseName(name string) (time.Time, bool) {
	if len(name) != nameDigits {
		return time.Time{}, false
	}
	t, err := time.Parse(nameForm, name[:nameDigits-3]+"."+name[nameDigits-3:])
	return t, err == nil && t.Year() < 9999
}

// increment returns the next number of the same length, for a name that is no
// time; one of nines only gets a digit more, which sorts behind it.
func increment(name string) string {
	b := []byte(name)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < '9' {
			b[i]++
			return string(b)
		}
		b[i] = '0'
	}
	return name + "0"
}
