package codec

import "bytes"

// PeekMessage reads the size and magic at the front of b without judging
// them. It fails (false) if b has fewer than 8 bytes. It tells a blank record
// and empty space from a message before Parse is tried.
func PeekMessage(b []byte) (totalSize int32, magic uint32, ok bool) {
	if len(b) < BlankSize {
		return 0, 0, false
	}
	v := MessageView{b: b} // enough for the fields before the first variable one
	return v.TotalSize(), v.Magic(), true
}

// magicAlike is the number of bytes that both magics of a message begin with.
const magicAlike = 3

// FindMessage returns the first place in b where a message may start, by what
// the magics begin with; -1 if there is none. It looks at nothing else.
func FindMessage(b []byte) int {
	var start [4]byte
	putBE(start[:], uint64(MessageMagicV1))
	return findMagic(b, start[:magicAlike], MessageMagicOffset)
}

// FindBlank is FindMessage for a blank record.
func FindBlank(b []byte) int {
	var start [4]byte
	putBE(start[:], uint64(BlankMagic))
	return findMagic(b, start[:], BlankMagicOffset)
}

func findMagic(b, start []byte, offset int) int {
	if len(b) < offset {
		return -1
	}
	return bytes.Index(b[offset:], start)
}

// FindLastMessage returns the last place in b, below before, where a message
// may start; -1 if there is none.
func FindLastMessage(b []byte, before int) int {
	var start [4]byte
	putBE(start[:], uint64(MessageMagicV1))
	b = b[:max(0, min(before-1+MessageMagicOffset+magicAlike, len(b)))]
	if len(b) < MessageMagicOffset {
		return -1
	}
	return bytes.LastIndex(b[MessageMagicOffset:], start[:magicAlike])
}
