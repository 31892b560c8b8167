// Package mail reads mails (RFC 5322, with MIME) as messages: the subject, one text, and the
// attachments.
//
// Programs that alert by mail are often old or small, and their mails malformed. No mail is
// refused, and no text lost, because of a mistake: a line that cannot be a field begins the body, a
// text in an unknown encoding is kept as it is, and an unknown charset is ignored.
package mail

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/emersion/go-message/textproto"

	"github.com/caddy-notify/caddy-notify/internal/charset"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Limits of the structure of a mail.
const (
	maxDepth  = 10        // nested parts
	maxParts  = 500       // parts at all depths
	maxHeader = 256 << 10 // header of a mail or a part, in bytes
)

// Mail is the content of a mail.
type Mail struct {
	Header  Header
	Subject string // one line; "" if there is none
	Body    string
	Format  markup.Format // format of Body

	// Type is the type that a monitoring program's subject states: success for "[RESOLVED] Disk
	// full". It is "" if the subject states none.
	Type notifier.Type

	// Thread is an ID that the mails of a thread share: the first Message-ID in the field
	// References or else In-Reply-To, or the mail's own, without angle brackets.
	Thread string

	// UnknownCharset is an unknown charset that the subject or a part of the text declares, and
	// that was ignored. It is "" if there is none.
	UnknownCharset string

	// LeftOut are the names of attachments that [Store].File has rejected with a [*LeftOutError],
	// and Reason is the reason for the first one.
	LeftOut []string
	Reason  string
}

// Store keeps the content of a mail.
type Store struct {
	// Text reads a text to its end and returns it. The text may be in any encoding.
	Text func(r io.Reader) (string, error)

	// File reads an attachment to its end and keeps it. The name is never "". The
	// content type may have a charset.
	File func(name, contentType string, r io.Reader) error
}

// LeftOutError is returned by [Store].File for an attachment that is left out of the message.
type LeftOutError struct{ Reason string }

// Error implements error.
func (e *LeftOutError) Error() string { return e.Reason }

// Errors of [Read].
var (
	ErrTooDeep      = fmt.Errorf("the mail has parts in parts in more than %d levels", maxDepth)
	ErrTooManyParts = fmt.Errorf("the mail has more than %d parts", maxParts)
	ErrHeader       = fmt.Errorf("the mail, or a part of it, has a header of more than %d KiB", maxHeader>>10)
)

// Read reads a mail to its end. The text is the plain text or, if there is none, the HTML; all
// other parts are attachments. The error is from r or from s, or one of the errors of this package.
func Read(r io.Reader, s Store) (*Mail, error) {
	in := &source{r: r}
	mail, err := read(in, s)
	if in.err != nil {
		return nil, in.err
	}
	return mail, err
}

func read(in *source, s Store) (*Mail, error) {
	m := &reader{store: s, in: in}
	b := newBuffer(in)
	if start, _ := b.Peek(len(byteOrderMark)); string(start) == byteOrderMark { // a later read returns the error
		_, _ = b.Discard(len(byteOrderMark))
	}
	if start, _ := b.Peek(bufferSize); bytes.Contains(start, cr) && !bytes.Contains(bytes.TrimRight(start, "\r\n"), lf) {
		b = newBuffer(carriageReturns{b})
	}
	h, body, err := m.readEntity(b, 0)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, b); err != nil {
		return nil, err
	}
	mail := &Mail{Header: Header{h}, LeftOut: m.leftOut, Reason: m.reason}
	mail.Subject = mail.Header.text("Subject")
	mail.Type = notifier.TypeOfTitle(mail.Subject)
	mail.Thread = mail.Header.thread()
	mail.Body, mail.Format = body.join()
	_, doubt := charset.DecodeHeader(h.Get("Subject"))
	mail.UnknownCharset = cmp.Or(body.unknownCharset(), doubt.Unknown)
	return mail, nil
}

// carriageReturns reads lines that end with a carriage return alone.
type carriageReturns struct{ r io.Reader }

func (c carriageReturns) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	for i := range p[:n] {
		if p[i] == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// byteOrderMark begins files in UTF-8 that some scripts send as mails.
const byteOrderMark = "\uFEFF"

// bufferSize is the size of the buffers of a mail and its parts, in bytes. It bounds how far
// readHeader looks ahead for the end of a header.
const bufferSize = 16 << 10

func newBuffer(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, bufferSize) }

// withStart returns a reader of start and then of r.
func withStart(start []byte, r *bufio.Reader) *bufio.Reader {
	if len(start) == 0 {
		return r
	}
	return newBuffer(io.MultiReader(bytes.NewReader(start), r))
}

// reader reads the parts of a mail.
type reader struct {
	store Store
	in    *source
	parts int

	unnamed int      // files without a name
	invites []string // IDs of the events of each calendar

	leftOut []string
	reason  string
}

// readEntity reads a mail or a part to its end, and returns its header and its texts.
func (m *reader) readEntity(b *bufio.Reader, depth int) (h textproto.Header, found texts, err error) {
	h, stray, start, err := readHeader(b)
	if err != nil {
		return h, nil, err
	}
	found, err = m.readPart(newPart(h, withStart(start, b)), depth)
	text, _ := charset.DecodeString(string(stray), "")
	if text = clean(text); text != "" {
		found = append(texts{{text: text, format: markup.Text}}, found...)
	}
	return h, found, err
}

// readPart reads a part to its end and returns its texts.
func (m *reader) readPart(p *part, depth int) (texts, error) {
	if m.parts++; m.parts > maxParts {
		return nil, ErrTooManyParts
	}
	switch {
	case p.multipart():
		if depth == maxDepth {
			return nil, ErrTooDeep
		}
		return m.readParts(p, depth)
	case isUnshown(p.media):
		_, err := io.Copy(io.Discard, m.tolerant(p.body))
		return nil, err
	case !p.isFile() && p.media == "text/plain":
		return m.readText(p, markup.Text)
	case !p.isFile() && p.media == "text/html":
		return m.readText(p, markup.HTML)
	case !p.isFile() && depth == 0 && strings.HasPrefix(p.media, "text/") && !p.isCalendar(): // the text of the mail
		return m.readText(p, markup.Text)
	}
	return nil, m.readFile(p)
}

// isUnshown reports whether parts of a media type are for mail programs only.
func isUnshown(media string) bool {
	switch media {
	case "application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature", "text/x-amp-html", "text/watch-html":
		return true
	}
	return false
}

// readParts reads the parts of a multipart and returns all their texts, or one of the alternatives.
// Without any, it returns the text outside of the parts, which is everything if the boundary does
// not occur.
func (m *reader) readParts(multipart *part, depth int) (texts, error) {
	s := newSplitter(multipart.body, multipart.params["boundary"])
	before, err := m.readOutside(s)
	if err != nil {
		return nil, err
	}
	var all texts
	for s.next() {
		_, found, err := m.readEntity(newBuffer(s), depth+1)
		if err != nil {
			return nil, err
		}
		// The next header begins after the part.
		if _, err := io.Copy(io.Discard, s); err != nil {
			return nil, err
		}
		if multipart.media == "multipart/alternative" {
			all = all.better(found)
		} else {
			all = append(all, found...)
		}
	}
	after, err := m.readOutside(s)
	if err != nil || len(all) > 0 {
		return all, err
	}
	return append(before, after...), nil
}

// maxOutside bounds a text outside of the parts, in bytes.
const maxOutside = 64 << 10

// readOutside reads the text before the first boundary or after the last one. It ignores a text
// that only says that the mail is in MIME, which mail programs write there.
func (m *reader) readOutside(s *splitter) (texts, error) {
	start, err := io.ReadAll(io.LimitReader(s, maxOutside))
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, s); err != nil {
		return nil, err
	}
	text, _ := charset.DecodeString(string(start), "")
	if text = clean(text); text == "" || aboutMIME.MatchString(text) {
		return nil, nil
	}
	return texts{{text: text, format: markup.Text}}, nil
}

// aboutMIME matches a text of a few lines about the format of the mail.
var aboutMIME = lazyregexp.New(`(?is)^.{0,300}(\bMIME\b|multi-?part).{0,300}$`)

// tolerant returns r without decoding errors: a part ends where it is malformed.
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

// readText reads a text. A part that is declared as a text but is not one, such as a picture whose
// header is damaged, becomes a file.
func (m *reader) readText(p *part, format markup.Format) (texts, error) {
	b := newBuffer(m.tolerant(p.body))
	declared := p.params["charset"]
	if start, _ := b.Peek(sniffLength); charset.IsText(start, declared) { // a later read returns the error
		p.body = b
		return m.readShown(p, format)
	}
	p.media, p.body = octets, b
	return nil, m.readFile(p)
}

// readShown reads a text.
func (m *reader) readShown(p *part, format markup.Format) (texts, error) {
	s, err := m.store.Text(p.body)
	if err != nil {
		return nil, err
	}
	declared := p.params["charset"]
	if declared == "" && format == markup.HTML {
		declared = charset.OfHTML(s)
	}
	s, doubt := charset.DecodeString(s, declared)
	s = lineBreaks.ReplaceAllString(s, "\n")
	if format == markup.Text && strings.EqualFold(p.params["format"], "flowed") {
		s = unflow(s, strings.EqualFold(p.params["delsp"], "yes"))
	}
	if s = clean(s); s == "" {
		return nil, nil
	}
	return texts{{s, format, doubt.Unknown}}, nil
}

// clean returns a text with bare line feeds, without NUL and without space at its ends.
func clean(s string) string {
	return strings.TrimSpace(lineBreaks.ReplaceAllString(strings.ReplaceAll(s, "\x00", ""), "\n"))
}

var lineBreaks = lazyregexp.New(`\r+\n`)

// source is the reader that a mail is read from. It keeps the error that ended the reading.
type source struct {
	r   io.Reader
	err error // other than io.EOF
}

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}
