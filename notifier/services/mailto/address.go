package mailto

import (
	"errors"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// addressParts takes an address apart: what is before it, the part before the
// @, the domain, and what is behind it.
var addressParts = regexp.MustCompile(`^(.*?)([^\s<>:",;@]+)@([^\s<>:"',;@]+)(\s*>?\s*)$`)

// parseAddress reads an address as mail.ParseAddress does, and also one with
// letters beyond ASCII (RFC 6531). Its domain becomes ASCII (RFC 5891), which
// every server on the mail's way takes; before the @ letters stay.
func parseAddress(s string) (mail.Address, bool) {
	g := addressParts.FindStringSubmatch(s)
	if g == nil {
		return mail.ParseAddress(s)
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
	a, ok := mail.ParseAddress(g[1] + stand + "@" + domain + g[4])
	if !ok || a.Address != stand+"@"+domain {
		return mail.Address{}, false
	}
	a.Address = g[2] + "@" + domain
	return a, true
}

// checkAddress checks an item of a list of addresses.
func checkAddress(s string) (string, error) {
	a, ok := parseAddress(s)
	if !ok {
		return "", errors.New("is not an e-mail address")
	}
	return a.String(), nil
}

// parseAddresses reads a list whose items are addresses.
func parseAddresses(list []string) []mail.Address {
	out := make([]mail.Address, len(list))
	for i, s := range list {
		out[i], _ = parseAddress(s)
	}
	return out
}

// isASCII says whether a text has no letters beyond ASCII.
func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}
