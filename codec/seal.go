package codec

import (
	"hash/crc32"
	"math/bits"
)

// Seal is SealRecord in two steps: Prepare reads the record before its late
// fields are known, outside every lock; Finish reads only the bytes around
// them, so that what it costs in the critical section does not grow with the
// body. The zero value is ready for Prepare, and a Seal may be used again.
//
// A record is head, late part and tail: the late part goes from QueueOffset to
// StoreTimestamp, and the trailer stands behind the tail. CRC-32 is linear, so
//
//	crc(head late tail) = move(crc(head late), len(tail)) ^ crc(tail)
//
// where move multiplies by x^(8n) modulo the polynomial. Prepare keeps that
// multiplication as a matrix, one row per bit.
type Seal struct {
	head, tail uint32
	lateEnd    int
	rows       [32]uint32
}

// lateStart is where the first late field of a Message stands.
const lateStart = 20

// Prepare reads an encoded Message, rec being exactly it, with room for the
// trailer (Message.PropertiesReserve). Only its queue offset, physical offset
// and store timestamp may change before Finish. Prepare panics if rec is too
// short to be such a record.
func (s *Seal) Prepare(rec []byte) {
	s.lateEnd = 56 + 8
	if rec[39]&byte(SysFlagBornHostV6) != 0 {
		s.lateEnd += HostV6Size - HostV4Size
	}
	tail := rec[s.lateEnd : len(rec)-ChecksumTrailerSize]
	s.head = crc32.ChecksumIEEE(rec[:lateStart])
	s.tail = crc32.ChecksumIEEE(tail)
	row := moveBytes(uint32(len(tail)))
	for i := 31; i >= 0; i-- {
		s.rows[i] = row
		row = timesX(row)
	}
}

// Finish writes the trailer into rec, the record that was prepared, whose late
// fields are final now. The result is that of SealRecord. It allocates
// nothing.
func (s *Seal) Finish(rec []byte) {
	front := crc32.Update(s.head, crc32.IEEETable, rec[lateStart:s.lateEnd])
	sum := s.tail
	for i := range s.rows {
		sum ^= s.rows[i] & -(front >> i & 1)
	}
	*(*[ChecksumTrailerSize]byte)(rec[len(rec)-ChecksumTrailerSize:]) = trailerOf(sum)
}

// Polynomials modulo that of CRC-32 are kept as the CRC is: the top bit is the
// coefficient of x^0.
const polynomialOne = 1 << 31

// timesX returns a times x.
func timesX(a uint32) uint32 { return a>>1 ^ crc32.IEEE&-(a&1) }

// times returns a times b.
func times(a, b uint32) uint32 {
	var product uint32
	for i := 31; i >= 0; i-- {
		product ^= b & -(a >> i & 1)
		b = timesX(b)
	}
	return product
}

// movePowers holds x^(8n) for every n that has only its k-th byte set.
var movePowers = func() (t [4][256]uint32) {
	step := uint32(polynomialOne >> 8) // x^8
	for k := range t {
		t[k][0] = polynomialOne
		for n := 1; n < 256; n++ {
			t[k][n] = times(t[k][n-1], step)
		}
		step = times(t[k][255], step)
	}
	return t
}()

// moveBytes returns x^(8n).
func moveBytes(n uint32) uint32 {
	power := movePowers[0][n&0xFF]
	for k := 1; k < (bits.Len32(n)+7)/8; k++ {
		if b := n >> (8 * k) & 0xFF; b != 0 {
			power = times(power, movePowers[k][b])
		}
	}
	return power
}
