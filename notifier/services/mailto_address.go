package services

import (
	"errors"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// mailtoParts takes an address apart: what is before it, the part before the
// @, the domain, and what is behind it.
var mailtoParts = regexp.MustCompile(`^(.*?)([^\s<>:",;@]+)@([^\s<>:"',;@]+)(\s*>?\s*)$`)

// parseMailto reads an address as parseMailbox does, and also one with
// letters beyond ASCII (RFC 6531). Its domain becomes ASCII (RFC 5891), which
// every server on the mail's way takes; before the @ letters stay.
func parseMailto(s string) (emailAddress, bool) {
	g := mailtoParts.FindStringSubmatch(s)
	if g == nil {
		return parseMailbox(s)
	}
	domain, err := idna.Lookup.ToASCII(g[3])
	if err != nil {
		domain = g[3]
	}
	// For the grammar one letter is as good as another.
	stand := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r)) {
			return 'x'
		}
		return r
	}, g[2])
	a, ok := parseMailbox(g[1] + stand + "@" + domain + g[4])
	if !ok || a.address != stand+"@"+domain {
		return emailAddress{}, false
	}
	a.address = g[2] + "@" + domain
	return a, true
}

// mailtoItem checks an item of a list of addresses.
func mailtoItem(s string) (string, error) {
	a, ok := parseMailto(s)
	if !ok {
		return "", errors.New("is no e-mail address")
	}
	return a.String(), nil
}

// mailtoAddresses reads a list whose items are addresses.
func mailtoAddresses(list []string) []emailAddress {
	out := make([]emailAddress, len(list))
	for i, s := range list {
		out[i], _ = parseMailto(s)
	}
	return out
}

// isASCII says whether a text has no letters beyond ASCII.
func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}
