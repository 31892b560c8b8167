package mail

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/charset"
	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// decodeTransfer decodes the transfer encoding of a body. A body stays as it is if its encoding is
// unknown or not the one that its header names. A base64 file with a damaged header is decoded,
// too. isText reports whether the body is a text, in the charset declared.
func decodeTransfer(encoding string, body *bufio.Reader, isText bool, declared string) *bufio.Reader {
	encoding, _, _ = strings.Cut(strings.Trim(strings.TrimSpace(encoding), "\"';,"), " ")
	switch strings.ToLower(strings.Trim(encoding, "\"';,")) {
	case "quoted-printable":
		return newBuffer(&quotedPrintable{r: body})
	case "base64":
		if !isBase64(body, isText, declared) {
			return body
		}
		return newBuffer(&base64Reader{r: body})
	}
	if line := firstLine(body); isText && len(line) >= minEncoded && !bytes.ContainsFunc(line, isForeign) && isFile(decodeLine(line)) {
		return newBuffer(&base64Reader{r: body})
	}
	return body
}

// minEncoded is the minimum length of the first line of a base64 file, in bytes.
const minEncoded = 40

// firstLine returns the first line of r that is not empty, without space at its ends.
func firstLine(r *bufio.Reader) []byte {
	start, _ := r.Peek(sniffLength) // a later read returns the error
	line, _, _ := bytes.Cut(bytes.TrimLeft(start, " \t\r\n"), lf)
	return bytes.TrimRight(line, " \t\r")
}

// decodeLine decodes a line in base64.
func decodeLine(line []byte) []byte {
	decoded, _ := io.ReadAll(&base64Reader{r: bufio.NewReader(bytes.NewReader(line))}) // it returns no error
	return decoded
}

// isFile reports whether b is the beginning of a file.
func isFile(b []byte) bool {
	media := http.DetectContentType(b)
	return media != octets && !strings.HasPrefix(media, "text/")
}

// isBase64 reports whether the first line of r is in base64.
func isBase64(r *bufio.Reader, isText bool, declared string) bool {
	line := firstLine(r)
	if bytes.ContainsAny(line, " \t") && bytes.ContainsFunc(line, isForeign) {
		return false
	}
	if !isText {
		return true
	}
	decoded := decodeLine(line)
	return len(line) == 0 || isFile(decoded) || len(decoded) > 0 && charset.IsText(decoded, declared)
}

// isForeign reports whether a character does not occur in base64.
func isForeign(r rune) bool {
	return r >= utf8.RuneSelf || !base64Characters[byte(r)] && !strings.ContainsRune("= \t\r\n", r)
}

// base64Characters are the characters of the alphabet.
var base64Characters = func() (set [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		set[c] = true
	}
	return set
}()

// base64Reader decodes base64 leniently (RFC 2045, section 6.8): it skips other characters,
// continues after padding, and needs no padding at the end. Text lines after the end, as mailing
// lists add them, are left out. The data can end at padding or, since it may need none, at a line
// without base64.
type base64Reader struct {
	r      *bufio.Reader
	group  []byte // characters not decoded yet
	buffer []byte // holds out
	out    []byte // decoded but not read yet
	begun  bool   // something was decoded
	ended  bool   // the data may have ended
	err    error
}

// Read implements io.Reader.
func (b *base64Reader) Read(p []byte) (int, error) {
	for len(b.out) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		line, err := b.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			b.err = err
		}
		b.decode(line)
		if b.err != nil {
			b.flush(len(b.group))
		}
		b.out = b.buffer
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	return n, nil
}

// decode decodes a line, or a piece of a long one.
func (b *base64Reader) decode(line []byte) {
	b.buffer = b.buffer[:0]
	if b.ended && bytes.ContainsFunc(bytes.TrimSpace(line), func(r rune) bool { return r == ' ' || isForeign(r) }) {
		return
	}
	found := false
	for _, c := range line {
		switch {
		case base64Characters[c]:
			b.group = append(b.group, c)
			b.begun, found = true, true
		case c == '=':
			b.ended = true
			b.flush(len(b.group))
		}
	}
	b.flush(len(b.group) / 4 * 4)
	if !found && b.begun && len(b.group) == 0 {
		b.ended = true
	}
}

// flush decodes the first n characters in the group.
func (b *base64Reader) flush(n int) {
	b.buffer, _ = base64.RawStdEncoding.AppendDecode(b.buffer, b.group[:n]) // a single character is no byte
	b.group = append(b.group[:0], b.group[n:]...)
}

// quotedPrintable decodes quoted-printable (RFC 2045, section 6.7). It keeps all other characters,
// including an equals sign that begins no escape.
type quotedPrintable struct {
	r      *bufio.Reader
	buffer []byte // of out
	out    []byte // decoded but not read yet
	err    error
}

// Read implements io.Reader.
func (q *quotedPrintable) Read(p []byte) (int, error) {
	for len(q.out) == 0 {
		if q.err != nil {
			return 0, q.err
		}
		line, err := q.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			q.err = err
		}
		if i := bytes.LastIndexByte(line, '='); err != nil && i >= 0 && len(line)-i < 3 && q.err == nil {
			// The piece of a long line ends within an escape.
			line = append(bytes.Clone(line), q.more(3-(len(line)-i))...)
		}
		q.decode(line)
		q.out = q.buffer
	}
	n := copy(p, q.out)
	q.out = q.out[n:]
	return n, nil
}

// more reads up to n further bytes of a line.
func (q *quotedPrintable) more(n int) []byte {
	next, _ := q.r.Peek(n) // a later read returns the error
	next = bytes.Clone(next)
	_, _ = q.r.Discard(len(next))
	return next
}

// decode decodes a line, or a piece of a long one.
func (q *quotedPrintable) decode(line []byte) {
	q.buffer = q.buffer[:0]
	text := trimLine(line)
	end := line[len(text):]
	if len(end) > 0 {
		text = bytes.TrimRight(text, " \t") // spaces that mail servers add
		if rest, soft := bytes.CutSuffix(text, []byte("=")); soft {
			text, end = rest, nil
		}
	}
	for i := 0; i < len(text); i++ {
		if text[i] == '=' && i+2 < len(text) {
			if high, low := percent.Digit(text[i+1]), percent.Digit(text[i+2]); high >= 0 && low >= 0 {
				q.buffer = append(q.buffer, byte(high<<4|low))
				i += 2
				continue
			}
		}
		q.buffer = append(q.buffer, text[i])
	}
	q.buffer = append(q.buffer, end...)
}
