package notifier

import (
	"encoding/base64"
	"io"
)

// base64Size returns the length of the base64 encoding of n bytes.
func base64Size(n int64) int64 { return (n + 2) / 3 * 4 }

// base64Reader encodes r in base64 while it is read, so that no destination
// holds a file's encoding in memory.
type base64Reader struct {
	r    io.Reader
	in   [3 << 10]byte
	out  [4 << 10]byte
	left []byte
	err  error
}

func (b *base64Reader) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		n, err := io.ReadFull(b.r, b.in[:])
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		b.err = err
		base64.StdEncoding.Encode(b.out[:], b.in[:n])
		b.left = b.out[:base64.StdEncoding.EncodedLen(n)]
		if len(b.left) == 0 {
			return 0, b.err
		}
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// formReader escapes the base64 text of r for a form.
type formReader struct {
	r    io.Reader
	in   [1 << 10]byte
	out  [3 << 10]byte
	left []byte
	err  error
}

func (f *formReader) Read(p []byte) (int, error) {
	for len(f.left) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		var n int
		n, f.err = f.r.Read(f.in[:])
		f.left = f.out[:0]
		for _, c := range f.in[:n] {
			switch c {
			case '+':
				f.left = append(f.left, "%2B"...)
			case '/':
				f.left = append(f.left, "%2F"...)
			case '=':
				f.left = append(f.left, "%3D"...)
			default:
				f.left = append(f.left, c)
			}
		}
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

// lineLength is the number of base64 characters in a line of a mail (RFC 2045,
// section 6.8).
const lineLength = 76

// lineReader breaks the base64 text of r into lines.
type lineReader struct {
	r    io.Reader
	in   [lineLength]byte
	out  [2 + lineLength]byte
	left []byte
	more bool
}

func (l *lineReader) Read(p []byte) (int, error) {
	if len(l.left) == 0 {
		n, err := io.ReadFull(l.r, l.in[:])
		if n == 0 {
			return 0, err
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return 0, err
		}
		l.left = l.out[:0]
		if l.more {
			l.left = append(l.left, "\r\n"...)
		}
		l.left, l.more = append(l.left, l.in[:n]...), true
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}
