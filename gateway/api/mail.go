package api

import (
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/mail"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/internal/charset"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Limits of mails.
const (
	maxMailTitle = 1000 // of the title, in bytes
	maxReceived  = 100  // mail servers that a mail has passed through (RFC 5321, section 6.3)
	maxLeftOut   = 10   // names of attachments that are left out
)

// ReadMail reads a mail to its end as a request for a message, and returns how many gateways the
// message has passed through. Attachments beyond the limits are left out with a note in the text,
// because the sender of a mail can seldom send it differently. The type is the one that the subject
// states, or [notifier.Info]. The error is from r, or an [*Error].
func ReadMail(r io.Reader, l message.Limits) (*Request, int, error) {
	q := newRequest(l)
	hops, err := readMail(q, r)
	if err != nil {
		q.Close()
		return nil, 0, err
	}
	return q, hops, nil
}

// readMail reads a mail into q.
func readMail(q *Request, r io.Reader) (hops int, err error) {
	remaining := q.limits.MaxBody
	m, err := mail.Read(r, mail.Store{
		Text: func(r io.Reader) (string, error) {
			b, err := q.texts.readBuffer(io.LimitReader(r, remaining+1), remaining+1)
			if err != nil {
				return "", err
			}
			defer putBuffer(b)
			if remaining -= int64(b.Len()); remaining < 0 {
				return "", Errorf(http.StatusRequestEntityTooLarge, "the text of the mail is larger than %s (max_body)", formatSize(q.limits.MaxBody))
			}
			return b.String(), nil
		},
		File: q.files.readMail,
	})
	switch {
	case errors.Is(err, mail.ErrTooDeep), errors.Is(err, mail.ErrTooManyParts), errors.Is(err, mail.ErrHeader):
		return 0, badRequest("%w", err)
	case err != nil:
		return 0, err
	}
	if hops = m.Header.Max(notifier.HopsHeader); hops > maxHops || m.Header.Count("Received") > maxReceived {
		return 0, errLoop
	}
	c := Content{
		Title: markup.TruncateBytes(m.Subject, maxMailTitle), Body: m.Body, Format: string(m.Format), Type: string(m.Type), Incident: m.Thread,
		Foreign: true,
	}
	if c.Body == "" && len(q.files.attached) == 0 {
		c.Title, c.Body = "", m.Subject
	}
	if m.UnknownCharset != "" {
		c.Body = appendNote(c.Body, m.Format, charset.Doubt{Unknown: m.UnknownCharset}.String())
	}
	if len(m.LeftOut) > 0 {
		c.Body = appendNote(c.Body, m.Format, leftOut(m))
	}
	if c.Body == "" && len(q.files.attached) == 0 {
		return 0, badRequest("the mail is empty; write a subject, a text or both")
	}
	return hops, q.SetContent(c)
}

// readMail keeps an attachment of a mail.
func (s *files) readMail(name, contentType string, r io.Reader) error {
	a, err := s.read(printable(name), name, contentType, r)
	if err == nil {
		s.attached = append(s.attached, a)
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Status/100 == 4 {
		return &mail.LeftOutError{Reason: e.Error()}
	}
	return err
}

// leftOut returns a note that names the attachments left out of m.
func leftOut(m *mail.Mail) string {
	names := slices.Clone(m.LeftOut[:min(len(m.LeftOut), maxLeftOut)])
	for i, name := range names {
		names[i] = printable(name)
	}
	text := "Left out: " + strings.Join(names, ", ")
	if more := len(m.LeftOut) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + " (" + m.Reason + ")"
}

// appendNote returns a body with a note at its end.
func appendNote(body string, format markup.Format, note string) string {
	switch {
	case body == "" && format != markup.HTML:
		return note
	case format == markup.HTML:
		return body + "<p>" + html.EscapeString(note) + "</p>"
	}
	return body + "\n\n" + note
}
