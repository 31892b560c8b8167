package mail

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	message "github.com/emersion/go-message/textproto"
)

// Header is the header of a mail.
type Header struct{ fields message.Header }

// text returns a field as one line, decoded (RFC 2047).
func (h Header) text(name string) string { return oneLine(h.fields.Get(name)) }

// thread returns the first Message-ID that the mails of a thread share.
func (h Header) thread() string {
	for _, name := range []string{"References", "In-Reply-To", "Message-ID"} {
		_, id, found := strings.Cut(h.fields.Get(name), "<")
		if id, _, closed := strings.Cut(id, ">"); found && closed && id != "" {
			return oneLine(id)
		}
	}
	return ""
}

// Max returns the largest number that a field with this name has, or 0. A text
// that is not a number counts as 0.
func (h Header) Max(name string) int {
	most := 0
	for f := h.fields.FieldsByKey(name); f.Next(); {
		if n, err := strconv.Atoi(strings.TrimSpace(f.Value())); err == nil {
			most = max(most, n)
		}
	}
	return most
}

// Count returns the number of fields with this name.
func (h Header) Count(name string) int { return h.fields.FieldsByKey(name).Len() }

// readHeader reads the header of a mail. Malformed lines are left out. Without
// any field, the mail has only a body.
func readHeader(r *bufio.Reader) (message.Header, error) {
	var h message.Header
	if !beginsWithField(r) {
		return h, nil
	}
	var fields [][]byte
	for left := maxHeader; ; {
		line, err := readLine(r, left)
		if err != nil {
			return h, err
		}
		left -= len(line)
		if len(trimLine(line)) == 0 {
			break
		}
		if isMore := line[0] == ' ' || line[0] == '\t'; isMore && len(fields) > 0 {
			fields[len(fields)-1] = append(fields[len(fields)-1], line...)
		} else {
			fields = append(fields, line)
		}
	}
	// Header.Add puts a field before the others.
	for _, field := range slices.Backward(fields) {
		if name, value, ok := splitField(field); ok {
			h.Add(name, value)
		}
	}
	return h, nil
}

// readLine returns the next line, with its end, or an empty one at the end of r.
func readLine(r *bufio.Reader, max int) ([]byte, error) {
	var line []byte
	for {
		more, err := r.ReadSlice('\n')
		if line = append(line, more...); len(line) > max {
			return nil, ErrHeader
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil || err == io.EOF:
			return line, nil
		default:
			return nil, err
		}
	}
}

// trimLine returns a line without its end.
func trimLine(line []byte) []byte { return bytes.TrimSuffix(bytes.TrimSuffix(line, lf), cr) }

// The characters that end a line.
var cr, lf = []byte("\r"), []byte("\n")

// splitField returns the name of a field and its value on one line.
func splitField(field []byte) (name, value string, ok bool) {
	before, after, ok := bytes.Cut(field, []byte(":"))
	if name = string(bytes.TrimRight(before, " \t")); !ok || !isFieldName(name) {
		return "", "", false
	}
	value = strings.NewReplacer("\r\n", "", "\n", "", "\r", "").Replace(string(after))
	return textproto.CanonicalMIMEHeaderKey(name), strings.TrimSpace(value), true
}

// isFieldName reports whether a text can be the name of a field (RFC 5322,
// section 2.2).
func isFieldName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' })
}

// beginsWithField reports whether the first line is a field. Some programs send
// only a text.
func beginsWithField(r *bufio.Reader) bool {
	start, _ := r.Peek(maxFieldName + 1)
	name, _, ok := bytes.Cut(start, []byte(":"))
	name = bytes.TrimRight(name, " \t")
	if bytes.HasPrefix(start, []byte("From ")) { // of a mailbox file
		return true
	}
	return ok && isFieldName(string(name)) || bytes.HasPrefix(start, lf) || bytes.HasPrefix(start, []byte("\r\n"))
}

// maxFieldName bounds the name of the first field, in bytes.
const maxFieldName = 128
