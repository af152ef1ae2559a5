package index

// chunkSize is the piece in which memory is taken for the slots of the active
// file: a store with few keys takes little.
const chunkSize = 16 * pageSize

// image is the header and the slots of a file, in chunks. One that is not there
// stands for zeros.
type image [][]byte

func (l layout) newImage() image {
	return make(image, (l.headSize()+chunkSize-1)/chunkSize)
}

// from returns the bytes from byte at to the end of its chunk, nil if that is
// not there.
func (m image) from(at int64) []byte {
	if c := m[at/chunkSize]; c != nil {
		return c[at%chunkSize:]
	}
	return nil
}

// make returns the chunk of byte at, made if need be.
func (m image) make(l layout, at int64) []byte {
	i := at / chunkSize
	if m[i] == nil {
		m[i] = make([]byte, min(chunkSize, l.headSize()-i*chunkSize))
	}
	return m[i]
}

func (m image) clear() {
	for _, c := range m {
		clear(c)
	}
}
