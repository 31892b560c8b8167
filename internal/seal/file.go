package seal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// ChunkSize is the number of bytes of a file that are sealed together. All
// chunks of a file except the last have this size.
const ChunkSize = 64 << 10

// chunkCount returns the number of chunks of a file of size bytes.
func chunkCount(size int64) int64 { return (size + ChunkSize - 1) / ChunkSize }

// chunkID binds a chunk to its file, its place in it and the length of the file.
func chunkID(file []byte, size, chunk int64) []byte {
	id := append(make([]byte, 0, len(file)+16), file...)
	id = binary.BigEndian.AppendUint64(id, uint64(size))
	return binary.BigEndian.AppendUint64(id, uint64(chunk))
}

const tableFiles = "files"

// SealFile reads size bytes of r and calls write with each sealed chunk in
// turn. It returns an error if r has fewer bytes, or the first error of write.
func (s *Sealer) SealFile(r io.ReaderAt, size int64, file []byte, write func(chunk int64, sealed []byte) error) error {
	buf := make([]byte, min(size, ChunkSize))
	for i := range chunkCount(size) {
		part := buf[:min(size-i*ChunkSize, ChunkSize)]
		if n, err := r.ReadAt(part, i*ChunkSize); n < len(part) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("reading an attachment: %w", err)
		}
		if err := write(i, s.Seal(part, tableFiles, chunkID(file, size, i))); err != nil {
			return err
		}
	}
	return nil
}

// OpenFile returns a reader of a file of size bytes. read returns a sealed
// chunk of the file. The reader is safe for concurrent use and holds one chunk
// in memory.
func (s *Sealer) OpenFile(size int64, file []byte, read func(chunk int64) ([]byte, error)) io.ReaderAt {
	return &fileReader{sealer: s, size: size, file: file, read: read, at: -1}
}

type fileReader struct {
	sealer *Sealer
	size   int64
	file   []byte
	read   func(chunk int64) ([]byte, error)

	mu    sync.Mutex
	at    int64  // number of the chunk in plain; -1 for none
	plain []byte // never modified after it is set
}

func (f *fileReader) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("reading an attachment: negative offset")
	}
	for n < len(p) {
		if off >= f.size {
			return n, io.EOF
		}
		plain, err := f.chunk(off / ChunkSize)
		if err != nil {
			return n, err
		}
		k := copy(p[n:], plain[off%ChunkSize:])
		n, off = n+k, off+int64(k)
	}
	return n, nil
}

func (f *fileReader) chunk(i int64) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == i {
		return f.plain, nil
	}
	sealed, err := f.read(i)
	if err != nil {
		return nil, fmt.Errorf("reading an attachment: %w", err)
	}
	plain, err := f.sealer.Open(sealed, tableFiles, chunkID(f.file, f.size, i))
	if err == nil && int64(len(plain)) != min(f.size-i*ChunkSize, ChunkSize) {
		err = ErrOpen
	}
	if err != nil {
		return nil, fmt.Errorf("reading an attachment: %w", err)
	}
	f.at, f.plain = i, plain
	return plain, nil
}
