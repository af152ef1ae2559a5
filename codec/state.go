package codec

// AppendState appends the record of s to dst and returns the longer slice. It
// fails, with a *FieldError and dst as it was, if a field of s is not legal.
func AppendState(dst []byte, s *State) ([]byte, error) { return s.Append(dst) }

// ParseState reads the State at the front of b, which may be longer, into s,
// whose slices are used again. It fails with a *FieldError if a byte of the
// record is not as AppendState wrote it; if the record is of a newer version,
// the error wraps ErrNewerVersion. After an error s is as it was.
func ParseState(b []byte, s *State) error {
	var v StateView
	if err := v.Parse(b); err != nil {
		return err
	}
	*s = State{
		Incompatible: v.Incompatible(), Compatible: v.Compatible(), Sequence: v.Sequence(), LogID: v.LogID(),
		SegmentSize: v.SegmentSize(), CreatedAt: v.CreatedAt(), Clean: v.Clean(), FirstSegment: v.FirstSegment(),
		End: v.End(), EndCRC: v.EndCRC(),
		Epochs: s.Epochs[:0], Ranges: s.Ranges[:0], Cursors: s.Cursors[:0],
	}
	for _, e := range v.Epochs().All() {
		s.Epochs = append(s.Epochs, EpochEntry{e.Epoch(), e.Start()})
	}
	for _, e := range v.Ranges().All() {
		s.Ranges = append(s.Ranges, RangeEntry{e.Start(), e.End()})
	}
	for _, e := range v.Cursors().All() {
		s.Cursors = append(s.Cursors, CursorEntry{e.Lane(), e.Epoch(), e.Next(), e.Tally()})
	}
	return nil
}
