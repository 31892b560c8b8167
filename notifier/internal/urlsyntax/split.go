package urlsyntax

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// A URL is a notification URL divided into its parts. All but the authority are percent-decoded.
type URL struct {
	Scheme      string
	HasUser     bool
	User        string
	HasPassword bool
	Password    string
	Authority   string // host and port
	Segments    []string
	Slash       bool // the path ends in a slash
	Query       []QueryParam
	Fragment    bool // a fragment was cut off
}

// A QueryParam is a parameter of the query.
type QueryParam struct{ Key, Value string }

// CutScheme cuts off the scheme of a URL and ://. The scheme has the syntax of RFC 3986, section
// 3.1, and at most 32 characters; some services have one that begins with a digit.
func CutScheme(s string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(strings.TrimLeft(s, "\t\n\f\r "), "://")
	if !ok || scheme == "" || len(scheme) > 32 {
		return "", "", false
	}
	digit := '0' <= scheme[0] && scheme[0] <= '9'
	for i := range len(scheme) {
		c := scheme[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i == 0 || digit || strings.IndexByte("+.-", c) < 0:
			return "", "", false
		}
	}
	return strings.ToLower(scheme), rest, len(scheme) > 1 || !digit
}

// Split divides a notification URL into its parts. It returns false if the URL does not
// begin with a scheme. It differs from package net/url in what people write in such URLs:
//
//   - "+" means itself.
//   - "#" means itself, except within a word of the path, where it begins a
//     fragment.
//   - Both "&" and ";" separate parameters of the query.
//   - Empty path segments are left out, and slashes before the host.
//   - Several "@" before the host count as one, and a comma before an "@" makes it
//     the first character of an item in a list of recipients.
//   - A percent sign that begins no escape means itself.
func Split(s string) (u *URL, ok bool) {
	s = strings.ToValidUTF8(s, "\uFFFD")
	scheme, rest, ok := CutScheme(s)
	if !ok {
		return nil, false
	}
	u = &URL{Scheme: scheme}
	rest, query, _ := strings.Cut(strings.TrimSpace(rest), "?")
	rest = strings.TrimLeft(rest, `/\`)
	rest, u.Fragment = cutFragment(rest)
	authority, path, _ := strings.Cut(rest, "/")
	u.Authority = authority
	if i := lastAt(authority); i >= 0 {
		u.HasUser, u.Authority = true, authority[i+1:]
		u.User, u.Password, u.HasPassword = strings.Cut(strings.TrimRight(authority[:i], "@"), ":")
		u.User, u.Password = percent.DecodeText(u.User), percent.DecodeText(u.Password)
	}
	u.Slash = strings.HasSuffix(rest, "/")
	if n := strings.Count(path, "/") + 1; path != "" && n <= 8 {
		u.Segments = make([]string, 0, n)
	}
	for seg := range strings.SplitSeq(path, "/") {
		if seg != "" {
			u.Segments = append(u.Segments, percent.DecodeText(seg))
		}
	}
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		key, value, _ := strings.Cut(part, "=")
		u.Query = append(u.Query, QueryParam{percent.DecodeText(key), strings.TrimSpace(percent.DecodeText(value))})
	}
	return u, true
}

// Bounds are where the parts of a URL begin, as [Split] divides it: the authority, its
// host, the path and the query, which has its question mark.
type Bounds struct{ Authority, Host, Path, Query int }

// BoundsOf returns the bounds of a URL. It returns false if the URL has no scheme, or a
// variable in it.
func BoundsOf(url string) (b Bounds, ok bool) {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok || strings.Contains(scheme, "$") {
		return b, false
	}
	authority, query := len(url)-len(rest), strings.IndexByte(url, '?')
	if query < 0 {
		query = len(url)
	}
	for authority < query && strings.IndexByte(`/\ `, url[authority]) >= 0 {
		authority++
	}
	if authority > query {
		return b, false
	}
	path := strings.IndexByte(url[authority:query], '/') + authority
	if path < authority {
		path = query
	}
	return Bounds{authority, authority + lastAt(url[authority:path]) + 1, path, query}, true
}

// lastAt returns the position of the last @ that does not follow a comma, or of the
// last @ if all do. It returns -1 if there is none.
func lastAt(authority string) int {
	last := strings.LastIndexByte(authority, '@')
	for i := last; i >= 0; i = strings.LastIndexByte(authority[:i], '@') {
		if i == 0 || authority[i-1] != ',' {
			return i
		}
	}
	return last
}

// cutFragment cuts off a fragment: a # within a word and what follows it (RFC
// 3986, section 3.5). At the beginning of a word, a # belongs to the name of a
// room, a channel or a tag, and in a user name or a password it is a character
// like any other.
func cutFragment(s string) (string, bool) {
	authority, _, _ := strings.Cut(s, "/")
	begin := lastAt(authority) + 1
	for i := begin + 1; i < len(s); i++ {
		if s[i] != '#' || strings.IndexByte("/,; #", s[i-1]) >= 0 {
			continue
		}
		if i >= begin+3 && s[i-3] == '%' {
			if c := percent.Decode(s[i-3 : i]); strings.Contains("/,; #", c) {
				continue
			}
		}
		return s[:i], true
	}
	return s, false
}
