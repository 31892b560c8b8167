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

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// Header is the header of a mail.
type Header struct{ fields message.Header }

// text returns a field as one line, decoded (RFC 2047).
func (h Header) text(name string) string { return oneLine(h.fields.Get(name)) }

// thread returns the first Message-ID of the thread, which all its mails share.
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

// readHeader reads the header of a mail or of a part. A line that cannot be a field begins the
// body, unless fields for reading the body follow it: then it is stray. If the header has no end,
// unknown fields begin the body, too. start is the part of the body that was read.
func readHeader(r *bufio.Reader) (h message.Header, stray, start []byte, err error) {
	var fields [][]byte
	inStray := false // the last line is in stray, and the next line may continue it
	for left := maxHeader; ; {
		line, err := readLine(r, left)
		if err != nil {
			return h, nil, nil, err
		}
		if left -= len(line); left < 0 {
			if len(fields) == 0 && !isField(line) { // a text without line feeds
				start = line
				break
			}
			return h, nil, nil, ErrHeader
		}
		if len(line) == 0 { // the end of the input, without an empty line
			known := len(fields)
			for known > 0 && !isKnown(fields[known-1]) {
				known--
			}
			start = slices.Concat(fields[known:]...)
			fields = fields[:known]
			break
		}
		if len(trimLine(line)) == 0 {
			break
		}
		isMore := line[0] == ' ' || line[0] == '\t'
		switch {
		case (isMore || isParameter(fields, line)) && !inStray && len(fields) > 0:
			fields[len(fields)-1] = append(fields[len(fields)-1], line...)
			continue
		case !isMore && isField(line):
			fields, inStray = append(fields, line), false
			continue
		case len(fields) == 0 && bytes.HasPrefix(line, []byte("From ")): // the first line in a mailbox file
			continue
		case line[0] == ':': // a field without a name
			continue
		}
		if !saysHow(r) {
			start = line
			break
		}
		stray, inStray = append(stray, line...), true
	}
	// Header.Add puts a field before the others.
	for _, field := range slices.Backward(fields) {
		if name, value, ok := splitField(field); ok {
			h.Add(name, value)
		}
	}
	return h, stray, start, nil
}

// isParameter reports whether an unindented line continues the field before it: it is name=value
// after a semicolon.
func isParameter(fields [][]byte, line []byte) bool {
	return len(fields) > 0 && bytes.HasSuffix(bytes.TrimRight(fields[len(fields)-1], " \t\r\n"), []byte(";")) && parameterLine.Match(line)
}

var parameterLine = lazyregexp.New(`(?i)^(boundary|charset|name|filename|format|type)[*0-9]*[ \t]*=`)

// saysHow reports whether a field for reading the body comes before the next empty line, so that r
// is still within the header.
func saysHow(r *bufio.Reader) bool {
	start, _ := r.Peek(r.Size()) // a later read returns the error
	for len(start) > 0 {
		line, rest, _ := bytes.Cut(start, lf)
		if len(trimLine(line)) == 0 {
			return false
		}
		if howFields.Match(line) {
			return true
		}
		start = rest
	}
	return false
}

// howFields matches the fields of MIME, which say how to read the body.
var howFields = lazyregexp.New(`(?i)^(MIME-Version|Content-[A-Za-z-]+)[ \t]*:`)

// isKnown reports whether a field is a usual field of mails.
func isKnown(field []byte) bool { return knownFields.Match(field) }

// knownFields matches the fields of mails and MIME (RFC 4021) and fields that programs add.
var knownFields = lazyregexp.New(`(?i)^(MIME-Version|Content-[A-Za-z-]+|X-[!-9;` +
	`-~]+|(Resent-)?(Date|From|Sender|Reply-To|To|Cc|Bcc|Message-ID)|` +
	`Subject|Comments|Keywords|References|In-Reply-To|Received|Return-Path|Importance|Priority|Sensitivity|Precedence|Organization|U` +
	`ser-Agent|` +
	`Auto-Submitted|Thread-[A-Za-z]+|List-[A-Za-z-]+|DKIM-Signature|ARC-[A-Za-z-]+|Authentication-Results|Delivered-To|Errors-To|Return-R` +
	`eceipt-To|` +
	`Disposition-Notification-To)[ \t]*:`)

// readLine returns the next line, with its end, or an empty one at the end of r. A line ends
// after max bytes at the latest.
func readLine(r *bufio.Reader, max int) ([]byte, error) {
	var line []byte
	for {
		more, err := r.ReadSlice('\n')
		line = append(line, more...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(line) <= max:
		case err == nil || err == io.EOF || errors.Is(err, bufio.ErrBufferFull):
			return line, nil
		default:
			return nil, err
		}
	}
}

// trimLine returns a line without its end. Some programs of Windows write two carriage returns.
func trimLine(line []byte) []byte { return bytes.TrimRight(bytes.TrimSuffix(line, lf), "\r") }

// The characters that end a line.
var cr, lf = []byte("\r"), []byte("\n")

// isField reports whether a line begins a field.
func isField(line []byte) bool {
	_, _, ok := splitField(line)
	return ok
}

// splitField returns the name of a field and its value on one line.
func splitField(field []byte) (name, value string, ok bool) {
	before, after, ok := bytes.Cut(field, []byte(":"))
	if name = string(bytes.TrimRight(before, " \t")); !ok || len(name) > maxFieldName || !isFieldName(name) {
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

// maxFieldName bounds the name of a field, in bytes.
const maxFieldName = 128
