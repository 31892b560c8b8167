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
)

// octets is the type of files of an unknown type.
const octets = "application/octet-stream"

const (
	sniffLength = 512      // bytes from which the type of a file is found
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

// isCopy reports whether the mail already has a calendar with the events of this
// one. Programs send an invitation as an alternative of the text and once more as a
// file.
func (m *reader) isCopy(b *bufio.Reader) bool {
	start, err := b.Peek(maxInvite)
	if err == nil { // there is more
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

// nameFor returns a name for a file of a type that has none.
func (m *reader) nameFor(media string, b *bufio.Reader) string {
	base := "attachment"
	switch media {
	case "text/calendar", "application/ics":
		base = "invite"
	case "message/rfc822":
		base = "message"
	case octets:
		start, _ := b.Peek(sniffLength) // a later read has the error
		media, _, _ = strings.Cut(http.DetectContentType(start), ";")
	}
	if m.unnamed++; m.unnamed > 1 {
		base += fmt.Sprintf("-%d", m.unnamed)
	}
	return base + extension(media)
}

// extension returns the usual extension of files of a type.
func extension(media string) string {
	kind, sub, _ := strings.Cut(media, "/")
	switch {
	case extensions[media] != "":
		return "." + extensions[media]
	case strings.HasSuffix(sub, "+xml"):
		return ".xml"
	case strings.HasSuffix(sub, "+json"):
		return ".json"
	case kind == "image" || kind == "audio" || kind == "video":
		if sub = strings.TrimPrefix(sub, "x-"); shortWord.MatchString(sub) {
			return "." + sub
		}
	case kind == "text" || kind == "message":
		return ".txt"
	}
	return ".bin"
}

// shortWord matches types of media that are their own extension.
var shortWord = lazyregexp.New(`^[a-z0-9]{2,5}$`)

// extensions has the extensions of common types. Those of package mime depend on
// the machine.
var extensions = map[string]string{
	"application/gzip": "gz", "application/ics": "ics", "application/json": "json", "application/msword": "doc", "application/pdf": "pdf",
	"application/pgp-encrypted": "asc", "application/pgp-keys": "asc", "application/rtf": "rtf", "application/vnd.ms-excel": "xls",
	"application/vnd.ms-powerpoint": "ppt", "application/vnd.oasis.opendocument.spreadsheet": "ods", "application/vnd.oasis.opendocument.text": "odt",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         "xlsx",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   "docx",
	"application/x-gzip": "gz", "application/xml": "xml", "application/zip": "zip", "application/x-zip-compressed": "zip",
	"audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/wave": "wav", "audio/x-wav": "wav",
	"image/jpeg": "jpg", "image/pjpeg": "jpg", "image/svg+xml": "svg", "image/tiff": "tiff", "image/vnd.microsoft.icon": "ico",
	"message/rfc822": "eml", "text/calendar": "ics", "text/csv": "csv", "text/html": "html", "text/markdown": "md", "text/rtf": "rtf",
	"text/vcard": "vcf", "text/x-vcard": "vcf", "text/xml": "xml", "video/3gpp": "3gp", "video/mpeg": "mpg", "video/quicktime": "mov", "video/x-msvideo": "avi",
	"video/x-matroska": "mkv",
}
