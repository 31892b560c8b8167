// Package loginurl encodes the user and the password of a URL that somebody has written with
// characters that have a meaning there.
package loginurl

import (
	"net/netip"
	"strings"
)

// encode encodes the characters that divide a URL.
var encode = strings.NewReplacer("/", "%2F", "?", "%3F", "#", "%23", "@", "%40", ":", "%3A", " ", "%20").Replace

// Encode encodes the characters of the user and the password that divide a URL, as in
// mailtos://me:pa/ss@example.com. It returns false for other URLs.
func Encode(text string) (string, bool) {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(text), "://")
	if !ok || strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https") {
		return "", false
	}
	first := strings.IndexAny(rest, "/?")
	if first < 0 || !strings.Contains(rest[:first], ":") || strings.HasPrefix(rest, ":") {
		return "", false
	}
	// An @ before that, with a host and perhaps a port behind it, ends a login that is complete.
	if at := strings.LastIndexByte(rest[:first], '@'); at >= 0 && beginsWithHost(rest[at+1:]) {
		if _, port, ok := strings.Cut(rest[at+1:first], ":"); !ok || strings.Trim(port, "0123456789") == "" {
			return "", false
		}
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
	return host == "localhost" ||
		strings.Contains(host, ".") && !strings.HasPrefix(host, ".") && !strings.ContainsAny(host, " %&=+,;") ||
		strings.HasPrefix(text, "[")
}
