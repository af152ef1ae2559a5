package perf

import (
	"bytes"
	"encoding/binary"
)

// window is over how many places of the pool bodies are spread.
const window = 1 << 16

// Bodies makes message bodies that depend on nothing but a seed, a sequence
// number and a length, so that each can be checked without keeping it. It costs
// a copy: a body is 8 bytes of hash, then a piece of a pool of random bytes that
// the hash chooses. It is safe for concurrent use.
type Bodies struct {
	seed    uint64
	maxSize int
	pool    []byte
}

// NewBodies returns the bodies of seed, of up to maxSize bytes each.
func NewBodies(seed uint64, maxSize int) *Bodies {
	pool := make([]byte, (maxSize+window+7)&^7)
	state := seed
	for i := 0; i < len(pool); i += 8 {
		state += golden
		binary.LittleEndian.PutUint64(pool[i:], mix(state))
	}
	return &Bodies{seed: seed, maxSize: maxSize, pool: pool}
}

const golden = 0x9E3779B97F4A7C15

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// parts returns the hash and the piece of the pool that make body seq.
func (b *Bodies) parts(seq int64, size int) (head [8]byte, rest []byte) {
	h := mix(b.seed ^ mix(uint64(seq)*golden+1))
	binary.LittleEndian.PutUint64(head[:], h)
	if size <= len(head) {
		return head, nil
	}
	at := int(h >> 48)
	return head, b.pool[at : at+size-len(head)]
}

// Fill makes dst body seq of its length.
func (b *Bodies) Fill(dst []byte, seq int64) {
	head, rest := b.parts(seq, len(dst))
	n := copy(dst, head[:])
	copy(dst[n:], rest)
}

// Check reports whether body is body seq of its length.
func (b *Bodies) Check(body []byte, seq int64) bool {
	if len(body) > b.maxSize {
		return false
	}
	head, rest := b.parts(seq, len(body))
	n := min(len(head), len(body))
	return bytes.Equal(body[:n], head[:n]) && bytes.Equal(body[n:], rest)
}
