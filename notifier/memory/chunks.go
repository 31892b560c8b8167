package memory

import "io"

// Chunks hold the content of a file in memory. They are pieces because the size is
// not known before the end: a single buffer would be copied each time it grows.
type Chunks struct {
	memory *Allocation
	list   [][]byte // all but the last one are full
	size   int64
}

// The first chunk has the size minChunk, and each next one is twice as large as
// the one before, up to maxChunk.
const (
	minChunk = 4 << 10
	maxChunk = 128 << 10
)

// NewChunks returns chunks whose memory counts for a, which may be nil.
func NewChunks(a *Allocation) *Chunks { return &Chunks{memory: a} }

// Fill reads from r. It reports whether c has all of r. If not, either c has
// max+1 bytes, or there is no memory for more than c has.
func (c *Chunks) Fill(r io.Reader, max int64) (whole bool, err error) {
	for c.size <= max {
		chunk, ok := c.grow(max + 1 - c.size)
		if !ok {
			return false, nil
		}
		n := 0
		for n < len(chunk) && err == nil {
			var m int
			m, err = r.Read(chunk[n:])
			n += m
		}
		c.size += int64(n)
		c.list = append(c.list, chunk[:n])
		if err == io.EOF {
			return c.size <= max, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// grow returns a new chunk of at most max bytes, or false if there is no memory
// for it.
func (c *Chunks) grow(max int64) (chunk []byte, ok bool) {
	size := int64(minChunk)
	if n := len(c.list); n > 0 {
		size = min(2*int64(cap(c.list[n-1])), maxChunk)
	}
	size = min(size, max)
	if !c.memory.TakeFile(size) {
		return nil, false
	}
	return make([]byte, size), true
}

// Start returns the beginning of the content.
func (c *Chunks) Start() []byte {
	if len(c.list) == 0 {
		return nil
	}
	return c.list[0]
}

// ReadAt implements [io.ReaderAt].
func (c *Chunks) ReadAt(p []byte, off int64) (n int, err error) {
	for _, chunk := range c.list {
		if off >= int64(len(chunk)) {
			off -= int64(len(chunk))
			continue
		}
		n += copy(p[n:], chunk[off:])
		if n == len(p) {
			return n, nil
		}
		off = 0
	}
	return n, io.EOF
}

// WriteTo implements [io.WriterTo].
func (c *Chunks) WriteTo(w io.Writer) (n int64, err error) {
	for _, chunk := range c.list {
		m, err := w.Write(chunk)
		n += int64(m)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Size returns how many bytes were read.
func (c *Chunks) Size() int64 { return c.size }

// Release frees the memory. The content cannot be read afterwards.
func (c *Chunks) Release() {
	var n int64
	for _, chunk := range c.list {
		n += int64(cap(chunk))
	}
	c.list = nil
	c.memory.FreeFile(n)
}
