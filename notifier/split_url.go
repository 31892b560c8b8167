package notifier

import (
	"regexp"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// raw is a URL taken apart before it is known what its parts mean. Path
// segments and query values are percent-decoded.
type raw struct {
	scheme    string
	hasUser   bool
	user      string
	hasPass   bool
	password  string
	authority string // host and port, still encoded
	segments  []string
	slash     bool // the path ends in one
	query     []pair
	fragment  bool // it had one, which is gone
}

type pair struct{ key, value string }

var schemePattern = regexp.MustCompile(`^\s*([A-Za-z][A-Za-z0-9+.-]{0,31}|[0-9][A-Za-z0-9]{1,31})://`)

// What a URL may measure. Keys and certificates within URLs make for long
// ones, and nothing for ones longer than this.
const (
	maxURL    = 64 << 10 // bytes
	maxPieces = 1000     // path segments, and parameters of the query
)

// splitURL takes a URL apart the way users of notification URLs write them:
// "+" stands for itself, and so does "#" except within a word of the path,
// where it begins a fragment; a query parameter may be separated by "&" or ";",
// empty path segments do not count, and a percent sign that begins no escape
// is kept.
func splitURL(s string) (*raw, error) {
	if len(s) > maxURL {
		return nil, &URLError{Problem: "is longer than 64 KiB"}
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	m := schemePattern.FindStringSubmatch(s)
	if m == nil {
		return nil, &URLError{Problem: "is no notification URL; it begins with a service and ://, as in json://example.com"}
	}
	u := &raw{scheme: strings.ToLower(m[1])}
	rest := strings.TrimSpace(s[len(m[0]):])
	rest, query, _ := strings.Cut(rest, "?")
	rest, u.fragment = cutFragment(rest)
	authority, path, _ := strings.Cut(rest, "/")
	u.authority = authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		u.hasUser, u.user, u.authority = true, authority[:i], authority[i+1:]
		u.user, u.password, u.hasPass = strings.Cut(u.user, ":")
		u.user, u.password = percent.DecodeText(u.user), percent.DecodeText(u.password)
	}
	u.slash = strings.HasSuffix(rest, "/")
	for seg := range strings.SplitSeq(path, "/") {
		if seg != "" {
			u.segments = append(u.segments, percent.DecodeText(seg))
		}
	}
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		key, value, _ := strings.Cut(part, "=")
		u.query = append(u.query, pair{percent.DecodeText(key), strings.TrimSpace(percent.DecodeText(value))})
	}
	if len(u.segments) > maxPieces || len(u.query) > maxPieces {
		return nil, &URLError{Problem: "has more than 1000 parts"}
	}
	return u, nil
}

// cutFragment cuts what is behind a # within a word (RFC 3986, section 3.5).
// At the beginning of one, of a path or of a list, it means a room, a channel
// or a tag, and in a user's name or password it is one sign of many.
func cutFragment(s string) (string, bool) {
	authority, _, _ := strings.Cut(s, "/")
	begin := strings.LastIndexByte(authority, '@') + 1
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
