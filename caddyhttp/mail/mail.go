// Package mail reads mails (RFC 5322, with MIME) as messages: the subject, one
// text, and the attachments.
//
// Programs that alert by mail are old or small, and their mails are often
// malformed. A mistake in a mail is no reason to refuse it: a text whose charset or
// encoding is unknown is kept as it is, and a part that is malformed ends there.
package mail

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"mime"
	"path"
	"strings"

	"github.com/emersion/go-message"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Limits of the structure of a mail.
const (
	maxDepth  = 10        // of parts in parts
	maxParts  = 500       // at all depths together
	maxHeader = 256 << 10 // of a mail and of each part, in bytes
)

// Mail is the content of a mail.
type Mail struct {
	Header  Header
	Subject string // one line; "" if there is none
	Body    string
	Format  markup.Format // of Body

	// LeftOut are the names of attachments that [Store].File has rejected with a
	// [*LeftOutError], and Reason is why the first one was.
	LeftOut []string
	Reason  string
}

// Store keeps the content of a mail.
type Store struct {
	// Text reads a text to its end and returns it. The text may be in any
	// encoding.
	Text func(r io.Reader) (string, error)

	// File reads an attachment to its end and keeps it. The name may be "".
	File func(name, contentType string, r io.Reader) error
}

// LeftOutError is the error of [Store].File for an attachment that the message
// is sent without.
type LeftOutError struct{ Reason string }

// Error implements error.
func (e *LeftOutError) Error() string { return e.Reason }

// Errors of [Read].
var (
	ErrTooDeep      = fmt.Errorf("the mail has parts in parts in more than %d levels", maxDepth)
	ErrTooManyParts = fmt.Errorf("the mail has more than %d parts", maxParts)
	ErrHeader       = fmt.Errorf("the mail, or a part of it, has a header of more than %d KiB", maxHeader>>10)
)

// Read reads a mail to its end. The text is the plain text or, if there is none,
// the HTML; all other parts are attachments. The error is that of r or of s, or
// one of the errors of this package.
func Read(r io.Reader, s Store) (*Mail, error) {
	in := &source{r: r, header: -1}
	mail, err := read(in, s)
	if in.err != nil {
		return nil, in.err
	}
	return mail, err
}

func read(in *source, s Store) (*Mail, error) {
	m := &reader{store: s, in: in}
	b := bufio.NewReader(in)
	h, err := readHeader(b)
	if err != nil {
		return nil, err
	}
	// The error says that the charset or the encoding is unknown. Then the body
	// stays as it was sent.
	part, _ := message.New(h, b)
	body, err := m.readPart(part, 0)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, b); err != nil {
		return nil, err
	}
	mail := &Mail{Header: Header{h}, LeftOut: m.leftOut, Reason: m.reason}
	mail.Subject = mail.Header.text("Subject")
	mail.Body, mail.Format = body.join()
	return mail, nil
}

// reader reads the parts of a mail.
type reader struct {
	store Store
	in    *source
	parts int

	leftOut []string
	reason  string
}

// readPart reads a part to its end and returns its texts.
func (m *reader) readPart(part *message.Entity, depth int) (texts, error) {
	if m.parts++; m.parts > maxParts {
		return nil, ErrTooManyParts
	}
	media, params, err := part.Header.ContentType()
	media = strings.ToLower(media)
	if err != nil || !strings.Contains(media, "/") {
		media = mediaOf(part.Header.Get("Content-Type"))
	}
	if parts := part.MultipartReader(); parts != nil && params["boundary"] != "" {
		if depth == maxDepth {
			return nil, ErrTooDeep
		}
		return m.readParts(parts, strings.TrimPrefix(media, "multipart/"), depth)
	}
	name := fileName(part.Header)
	disposition, _, _ := part.Header.ContentDisposition()
	isFile := name != "" || strings.EqualFold(disposition, "attachment")
	switch {
	case isUnshown(media):
		_, err := io.Copy(io.Discard, m.tolerant(part.Body))
		return nil, err
	case !isFile && (media == "text/plain" || media == "" || strings.HasPrefix(media, "multipart/")):
		return m.readText(part.Body, markup.Text, params)
	case !isFile && media == "text/html":
		return m.readText(part.Body, markup.HTML, params)
	}
	return nil, m.readFile(name, media, part.Body)
}

// mediaOf returns the media type at the beginning of a field that is malformed
// after it, or text/plain if it has none.
func mediaOf(field string) string {
	media, _, _ := strings.Cut(field, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	if kind, sub, ok := strings.Cut(media, "/"); ok && kind != "" && sub != "" && !strings.ContainsAny(media, " \t\"") {
		return media
	}
	return "text/plain"
}

// isUnshown reports whether parts of a type are of use to mail programs only.
func isUnshown(media string) bool {
	switch media {
	case "application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature", "text/x-amp-html", "text/watch-html":
		return true
	}
	return false
}

// readParts reads the parts of a multipart and returns their texts: all of them,
// or one of the alternatives.
func (m *reader) readParts(parts message.MultipartReader, kind string, depth int) (texts, error) {
	var all texts
	for {
		m.in.beginHeader()
		part, err := parts.NextPart()
		m.in.endHeader()
		if err != nil && part == nil {
			// The end, or a part that is malformed so that no other can be found.
			return all, nil
		}
		found, err := m.readPart(part, depth+1)
		if err != nil {
			return nil, err
		}
		// The next header begins after the part.
		if _, err := io.Copy(io.Discard, m.tolerant(part.Body)); err != nil {
			return nil, err
		}
		if kind == "alternative" {
			all = all.better(found)
		} else {
			all = append(all, found...)
		}
	}
}

// tolerant returns r without errors of decoding: where a part is malformed, it
// ends.
func (m *reader) tolerant(r io.Reader) io.Reader { return &tolerantReader{r, m.in} }

type tolerantReader struct {
	r  io.Reader
	in *source
}

func (t *tolerantReader) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if err != nil && err != io.EOF {
		err = io.EOF
		if t.in.err != nil {
			err = t.in.err
		}
	}
	return n, err
}

func (m *reader) readText(r io.Reader, format markup.Format, params map[string]string) (texts, error) {
	s, err := m.store.Text(m.tolerant(r))
	if err != nil {
		return nil, err
	}
	s = strings.ReplaceAll(validText(s), "\r\n", "\n")
	if format == markup.Text && strings.EqualFold(params["format"], "flowed") {
		s = unflow(s, strings.EqualFold(params["delsp"], "yes"))
	}
	if s = strings.TrimSpace(strings.TrimRight(s, "\x00")); s == "" {
		return nil, nil
	}
	return texts{{s, format}}, nil
}

func (m *reader) readFile(name, media string, r io.Reader) error {
	if name == "" && media == "message/rfc822" {
		name = "message.eml"
	}
	err := m.store.File(name, media, m.tolerant(r))
	left, ok := errors.AsType[*LeftOutError](err)
	if !ok {
		return err
	}
	if len(m.leftOut) == 0 {
		m.reason = left.Reason
	}
	m.leftOut = append(m.leftOut, name)
	return nil
}

// fileName returns the name of the file that a part is, or "".
func fileName(h message.Header) string {
	_, params, _ := h.ContentDisposition()
	name := params["filename"]
	if name == "" {
		_, params, _ = h.ContentType()
		name = params["name"]
	}
	// A few programs encode the name as the text of a header (RFC 2047).
	if decoded, err := (&mime.WordDecoder{CharsetReader: message.CharsetReader}).DecodeHeader(name); err == nil {
		name = decoded
	}
	name = strings.TrimSpace(markup.OneLine(validText(name)))
	if name == "" {
		return ""
	}
	return path.Base(strings.ReplaceAll(name, `\`, "/"))
}

// source is the reader that a mail is read from. It bounds what is read for the
// header of a part, and keeps the error that ended the reading.
type source struct {
	r      io.Reader
	header int64 // bytes that may still be read for a header; negative for no limit
	err    error // not io.EOF
}

// beginHeader begins a header, after what readers have buffered.
func (s *source) beginHeader() { s.header = maxHeader }

func (s *source) endHeader() { s.header = -1 }

func (s *source) Read(p []byte) (int, error) {
	switch {
	case s.err != nil:
		return 0, s.err
	case s.header == 0:
		s.err = ErrHeader
		return 0, s.err
	case s.header > 0 && int64(len(p)) > s.header:
		p = p[:s.header]
	}
	n, err := s.r.Read(p)
	if s.header > 0 {
		s.header -= int64(n)
	}
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}
