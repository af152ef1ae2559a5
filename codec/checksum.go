package codec

import (
	"bytes"
	"hash/crc32"
)

// ChecksumTrailerSize is the number of bytes that SealRecord fills at the end
// of a record: `__CRC32#`, 0x01, ten digits, 0x02. They are the last pair of
// its properties. A Message makes room for them by PropertiesReserve.
const ChecksumTrailerSize = 20

// checksumTrailer is a trailer whose digits are still to come.
var checksumTrailer = [ChecksumTrailerSize]byte{
	'_', '_', 'C', 'R', 'C', '3', '2', '#', PropertyNameEnd,
	'0', '0', '0', '0', '0', '0', '0', '0', '0', '0', PropertyEnd,
}

// checksumNameLength is the length of the trailer before its digits.
const checksumNameLength = len(PropertyChecksum) + 1

// trailerFor returns the trailer of a record whose bytes before it are covered.
// The digits run from the least significant one; the sum is the CRC-32 (IEEE)
// without its top bit.
func trailerFor(covered []byte) [ChecksumTrailerSize]byte {
	return trailerOf(crc32.ChecksumIEEE(covered))
}

// trailerOf returns the trailer for a CRC-32. The digits go by pairs, since a
// chain of ten divisions would cost a quarter of the whole.
func trailerOf(crc uint32) [ChecksumTrailerSize]byte {
	t := checksumTrailer
	sum := crc & 0x7fffffff
	low, middle, high := sum%10000, sum/10000%10000, sum/100000000
	digits := (*[10]byte)(t[checksumNameLength:])
	for i, pair := range [5]uint32{low % 100, low / 100, middle % 100, middle / 100, high} {
		digits[2*i], digits[2*i+1] = byte('0'+pair%10), byte('0'+pair/10)
	}
	return t
}

// SealRecord writes the checksum over a whole record into its last
// ChecksumTrailerSize bytes. The length of rec must be the record's total
// size, its late fields final, and the bytes must belong to its properties
// (Message.PropertiesReserve). It allocates nothing. It panics if rec is
// shorter than the trailer.
func SealRecord(rec []byte) {
	at := len(rec) - ChecksumTrailerSize
	*(*[ChecksumTrailerSize]byte)(rec[at:]) = trailerFor(rec[:at])
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
		got := (*[ChecksumTrailerSize]byte)(rec[at:])
		if bytes.Equal(got[:checksumNameLength], checksumTrailer[:checksumNameLength]) {
			if *got == trailerFor(rec[:at]) {
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
