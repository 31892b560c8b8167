package services

import (
	"errors"
	"mime"
	"regexp"
	"strings"
	"unicode"
)

// emailAddress is an e-mail address and the name of whose it is (RFC 5322,
// section 3.4).
type emailAddress struct{ name, address string }

const (
	mailLocal  = `[a-z0-9_!#$%&'*+/=?{|}~^` + "`" + `-]+(?:\.[a-z0-9_!#$%&'*+/=?{|}~^` + "`" + `-]+)*`
	mailDomain = `(?:(?:[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?\.)+[a-z0-9][a-z0-9_-]*[a-z0-9]|[a-z0-9][a-z0-9_-]{5,})`
)

// Users write a name as "Jo" <jo@example.com>, and within URLs as
// Jo<jo@example.com> or Jo:jo@example.com. A domain without a dot is taken
// from six characters on, since a shorter one is rather a slip.
var (
	mailboxPattern = regexp.MustCompile(`(?i)^\s*(?:(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^:<"'@,;]*[^:<"'@,;\s]))?[\s:<]+)?(` + mailLocal + `@` + mailDomain + `)\s*>?\s*$`)
	mailSpecials   = regexp.MustCompile(`[][\\()<>@,:;".]`)
	mailEscape     = regexp.MustCompile(`[\\"]`)
	mailUnescape   = regexp.MustCompile(`\\(.)`)
)

// parseMailbox reads an address with or without a name.
func parseMailbox(s string) (m emailAddress, ok bool) {
	g := mailboxPattern.FindStringSubmatch(s)
	if g == nil {
		return emailAddress{}, false
	}
	name := mailUnescape.ReplaceAllString(g[1], "$1") + g[2] + g[3]
	return emailAddress{mailName(name), g[4]}, true
}

// mailName is a name in one line, as it must be in a header.
func mailName(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s))
}

// String is the mailbox as people write it.
func (m emailAddress) String() string {
	switch {
	case m.name == "":
		return m.address
	case mailSpecials.MatchString(m.name):
		return `"` + mailEscape.ReplaceAllString(m.name, `\$0`) + `" <` + m.address + ">"
	}
	return m.name + " <" + m.address + ">"
}

// header is the mailbox as a header field wants it, in ASCII (RFC 2047).
func (m emailAddress) header() string {
	for _, r := range m.name {
		if r > unicode.MaxASCII {
			return mime.BEncoding.Encode("utf-8", m.name) + " <" + m.address + ">"
		}
	}
	return m.String()
}

// named is a mailbox in JSON, with its name if it has one.
func (m emailAddress) named() map[string]string {
	if m.name == "" {
		return map[string]string{"email": m.address}
	}
	return map[string]string{"email": m.address, "name": m.name}
}

// mailboxItem checks an item of a list of mailboxes.
func mailboxItem(s string) (string, error) {
	m, ok := parseMailbox(s)
	if !ok {
		return "", errors.New("is no e-mail address")
	}
	return m.String(), nil
}

// splitMailboxes finds the items of a list of mailboxes. What separates them
// is a comma or a semicolon, or white space behind an address, but nothing
// within quotes.
func splitMailboxes(s string) (items []string) {
	start, quoted := 0, false
	for i, r := range s {
		switch {
		case r == '"' && (i == 0 || s[i-1] != '\\'):
			quoted = !quoted
		case quoted:
		case r == ',' || r == ';', unicode.IsSpace(r) && strings.Contains(s[start:i], "@"):
			items = append(items, s[start:i])
			start = i + 1
		}
	}
	return append(items, s[start:])
}

// mailboxes reads a list whose items are mailboxes.
func mailboxes(list []string) []emailAddress {
	out := make([]emailAddress, len(list))
	for i, s := range list {
		out[i], _ = parseMailbox(s)
	}
	return out
}
