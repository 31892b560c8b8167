package mail

import (
	"errors"
	"mime"
	"regexp"
	"strings"
	"unicode"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Address is an e-mail address and the name of whose it is (RFC 5322,
// section 3.4).
type Address struct{ Name, Address string }

const (
	localPart = `[a-z0-9_!#$%&'*+/=?{|}~^` + "`" + `-]+(?:\.[a-z0-9_!#$%&'*+/=?{|}~^` + "`" + `-]+)*`
	domain    = `(?:(?:[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?\.)+[a-z0-9][a-z0-9_-]*[a-z0-9]|[a-z0-9][a-z0-9_-]{5,})`
)

// Users write a name as "Jo" <jo@example.com>, and within URLs as
// Jo<jo@example.com> or Jo:jo@example.com. A domain without a dot is taken
// from six characters on, since a shorter one is rather a slip.
var (
	addressPattern = regexp.MustCompile(`(?i)^\s*(?:(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^:<"'@,;]*[^:<"'@,;\s]))?[\s:<]+)?(` + localPart + `@` + domain + `)\s*>?\s*$`)
	specials       = regexp.MustCompile(`[][\\()<>@,:;".]`)
	escape         = regexp.MustCompile(`[\\"]`)
	unescape       = regexp.MustCompile(`\\(.)`)
)

// ParseAddress reads an address with or without a name.
func ParseAddress(s string) (m Address, ok bool) {
	g := addressPattern.FindStringSubmatch(s)
	if g == nil {
		return Address{}, false
	}
	name := unescape.ReplaceAllString(g[1], "$1") + g[2] + g[3]
	return Address{OneLine(name), g[4]}, true
}

// OneLine is a name in one line, as it must be in a header.
func OneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s))
}

// String is the mailbox as people write it.
func (m Address) String() string {
	switch {
	case m.Name == "":
		return m.Address
	case specials.MatchString(m.Name):
		return `"` + escape.ReplaceAllString(m.Name, `\$0`) + `" <` + m.Address + ">"
	}
	return m.Name + " <" + m.Address + ">"
}

// Header is the mailbox as a header field wants it, in ASCII (RFC 2047).
func (m Address) Header() string {
	for _, r := range m.Name {
		if r > unicode.MaxASCII {
			return mime.BEncoding.Encode("utf-8", m.Name) + " <" + m.Address + ">"
		}
	}
	return m.String()
}

// CheckAddress checks an item of a list of mailboxes.
func CheckAddress(s string) (string, error) {
	m, ok := ParseAddress(s)
	if !ok {
		return "", errors.New("is not an e-mail address")
	}
	return m.String(), nil
}

// SplitList finds the items of a list of mailboxes. What separates them
// is a comma or a semicolon, or white space behind an address, but nothing
// within quotes.
func SplitList(s string) (items []string) {
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

// ParseList reads a list whose items are mailboxes.
func ParseList(list []string) []Address {
	out := make([]Address, len(list))
	for i, s := range list {
		out[i], _ = ParseAddress(s)
	}
	return out
}

// List binds a list of mailboxes.
func List(s *notifier.Schema, v *[]string, name, doc string) *notifier.Param {
	return s.List(v, name, doc).Split(SplitList).Normalize(CheckAddress)
}

// Copies binds a list of addresses that a mail can do without, such as those
// that get a copy. It may have nothing but invalid addresses.
func Copies(s *notifier.Schema, v *[]string, name, doc string) *notifier.Param {
	return List(s, v, name, doc).DropInvalid()
}
