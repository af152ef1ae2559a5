package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

// window is over how many places of the pool bodies are spread.
const window = 1 << 16

// Bodies makes message bodies that depend on nothing but a seed and a sequence
// number, so that each can be checked without keeping it. It is safe for
// concurrent use.
type Bodies struct {
	seed  uint64
	sizes Sizes
	pool  []byte
	files [][]byte // of a corpus; nil else
	// random is how many bytes from the start on are random.
	random int
	from   string
}

// NewBodies returns bodies of random bytes of those lengths. Making one costs a
// copy: it is 8 bytes of hash, then a piece of a pool of random bytes that the
// hash chooses.
func NewBodies(seed uint64, sizes Sizes) *Bodies {
	pool := make([]byte, (sizes.Max()+window+7)&^7)
	state := seed
	for i := 0; i < len(pool); i += 8 {
		state += golden
		binary.LittleEndian.PutUint64(pool[i:], mix(state))
	}
	return &Bodies{seed: seed, sizes: sizes, pool: pool, random: math.MaxInt, from: fmt.Sprintf("random bytes, size %v", sizes)}
}

// NewCorpus returns bodies that are the regular files below dir of at most
// maxSize bytes, which it reads into memory, 1 GiB in all at most. A random one
// of them is each body.
func NewCorpus(seed uint64, dir string, maxSize int) (*Bodies, error) {
	b := &Bodies{seed: seed}
	total := int64(0)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || total >= 1<<30 {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() > int64(maxSize) {
			return err
		}
		body, err := os.ReadFile(path)
		if err == nil && len(body) <= maxSize {
			b.files, total = append(b.files, body), total+int64(len(body))
			b.sizes.max = max(b.sizes.max, len(body))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(b.files) == 0 {
		return nil, fmt.Errorf("%s holds no regular file of at most %d bytes", dir, maxSize)
	}
	b.from = fmt.Sprintf("%d files, %d bytes", len(b.files), total)
	return b, nil
}

// NewPayload returns bodies that are all alike.
func NewPayload(body []byte) *Bodies {
	return &Bodies{files: [][]byte{body}, sizes: FixedSize(len(body)), from: fmt.Sprintf("one payload of %d bytes", len(body))}
}

// ZeroFrom makes only the first n bytes of each body random, at least the 8 that
// tell bodies apart, and the others zero; it returns b. It is for bodies of
// random bytes, before they are used.
func (b *Bodies) ZeroFrom(n int) *Bodies {
	b.random = max(n, 8)
	b.from += fmt.Sprintf(", zero from byte %d on", b.random)
	return b
}

// String says what the bodies are.
func (b *Bodies) String() string { return b.from }

// Max returns the longest body.
func (b *Bodies) Max() int { return b.sizes.Max() }

func (b *Bodies) hash(seq int64) uint64 { return mix(b.seed ^ mix(uint64(seq)*golden+1)) }

// file returns body seq of a corpus.
func (b *Bodies) file(h uint64) []byte { return b.files[h%uint64(len(b.files))] }

// Size returns the length of body seq.
func (b *Bodies) Size(seq int64) int {
	h := b.hash(seq)
	if b.files != nil {
		return len(b.file(h))
	}
	return b.sizes.Of(mix(h))
}

// parts returns the hash and the piece of the pool that make a body.
func (b *Bodies) parts(h uint64, size int) (head [8]byte, rest []byte) {
	binary.LittleEndian.PutUint64(head[:], h)
	if size <= len(head) {
		return head, nil
	}
	at := int(h >> 48)
	return head, b.pool[at : at+size-len(head)]
}

// Make returns body seq in buf, which is grown if it is too small.
func (b *Bodies) Make(buf []byte, seq int64) []byte {
	h := b.hash(seq)
	if b.files != nil {
		return append(buf[:0], b.file(h)...)
	}
	size := b.sizes.Of(mix(h))
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	head, rest := b.parts(h, size)
	n := copy(buf, head[:])
	copy(buf[n:], rest)
	if size > b.random {
		clear(buf[b.random:])
	}
	return buf
}

// Check reports whether body is body seq.
func (b *Bodies) Check(body []byte, seq int64) bool {
	h := b.hash(seq)
	if b.files != nil {
		return bytes.Equal(body, b.file(h))
	}
	if len(body) != b.sizes.Of(mix(h)) {
		return false
	}
	head, rest := b.parts(h, len(body))
	n := min(len(head), len(body))
	if len(body) > b.random {
		for _, c := range body[b.random:] {
			if c != 0 {
				return false
			}
		}
		body, rest = body[:b.random], rest[:b.random-n]
	}
	return bytes.Equal(body[:n], head[:n]) && bytes.Equal(body[n:], rest)
}
