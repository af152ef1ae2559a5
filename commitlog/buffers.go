package commitlog

import (
	"math/bits"

	"github.com/valyala/bytebufferpool"

	"github.com/stratalog/stratalog/contract"
)

// bufferPools holds the buffers that records are encoded in, by the logarithm
// of their size. One pool for all would drop those that are larger than most,
// as it means to keep little memory: each large record among small ones, and
// each batch among single records, would allocate its own.
var bufferPools [64]bytebufferpool.Pool

// recordOverhead is about what a record takes besides its body, topic and
// properties. A wrong guess costs a growth of the buffer at times.
const recordOverhead = 128

// encodedSize estimates the size of m in the log.
func encodedSize(m *contract.Message) int {
	return recordOverhead + len(m.Body) + len(m.Topic) + len(m.Properties)
}

// bufferPool returns the pool for buffers of about size bytes.
func bufferPool(size int) *bytebufferpool.Pool {
	return &bufferPools[bits.Len64(uint64(size))&63]
}
