package mail

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// splitter splits a multipart (RFC 2046, section 5.1) into the text before the first boundary, the
// parts, and the text after the last boundary. Read reads one of them and then returns [io.EOF].
//
// The mails of some programs have another boundary than they declare, or declare none. So before
// the first part, a line of two hyphens that a field of a part follows is a boundary, too.
type splitter struct {
	r        *bufio.Reader
	boundary []byte // with the hyphens; nil if unknown

	buffer []byte // holds out
	out    []byte // unread bytes of the current line
	end    string // end of the line before; part of the boundary if one follows
	inLine bool   // the next bytes of r continue a line
	inPart bool   // a boundary has been found
	ended  bool   // a boundary or the end was read
	last   bool   // no other part follows
}

func newSplitter(r *bufio.Reader, boundary string) *splitter {
	s := &splitter{r: r}
	if boundary != "" {
		s.boundary = []byte("--" + boundary)
	}
	return s
}

// next begins the next part, and reports whether there is one. Without one, the text after the last
// boundary can be read.
func (s *splitter) next() bool {
	more := !s.last
	s.ended, s.end = false, ""
	return more
}

// Read implements io.Reader.
func (s *splitter) Read(p []byte) (int, error) {
	for len(s.out) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		if err := s.readLine(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// readLine reads the next line, or a piece of a long one.
func (s *splitter) readLine() error {
	line, err := s.r.ReadSlice('\n')
	switch {
	case err == io.EOF && len(line) == 0:
		if !s.inPart {
			s.out = []byte(s.end)
		}
		s.end, s.ended, s.last = "", true, true
		return nil
	case err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull):
		return err
	}
	if !s.inLine && bytes.HasPrefix(line, []byte("--")) {
		line = bytes.Clone(line) // looking ahead moves it
		if s.isBoundary(line) {
			s.ended, s.inPart, s.end = true, true, ""
			return nil
		}
	}
	text := trimLine(line)
	s.buffer = append(append(s.buffer[:0], s.end...), text...)
	s.inLine, s.out, s.end = len(text) == len(line), s.buffer, lineEnd(line[len(text):])
	return nil
}

// lineEnd returns the end of a line as a string, mostly without a copy.
func lineEnd(end []byte) string {
	switch len(end) {
	case 0:
		return ""
	case 1:
		return "\n"
	case 2:
		return "\r\n"
	}
	return string(end)
}

// isBoundary reports whether a line that begins with two hyphens is a boundary, and records whether
// it is the last one.
func (s *splitter) isBoundary(line []byte) bool {
	line = bytes.TrimRight(line, " \t\r\n")
	if rest, ok := bytes.CutPrefix(line, s.boundary); ok && s.boundary != nil {
		if s.last = string(rest) == "--"; s.last || len(rest) == 0 {
			return true
		}
	}
	if s.inPart || len(line) == 2 {
		return false
	}
	start, _ := s.r.Peek(maxFieldName) // a later read returns the error
	if partField.Match(start) {
		s.boundary = line
		return true
	}
	return false
}

// partField matches the beginning of the header of a part.
var partField = lazyregexp.New(`(?i)^Content-[A-Za-z-]+[ \t]*:`)
