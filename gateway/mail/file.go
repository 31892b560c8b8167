package mail

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// octets is the type of files of an unknown type.
const octets = "application/octet-stream"

const (
	sniffLength = 512      // bytes for detecting the type of a file
	maxInvite   = 64 << 10 // bytes of a calendar that is compared with the others
)

// readFile reads a file to its end and keeps it, unless it is another copy of an
// invitation.
func (m *reader) readFile(p *part) error {
	size := sniffLength
	if p.isCalendar() {
		size = maxInvite
	}
	b := bufio.NewReaderSize(m.tolerant(p.body), size)
	if p.isCalendar() && m.isCopy(b) {
		_, err := io.Copy(io.Discard, b)
		return err
	}
	name := p.name
	if name == "" {
		name = m.nameFor(p.media, b)
	}
	err := m.store.File(name, p.contentType(), b)
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

// isCalendar reports whether a part is an invitation or another calendar.
func (p *part) isCalendar() bool {
	return p.media == "text/calendar" || p.media == "application/ics" || strings.HasSuffix(strings.ToLower(p.name), ".ics")
}

// isCopy reports whether the mail already has a calendar with the events of this one. Programs send
// an invitation both as an alternative of the text and as a file.
func (m *reader) isCopy(b *bufio.Reader) bool {
	start, err := b.Peek(maxInvite)
	if err == nil { // the calendar is longer
		return false
	}
	ids := eventIDs.FindAllString(strings.ReplaceAll(strings.ReplaceAll(string(start), "\r\n", "\n"), "\n ", ""), -1)
	slices.Sort(ids)
	key := strings.Join(ids, "\n")
	if key == "" {
		return false
	}
	if slices.Contains(m.invites, key) {
		return true
	}
	m.invites = append(m.invites, key)
	return false
}

// eventIDs matches the lines with the IDs of events (RFC 5545, section 3.8.4.7).
var eventIDs = lazyregexp.New(`(?m)^UID[;:].*$`)

// nameFor returns a name for a nameless file of a type.
func (m *reader) nameFor(media string, b *bufio.Reader) string {
	base := "attachment"
	switch media {
	case "text/calendar", "application/ics":
		base = "invite"
	case "message/rfc822":
		base = "message"
	case octets:
		start, _ := b.Peek(sniffLength) // a later read returns the error
		media, _, _ = strings.Cut(http.DetectContentType(start), ";")
	}
	if m.unnamed++; m.unnamed > 1 {
		base += fmt.Sprintf("-%d", m.unnamed)
	}
	return base + notifier.Extension(media)
}
