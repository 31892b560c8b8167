package mail

import (
	"errors"
	"mime"
	"strings"
	"unicode"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// Address is an e-mail address with the name of its owner, a mailbox in RFC
// 5322, section 3.4. The name may be empty.
type Address struct{ Name, Address string }

const (
	localPart = `[a-z0-9_!#$%&'*+/=?{|}~^` + "`" + `-]+(?:\.[a-z0-9_!#$%&'*+/=?{|}~^` + "`" + `-]+)*`
	domain    = `(?:(?:[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?\.)+[a-z0-9][a-z0-9_-]*[a-z0-9]|[a-z0-9][a-z0-9_-]{5,})`
)

// A name is written as in "Jo" <jo@example.com>, and within URLs also as in
// Jo<jo@example.com> or Jo:jo@example.com. A domain without a dot needs six
// characters, because a shorter one is more likely a mistake.
var (
	addressPattern = lazyregexp.New(`(?i)^\s*(?:(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|` +
		`([^:<"'@,;]*[^:<"'@,;\s]))?[\s:<]+)?(` + localPart + `@` + domain + `)\s*>?\s*$`)
	specials = lazyregexp.New(`[][\\()<>@,:;".]`)
	escape   = lazyregexp.New(`[\\"]`)
	unescape = lazyregexp.New(`\\(.)`)
)

// ParseAddress reads an address with or without a name, and reports whether s is one. Any text
// before an address in angle brackets at the end is the name.
func ParseAddress(s string) (a Address, ok bool) {
	if IsPlain(s) {
		return Address{Address: s}, true
	}
	if g := addressPattern.FindStringSubmatch(s); g != nil {
		name := unescape.ReplaceAllString(g[1], "$1") + g[2] + g[3]
		return Address{OneLine(name), g[4]}, true
	}
	name, bracketed, ok := cutLast(strings.TrimSpace(s), "<")
	g := addressPattern.FindStringSubmatch(bracketed)
	if !ok || !strings.HasSuffix(bracketed, ">") || g == nil || g[1]+g[2]+g[3] != "" {
		return Address{}, false
	}
	name = OneLine(name)
	if n := len(name); n > 1 && name[0] == '"' && name[n-1] == '"' {
		name = unescape.ReplaceAllString(name[1:n-1], "$1")
	}
	return Address{OneLine(name), g[4]}, true
}

// cutLast cuts s around the last separator.
func cutLast(s, separator string) (before, after string, ok bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+len(separator):], true
}

// ParseSender reads the value of a parameter for the sender: an address, a name or both. parse
// reads an address, as [ParseAddress] does. The address is empty if s is a name alone. The error
// is returned for a text that has the marks of an address but none that can be read.
func ParseSender(param, s string, parse func(string) (Address, bool)) (Address, error) {
	if a, ok := parse(s); ok {
		return a, nil
	}
	if strings.ContainsAny(s, "@<>") {
		return Address{}, errors.New(param + " has no e-mail address that can be read; " +
			"write it as Name <me@example.com>, or as a name without @, < and >")
	}
	return Address{Name: OneLine(s)}, nil
}

// IsPlain reports whether s is an address of the most common form: without a name, of ASCII
// letters, digits and the characters . _ + and -, with a domain in lower case that has a dot. It is
// much faster than the pattern of all addresses.
func IsPlain(s string) bool {
	local, domain, ok := strings.Cut(s, "@")
	if !ok || strings.Contains(domain, "--") { // letters beyond ASCII, RFC 3492
		return false
	}
	for part := range strings.SplitSeq(local, ".") {
		if part == "" || strings.ContainsFunc(part, func(r rune) bool {
			return !isLowerOrDigit(r) && (r < 'A' || r > 'Z') && r != '_' && r != '+' && r != '-'
		}) {
			return false
		}
	}
	last, labels := "", 0
	for last = range strings.SplitSeq(domain, ".") {
		if last == "" || last[0] == '-' || last[len(last)-1] == '-' ||
			strings.ContainsFunc(last, func(r rune) bool { return !isLowerOrDigit(r) && r != '-' }) {
			return false
		}
		labels++
	}
	return labels > 1 && len(last) > 1
}

func isLowerOrDigit(r rune) bool { return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' }

// OneLine replaces control characters by spaces, so that the text can stand in
// a header field, and trims it.
func OneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s))
}

// String returns the address as people write it, as in Jo <jo@example.com>.
func (a Address) String() string {
	switch {
	case a.Name == "":
		return a.Address
	case specials.MatchString(a.Name):
		return `"` + escape.ReplaceAllString(a.Name, `\$0`) + `" <` + a.Address + ">"
	}
	return a.Name + " <" + a.Address + ">"
}

// Header returns the address for a header field. A name with characters beyond
// ASCII is an encoded word (RFC 2047).
func (a Address) Header() string {
	for _, r := range a.Name {
		if r > unicode.MaxASCII {
			return mime.BEncoding.Encode("utf-8", a.Name) + " <" + a.Address + ">"
		}
	}
	return a.String()
}

// CheckAddress returns the address in s in its canonical form. It is for
// [notifier.Param.Normalize].
func CheckAddress(s string) (string, error) {
	a, ok := ParseAddress(s)
	if !ok {
		return "", errors.New("is not an e-mail address")
	}
	return a.String(), nil
}
