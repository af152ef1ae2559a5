package codec

import "bytes"

// checksumStart is a trailer before its digits.
const checksumStart = PropertyChecksum + "\x01"

// SealRecord writes the checksum over a whole record into its last
// ChecksumTrailerSize bytes. The length of rec must be the record's total
// size, its late fields final, and the bytes must belong to its properties
// (Message.PropertiesReserve). It allocates nothing. It panics if rec is
// shorter than the trailer.
func SealRecord(rec []byte) {
	at := len(rec) - ChecksumTrailerSize
	// No trailer is illegal, and rec[at:] is as long as one.
	(&ChecksumTrailer{}).Encode(rec[at:], rec[:at])
}

// ChecksumState is what a record's whole-record checksum says about it.
type ChecksumState uint8

const (
	// ChecksumAbsent says that the record has no such property, or is no
	// record.
	ChecksumAbsent ChecksumState = iota
	// ChecksumValid says that the record ends with an exact and right trailer.
	ChecksumValid
	// ChecksumInvalid says that the record ends with the property, but its
	// form or its value is wrong.
	ChecksumInvalid
	// ChecksumNotLast says that the property stands elsewhere than at the end,
	// where it covers nothing.
	ChecksumNotLast
)

// String returns a lower-case word.
func (s ChecksumState) String() string {
	switch s {
	case ChecksumAbsent:
		return "absent"
	case ChecksumValid:
		return "valid"
	case ChecksumInvalid:
		return "invalid"
	}
	return "not last"
}

// CheckRecord checks the checksum over a whole record, whose total size must
// be the length of rec. A record that SealRecord sealed is no longer valid
// after any one bit of it was flipped, those of the trailer included. A
// record that MessageView.Parse refuses may give any answer but a panic, so
// parse first.
func CheckRecord(rec []byte) ChecksumState {
	// A trailer at the very end cannot reach over the properties: of a record
	// that Parse accepts, the two bytes before the properties are their length,
	// and no pair of bytes within a trailer is the length of what follows it.
	if at := len(rec) - ChecksumTrailerSize; at >= 0 {
		if got := rec[at:]; string(got[:len(checksumStart)]) == checksumStart {
			// Making the trailer that should be there takes a third fewer
			// instructions than parsing the one that is.
			var want [ChecksumTrailerSize]byte
			(&ChecksumTrailer{}).Encode(want[:], rec[:at])
			if want == [ChecksumTrailerSize]byte(got) {
				return ChecksumValid
			}
			if got[ChecksumTrailerSize-1] == PropertyEnd {
				return ChecksumInvalid
			}
		}
	}
	var v MessageView
	if v.Parse(rec) != nil {
		return ChecksumAbsent
	}
	return misplacedChecksum(v.Properties())
}

// Checksum is CheckRecord for a record that is parsed already.
func (v *MessageView) Checksum() ChecksumState { return CheckRecord(v.b) }

// misplacedChecksum judges properties that do not end with an exact trailer.
func misplacedChecksum(props []byte) ChecksumState {
	if !bytes.Contains(props, checksumName) {
		return ChecksumAbsent
	}
	state := ChecksumAbsent
	for len(props) > 0 {
		var segment []byte
		segment, props = nextProperty(props)
		if name, _, ok := splitProperty(segment); ok && string(name) == PropertyChecksum {
			if len(props) == 0 {
				return ChecksumInvalid
			}
			state = ChecksumNotLast
		}
	}
	return state
}
