package mail

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// FilePart returns a part with a file. open returns its content, and is called
// when the part is written. With an id the file is shown where the HTML text
// refers to it (RFC 2392).
func FilePart(a *notifier.Attachment, id string, open func() io.Reader) Part {
	disposition := "attachment"
	if id != "" {
		disposition = "inline"
	}
	header := "Content-Type: " + mimeType(a.ContentType) + mimeParam("name", a.Name) +
		"\r\nContent-Disposition: " + disposition + mimeParam("filename", a.Name) +
		"\r\nContent-Transfer-Encoding: base64\r\n"
	if id != "" {
		header += "Content-ID: <" + id + ">\r\n"
	}
	return Part{header, func(w io.Writer) error { return writeBase64(w, open()) }}
}

// writeBase64 writes a file as base64 in lines of 76 characters.
func writeBase64(w io.Writer, r io.Reader) error {
	r = bufio.NewReaderSize(r, 32<<10)
	var in [57]byte
	var out [78]byte
	for {
		n, err := io.ReadFull(r, in[:])
		if n > 0 {
			base64.StdEncoding.Encode(out[:], in[:n])
			line := append(out[:base64.StdEncoding.EncodedLen(n)], "\r\n"...)
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return nil
		default:
			return fmt.Errorf("reading a file: %w", errs.WithoutPath(err))
		}
	}
}

var mimeTypePattern = lazyregexp.New(`^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$`)

// mimeType returns the content type of a file, without parameters other than
// charset. A mail becomes application/octet-stream, because a part with type
// message must not be in base64 (RFC 2045, section 6.4).
func mimeType(contentType string) string {
	t, params, err := mime.ParseMediaType(contentType)
	if err != nil || !mimeTypePattern.MatchString(t) || strings.HasPrefix(t, "message/") || strings.HasPrefix(t, "multipart/") {
		return "application/octet-stream"
	}
	if charset := params["charset"]; mimeTypePattern.MatchString("x/" + strings.ToLower(charset)) {
		t += "; charset=" + charset
	}
	return t
}

var mimePlainValue = lazyregexp.New(`^[ !#-\[\]-~]{0,60}$`)

// mimeParam returns a parameter of a header field, on its own line. A long value
// is continued over several parameters (RFC 2231).
func mimeParam(name, value string) string {
	if mimePlainValue.MatchString(value) {
		return ";\r\n " + name + `="` + value + `"`
	}
	var pieces []string
	piece := "utf-8''"
	for _, c := range []byte(value) {
		if len(piece) > 50 {
			pieces, piece = append(pieces, piece), ""
		}
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '.', c == '-', c == '_':
			piece += string(rune(c))
		default:
			piece += fmt.Sprintf("%%%02X", c)
		}
	}
	pieces = append(pieces, piece)
	if len(pieces) == 1 {
		return ";\r\n " + name + "*=" + piece
	}
	var b strings.Builder
	for i, piece := range pieces {
		b.WriteString(";\r\n " + name + "*" + strconv.Itoa(i) + "*=" + piece)
	}
	return b.String()
}
