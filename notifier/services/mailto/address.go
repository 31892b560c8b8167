package mailto

import (
	"errors"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// addressParts matches an address with the text around it: the text before it,
// its local part, its domain, and the text after it.
var addressParts = lazyregexp.New(`^(.*?)([^\s<>:",;@]+)@([^\s<>:"',;@]+)(\s*>?\s*)$`)

// parseAddress is [mail.ParseAddress] for addresses that may have letters beyond
// ASCII (RFC 6531). It converts the domain to ASCII (RFC 5891), which every
// server accepts, and leaves the local part as it is.
func parseAddress(s string) (mail.Address, bool) {
	if mail.IsPlain(s) {
		return mail.ParseAddress(s)
	}
	g := addressParts.FindStringSubmatch(s)
	if g == nil {
		return mail.ParseAddress(s)
	}
	domain, err := idna.Lookup.ToASCII(g[3])
	if err != nil {
		domain = g[3]
	}
	// mail.ParseAddress accepts ASCII only, so other letters are replaced by x.
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

// checkAddress is [mail.CheckAddress] for addresses that [parseAddress] accepts.
func checkAddress(s string) (string, error) {
	a, ok := parseAddress(s)
	if !ok {
		return "", errors.New("is not an e-mail address")
	}
	return a.String(), nil
}

// parseAddresses reads addresses that [checkAddress] has checked.
func parseAddresses(list []string) []mail.Address {
	out := make([]mail.Address, len(list))
	for i, s := range list {
		out[i], _ = parseAddress(s)
	}
	return out
}
