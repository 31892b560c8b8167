package notifier

import (
	"errors"
	"net/netip"
	"strings"
)

// loginRemedy is what to do about a password that [encodeLogin] can encode.
const loginRemedy = "write %2F for a / in the password, and %3F for ?, %23 for #, %40 for @"

// withLoginRemedy returns err, the error of [Parse] for a URL. If the cause is that the
// password has a character at which a URL is divided, it returns an error that says so.
func withLoginRemedy(text string, err error) error {
	e, ok := errors.AsType[*URLError](err)
	if !ok || e.Retired {
		return err
	}
	encoded, ok := encodeLogin(text)
	if !ok {
		return err
	}
	if _, again := parse(encoded); again != nil {
		return err
	}
	return &URLError{Service: e.Service, Param: "password", Problem: "the password before the @ has a / or a ?, at which the rest of a URL begins", Fix: loginRemedy}
}

// encodeLogin returns a URL with those characters of the user and the password encoded at
// which a URL is divided, as in mailtos://me:pa/ss@example.com. It returns false for a URL
// that has no such password.
func encodeLogin(text string) (string, bool) {
	scheme, rest, ok := cutScheme(text)
	if !ok || scheme == "http" || scheme == "https" {
		return "", false
	}
	first := strings.IndexAny(rest, "/?")
	if first < 0 || !strings.Contains(rest[:first], ":") || strings.HasPrefix(rest, ":") {
		return "", false
	}
	for at := first; ; at++ {
		next := strings.IndexByte(rest[at:], '@')
		if next < 0 {
			return "", false
		}
		at += next
		if !beginsWithHost(rest[at+1:]) {
			continue // this @ belongs to the password, too
		}
		user, password, _ := strings.Cut(rest[:at], ":")
		encode := strings.NewReplacer("/", "%2F", "?", "%3F", "#", "%23", "@", "%40", ":", "%3A", " ", "%20").Replace
		return scheme + "://" + encode(user) + ":" + encode(password) + rest[at:], true
	}
}

// beginsWithHost reports whether a text begins with the name of a server, which has a dot, or
// its address.
func beginsWithHost(text string) bool {
	if i := strings.IndexAny(text, "/?#"); i >= 0 {
		text = text[:i]
	}
	if strings.Contains(text, "@") {
		return false
	}
	host, _, _ := strings.Cut(text, ":")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.Contains(host, ".") && hostPattern.MatchString(host) || strings.HasPrefix(text, "[")
}
