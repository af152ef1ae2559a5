package codecs

// Encoder is one way to encode.
type Encoder struct {
	// Name is what tables call it, Checks what it refuses.
	Name, Checks string
	// Prepare returns a function that encodes each of rs, one after the other,
	// into memory that it uses again for each, and returns the bytes of the last.
	// They hold until it is called again.
	Prepare func(rs []Record) func() ([]byte, error)
}

// Decoder is one way to decode.
type Decoder struct {
	// Name is what tables call it, Checks what it refuses, From the name of an
	// Encoder whose bytes it reads.
	Name, Checks, From string
	// Prepare returns a function that decodes all of encoded, one after the other,
	// reads every field, and returns the sum of all Record.Sum.
	Prepare func(encoded [][]byte) func() (uint64, error)
	// Record decodes b into a record that shares no memory with it.
	Record func(b []byte) (Record, error)
}

// Yardstick is the name of a way to encode that is none: see encodeCopies.
const Yardstick = "the three copies alone"

// Encoders are all ways to encode, ours first.
func Encoders() []Encoder {
	return []Encoder{
		{"stratalog", "width of hosts, every length, magic, room", encodePlain},
		{Yardstick, "-", encodeCopies},
		{"vtprotobuf, to the end of a larger buffer", "nothing; panics without room", encodeVTEnd},
		{"vtprotobuf, sized", "nothing", encodeVTSized},
		{"vtprotobuf, varints, sized", "nothing", encodeVTVarint},
		{"msgp, array", "nothing", encodeTuple},
		{"msgp, map", "nothing", encodeMap},
		{"flatbuffers, struct in table", "order of calls", encodePacked},
		{"flatbuffers, table", "order of calls", encodeTable},
	}
}

// Decoders are all ways to decode, ours first.
func Decoders() []Decoder {
	return []Decoder{
		{"stratalog", "magic, size, every length, that they add up", "stratalog", decodePlain, recordPlain},
		{"vtprotobuf, unsafe", "tags, lengths", "vtprotobuf, sized", decodeVTUnsafe, recordVTUnsafe},
		{"vtprotobuf, in place", "tags, lengths; copies", "vtprotobuf, sized", decodeVT, recordVT},
		{"vtprotobuf, pooled", "tags, lengths; copies", "vtprotobuf, sized", decodeVTPool, recordVT},
		{"vtprotobuf, varints, unsafe", "tags, lengths", "vtprotobuf, varints, sized", decodeVTVarint, recordVTVarint},
		{"msgp, array, zerocopy", "types, ranges, lengths, number of fields", "msgp, array", decodeAliased, recordAliased},
		{"msgp, array", "types, ranges, lengths, number of fields; copies", "msgp, array", decodeTuple, recordTuple},
		{"msgp, map", "types, ranges, lengths; copies", "msgp, map", decodeMap, recordMap},
		{"flatbuffers, struct in table", unchecked, "flatbuffers, struct in table", decodePacked, recordPacked},
		{"flatbuffers, table", unchecked, "flatbuffers, table", decodeTable, recordTable},
	}
}

// encodings returns the bytes of each record.
func encodings(e Encoder, rs []Record) ([][]byte, error) {
	all := make([][]byte, len(rs))
	for i := range rs {
		b, err := e.Prepare(rs[i : i+1])()
		if err != nil {
			return nil, err
		}
		all[i] = append([]byte(nil), b...)
	}
	return all, nil
}

// room is the size of a buffer that any record of rs fits into, by any codec.
func room(rs []Record) int {
	n := 0
	for i := range rs {
		r := &rs[i]
		n = max(n, 512+len(r.Body)+len(r.Topic)+len(r.Properties))
	}
	return n
}

// unchecked is what a decoder without checks says of itself. The Go library of
// FlatBuffers has no verifier.
const unchecked = "nothing; panics past the end"
