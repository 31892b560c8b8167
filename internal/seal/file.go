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

// Chunks returns the number of chunks of a file of size bytes.
func Chunks(size int64) int64 { return (size + ChunkSize - 1) / ChunkSize }

// chunkID binds a chunk to its file, its place in it and the length of the file.
func chunkID(file []byte, size, chunk int64) []byte {
	id := append(make([]byte, 0, len(file)+16), file...)
	id = binary.BigEndian.AppendUint64(id, uint64(size))
	return binary.BigEndian.AppendUint64(id, uint64(chunk))
}

const tableFiles = "files"

var errNegative = errors.New("reading an attachment: negative offset")

// SealFile reads size bytes of r and calls write with each sealed chunk in
// turn. It returns an error if r has fewer bytes, or the first error of write.
func (s *Sealer) SealFile(r io.ReaderAt, size int64, file []byte, write func(chunk int64, sealed []byte) error) error {
	buf := make([]byte, min(size, ChunkSize))
	for i := range Chunks(size) {
		part := buf[:min(size-i*ChunkSize, ChunkSize)]
		if err := readChunk(r, part, i); err != nil {
			return err
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
		return 0, errNegative
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

// SealedSize returns the size of a sealed file, whose chunks follow one another.
func SealedSize(size int64) int64 { return size + Chunks(size)*Overhead }

// PlainSize is the inverse of [SealedSize].
func PlainSize(sealed int64) int64 {
	const chunk = ChunkSize + Overhead
	return max(0, sealed-(sealed+chunk-1)/chunk*Overhead)
}

// SealReader returns a reader of [SealedSize] bytes with the sealed chunks of a file. It returns the
// same bytes each time. It is safe for concurrent use and holds one chunk in memory.
func (s *Sealer) SealReader(r io.ReaderAt, size int64, file []byte) io.ReaderAt {
	return &sealReader{key: s.first(), r: r, size: size, file: file, nonces: map[int64][nonceSize]byte{}, at: -1}
}

type sealReader struct {
	key  *key
	r    io.ReaderAt
	size int64
	file []byte

	mu     sync.Mutex
	nonces map[int64][nonceSize]byte // of the chunks that were read: one that is read again is the same
	at     int64                     // number of the chunk in sealed; -1 for none
	sealed []byte                    // never modified after it is set
}

func (f *sealReader) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errNegative
	}
	const size = ChunkSize + Overhead
	for n < len(p) {
		if off >= SealedSize(f.size) {
			return n, io.EOF
		}
		sealed, err := f.chunk(off / size)
		if err != nil {
			return n, err
		}
		k := copy(p[n:], sealed[off%size:])
		n, off = n+k, off+int64(k)
	}
	return n, nil
}

func (f *sealReader) chunk(i int64) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == i {
		return f.sealed, nil
	}
	part := make([]byte, min(f.size-i*ChunkSize, ChunkSize))
	if err := readChunk(f.r, part, i); err != nil {
		return nil, err
	}
	nonce, ok := f.nonces[i]
	if !ok {
		nonce = newNonce()
		f.nonces[i] = nonce
	}
	f.at, f.sealed = i, f.key.seal(nonce, part, place(tableFiles, chunkID(f.file, f.size, i)))
	return f.sealed, nil
}

// OpenReader returns a reader of the content of a file of size bytes, of which r has the bytes of
// [Sealer.SealReader].
func (s *Sealer) OpenReader(r io.ReaderAt, size int64, file []byte) io.ReaderAt {
	return s.OpenFile(size, file, func(chunk int64) ([]byte, error) {
		b := make([]byte, min(size-chunk*ChunkSize, ChunkSize)+Overhead)
		n, err := r.ReadAt(b, chunk*(ChunkSize+Overhead))
		if errors.Is(err, io.EOF) {
			err = nil // the record does not authenticate if it is too short
		}
		return b[:n], err
	})
}

// IsOldFile reports whether a file, of which r has size bytes as [Sealer.SealReader] returns them, was
// sealed under an older secret.
func (s *Sealer) IsOldFile(r io.ReaderAt, size int64, file []byte) bool {
	first := make([]byte, min(size, ChunkSize+Overhead))
	if _, err := r.ReadAt(first, 0); err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	return s.IsOld(first, tableFiles, chunkID(file, PlainSize(size), 0))
}

// RenewChunk does with a chunk of a file whose content has size bytes what Renew does with a record.
func (s *Sealer) RenewChunk(sealed []byte, size int64, file []byte, chunk int64) []byte {
	return s.Renew(sealed, tableFiles, chunkID(file, size, chunk))
}

// readChunk reads the i-th chunk of a file.
func readChunk(r io.ReaderAt, part []byte, i int64) error {
	if n, err := r.ReadAt(part, i*ChunkSize); n < len(part) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("reading an attachment: %w", err)
	}
	return nil
}
