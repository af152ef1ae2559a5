package codec

import (
	"encoding/binary"
	"hash/crc32"
)

// maxStateEntries bounds what a State may hold, so that its length fits 32
// bits with room to spare.
const maxStateEntries = 1 << 20

// checksumSize is the size of the CRC-32C behind the entries of a State.
const checksumSize = 4

// State is the sidecar's record of a whole log: its identity, its end, and
// where its epochs, written ranges and lanes stand.
//
//	header    stateHeader, which counts the entries
//	entries   EpochEntry..., RangeEntry..., CursorEntry...
//	checksum  u32, CRC-32C of everything before it
type State struct {
	// Incompatible holds the features that a reader must know.
	Incompatible uint64
	// Compatible holds the features that a reader may ignore.
	Compatible uint64
	// Sequence grows with each write; of two slots the larger one holds.
	Sequence uint64
	// LogID says which log the state is of.
	LogID [16]byte
	// SegmentSize is the size of a log file in bytes.
	SegmentSize int64
	// CreatedAt is the time of the log's creation, in epoch milliseconds.
	CreatedAt int64
	// Clean says that the log was closed after this record was written.
	Clean bool
	// FirstSegment is the start of the oldest log file.
	FirstSegment int64
	// End is the end of the log when the record was written.
	End int64
	// EndCRC is the CRC-32C of the last record below End.
	EndCRC uint32
	// Epochs says where each epoch starts.
	Epochs []EpochEntry
	// Ranges are the ranges of the log that this program wrote.
	Ranges []RangeEntry
	// Cursors are the cursors of the lanes.
	Cursors []CursorEntry
}

// Size returns the number of bytes that AppendState appends.
func (s *State) Size() int { return stateHeaderSize + s.bodyLength() + checksumSize }

func (s *State) bodyLength() int {
	return len(s.Epochs)*EpochEntrySize + len(s.Ranges)*RangeEntrySize + len(s.Cursors)*CursorEntrySize
}

// AppendState appends the record of s to dst and returns the longer slice. It
// fails, with a *FieldError and dst as it was, if a field of s is not legal.
func AppendState(dst []byte, s *State) ([]byte, error) {
	if n := max(len(s.Epochs), len(s.Ranges), len(s.Cursors)); n > maxStateEntries {
		return dst, outOfRange("State", "Entries", stateHeaderSize, int64(n), 0, maxStateEntries)
	}
	start, size := len(dst), s.Size()
	out := append(dst, make([]byte, size)...)
	rec := out[start:]
	h := stateHeader{
		Incompatible: s.Incompatible, Compatible: s.Compatible, Sequence: s.Sequence, LogID: s.LogID,
		SegmentSize: s.SegmentSize, CreatedAt: s.CreatedAt, FirstSegment: s.FirstSegment,
		End: s.End, EndCRC: s.EndCRC,
		EpochCount: uint32(len(s.Epochs)), RangeCount: uint32(len(s.Ranges)),
		CursorCount: uint32(len(s.Cursors)), BodyLength: uint32(s.bodyLength()),
	}
	if s.Clean {
		h.Clean = 1
	}
	at, err := h.Encode(rec)
	for i := 0; i < len(s.Epochs) && err == nil; i++ {
		at, err = encodeEntry(rec, at, s.Epochs[i].Encode)
	}
	for i := 0; i < len(s.Ranges) && err == nil; i++ {
		at, err = encodeEntry(rec, at, s.Ranges[i].Encode)
	}
	for i := 0; i < len(s.Cursors) && err == nil; i++ {
		at, err = encodeEntry(rec, at, s.Cursors[i].Encode)
	}
	if err != nil {
		return dst, err
	}
	binary.BigEndian.PutUint32(rec[at:], crc32.Checksum(rec[:at], castagnoli))
	return out, nil
}

// encodeEntry encodes at rec[at:] and returns where the next entry stands.
func encodeEntry(rec []byte, at int, encode func([]byte) (int, error)) (int, error) {
	n, err := encode(rec[at:])
	return at + n, err
}

// ParseState reads the State at the front of b, which may be longer, into s,
// whose slices are used again. It fails with a *FieldError if a byte of the
// record is not as AppendState wrote it; if the record is of a newer version,
// the error wraps ErrNewerVersion. After an error s must not be used, since the
// entries of its slices may have changed.
func ParseState(b []byte, s *State) error {
	var h stateHeaderView
	if err := h.Parse(b); err != nil {
		return err
	}
	epochs, ranges, cursors := int64(h.EpochCount()), int64(h.RangeCount()), int64(h.CursorCount())
	length := epochs*EpochEntrySize + ranges*RangeEntrySize + cursors*CursorEntrySize
	if length != int64(h.BodyLength()) {
		return badSum("State", "BodyLength", stateHeaderSize-4, int(h.BodyLength()), int(length))
	}
	end := stateHeaderSize + int(length)
	if len(b)-checksumSize < end {
		return truncated("State", len(b), []span{{"Entries", stateHeaderSize, end}, {"Checksum", end, end + checksumSize}})
	}
	got, want := binary.BigEndian.Uint32(b[end:]), crc32.Checksum(b[:end], castagnoli)
	if got != want {
		return badChecksum("State", "Checksum", end, got, want)
	}
	out := State{
		Incompatible: h.Incompatible(), Compatible: h.Compatible(), Sequence: h.Sequence(), LogID: h.LogID(),
		SegmentSize: h.SegmentSize(), CreatedAt: h.CreatedAt(), Clean: h.Clean() == 1,
		FirstSegment: h.FirstSegment(), End: h.End(), EndCRC: h.EndCRC(),
		Epochs: s.Epochs[:0], Ranges: s.Ranges[:0], Cursors: s.Cursors[:0],
	}
	if err := out.parseEntries(b[stateHeaderSize:end], int(epochs), int(ranges)); err != nil {
		return err
	}
	*s = out
	return nil
}

// parseEntries reads the entries of body, whose length fits the counts; what
// is neither an epoch nor a range is a cursor.
func (s *State) parseEntries(body []byte, epochs, ranges int) error {
	for ; epochs > 0; epochs-- {
		var v EpochEntryView
		if err := v.Parse(body); err != nil {
			return err
		}
		s.Epochs = append(s.Epochs, EpochEntry{v.Epoch(), v.Start()})
		body = body[EpochEntrySize:]
	}
	for ; ranges > 0; ranges-- {
		var v RangeEntryView
		if err := v.Parse(body); err != nil {
			return err
		}
		s.Ranges = append(s.Ranges, RangeEntry{v.Start(), v.End()})
		body = body[RangeEntrySize:]
	}
	for len(body) > 0 {
		var v CursorEntryView
		if err := v.Parse(body); err != nil {
			return err
		}
		s.Cursors = append(s.Cursors, CursorEntry{v.Lane(), v.Epoch(), v.Next(), v.Tally()})
		body = body[CursorEntrySize:]
	}
	return nil
}
