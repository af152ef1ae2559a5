package codec

import (
	"bytes"
	"fmt"
)

// Properties are pairs in one byte string, each `name 0x01 value 0x02`.
const (
	// PropertyNameEnd stands between a name and its value.
	PropertyNameEnd = 0x01
	// PropertyEnd stands behind a value.
	PropertyEnd = 0x02
)

// Names of properties on which the store acts.
const (
	PropertyKeys      = "KEYS"
	PropertyUniqueKey = "UNIQ_KEY"
	PropertyTags      = "TAGS"
	PropertyChecksum  = "__CRC32#"
	// PropertyInnerNumber says how many messages a record with
	// SysFlagInnerBatch stands for, PropertyInnerBase the number of the first.
	// The store that appends the record gives the latter.
	PropertyInnerNumber = "INNER_NUM"
	PropertyInnerBase   = "INNER_BASE"
	// PropertyDelay is the level of a delay, from 1 on.
	PropertyDelay = "DELAY"
	// PropertyRealTopic and PropertyRealQueue name where a record goes that
	// waits elsewhere: for its time, or for the end of its transaction.
	PropertyRealTopic = "REAL_TOPIC"
	PropertyRealQueue = "REAL_QID"
)

// ScheduleTopic is the topic in which records wait for the end of their delay:
// queue level-1 has those of a level.
const ScheduleTopic = "SCHEDULE_TOPIC_XXXX"

// PropertyError says where the properties that a caller handed in are not
// legal.
type PropertyError struct {
	// Offset is the first byte of the pair that is wrong.
	Offset int
	// Reason is a sentence without a full stop.
	Reason string
}

// Error names the offset and the reason.
func (e *PropertyError) Error() string {
	return fmt.Sprintf("codec: properties at byte %d: %s", e.Offset, e.Reason)
}

// AppendProperty appends a pair to dst. Neither name nor value may be empty or
// hold 0x01 or 0x02: CheckProperties finds what breaks that rule.
func AppendProperty(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, PropertyNameEnd)
	dst = append(dst, value...)
	return append(dst, PropertyEnd)
}

// nextProperty cuts the first segment off props: what stands before the next
// PropertyEnd, or all of it if there is none.
func nextProperty(props []byte) (segment, rest []byte) {
	if i := bytes.IndexByte(props, PropertyEnd); i >= 0 {
		return props[:i], props[i+1:]
	}
	return props, nil
}

// splitProperty cuts a segment at its first PropertyNameEnd. It fails (false)
// if that leaves the name or the value empty: Java's decoder drops such
// segments.
func splitProperty(segment []byte) (name, value []byte, ok bool) {
	i := bytes.IndexByte(segment, PropertyNameEnd)
	if i <= 0 || i == len(segment)-1 {
		return nil, nil, false
	}
	return segment[:i], segment[i+1:], true
}

// FindProperty returns the value of a property, which aliases props, and
// whether there is one. It reads as Java does: of a repeated name the last
// pair counts, a segment without a name or a value counts for nothing, and the
// last 0x02 may be missing.
func FindProperty(props []byte, name string) ([]byte, bool) {
	var found []byte
	for len(props) > 0 {
		var segment []byte
		segment, props = nextProperty(props)
		n := len(name)
		// The name has no 0x01 in it, so a segment that starts with the name
		// and 0x01 has its first 0x01 there.
		if n > 0 && len(segment) > n+1 && segment[n] == PropertyNameEnd && string(segment[:n]) == name {
			found = segment[n+1:]
		}
	}
	return found, found != nil
}

// WalkProperties calls f with each pair, in order, until f returns false. The
// slices alias props. It reads as FindProperty does; a repeated name comes
// repeatedly.
func WalkProperties(props []byte, f func(name, value []byte) bool) {
	for len(props) > 0 {
		var segment []byte
		segment, props = nextProperty(props)
		if name, value, ok := splitProperty(segment); ok && !f(name, value) {
			return
		}
	}
}

var checksumName = []byte(PropertyChecksum)

// StripChecksum returns props without any PropertyChecksum. If there is none
// it returns props itself and touches nothing. Else it writes the other
// segments to dst[:0], which must not overlap props, grows it if it is too
// short, and returns that.
func StripChecksum(props []byte, dst []byte) []byte {
	if !bytes.Contains(props, checksumName) {
		return props
	}
	return dropProperty(props, dst, PropertyChecksum)
}

// dropProperty copies all segments but those of one name.
func dropProperty(props, dst []byte, drop string) []byte {
	found := false
	dst = dst[:0]
	for rest := props; len(rest) > 0; {
		var segment []byte
		before := rest
		segment, rest = nextProperty(rest)
		if name, _, ok := splitProperty(segment); ok && string(name) == drop {
			found = true
			continue
		}
		dst = append(dst, before[:len(before)-len(rest)]...)
	}
	if !found {
		return props
	}
	return dst
}

// CheckProperties checks the properties that a caller hands in for storing:
// every pair has a name, one 0x01, a value and a 0x02, and all of it fits
// beside the checksum trailer. The error is a *PropertyError. No properties
// at all are legal.
func CheckProperties(props []byte) error {
	if len(props) > MaxPropertiesLength-ChecksumTrailerSize {
		return &PropertyError{0, fmt.Sprintf("%d bytes are more than %d", len(props),
			MaxPropertiesLength-ChecksumTrailerSize)}
	}
	for offset := 0; offset < len(props); {
		end := bytes.IndexByte(props[offset:], PropertyEnd)
		if end < 0 {
			return &PropertyError{offset, "the last pair does not end in 0x02"}
		}
		segment := props[offset : offset+end]
		switch i := bytes.IndexByte(segment, PropertyNameEnd); {
		case i < 0:
			return &PropertyError{offset, "a pair has no 0x01 between name and value"}
		case i == 0:
			return &PropertyError{offset, "a pair has an empty name"}
		case i == len(segment)-1:
			return &PropertyError{offset, "a pair has an empty value"}
		case bytes.IndexByte(segment[i+1:], PropertyNameEnd) >= 0:
			return &PropertyError{offset, "a pair has a second 0x01"}
		}
		offset += end + 1
	}
	return nil
}

// TagsCode returns the code by which consumers filter: Java's hash of the TAGS
// property, 0 without one. Messages of the delay topic carry another code.
func TagsCode(props []byte) int64 {
	tags, _ := FindProperty(props, PropertyTags)
	return int64(JavaHash(tags))
}
