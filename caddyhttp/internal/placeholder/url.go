package placeholder

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// ResolveURL replaces the placeholders in a notification URL of the operator.
//
// If the URL is a single placeholder, the value is the URL. If it begins with a
// placeholder and has no ://, the value is the beginning of the URL
// and is used as it is. Any other placeholder stands for a part of the URL: its
// value is data, so ResolveURL percent-encodes it for its place. A password
// with a slash or an @ in it remains a password.
func ResolveURL(url string) (string, error) {
	if err := Check(url); err != nil {
		return "", err
	}
	if err := checkValues(url); err != nil {
		return "", err
	}
	if url = strings.TrimSpace(url); !strings.ContainsAny(url, `{}`) {
		return url, CheckURL(url)
	}
	known := caddy.NewReplacer()
	url, err := substitute(url, placeholder,
		func(begin int) bool { return begin == 0 || strings.IndexByte(`{\`, url[begin-1]) < 0 },
		func(name string) (label, value string, err error) {
			v, _ := known.GetString(name)
			return "{" + name + "}", strings.TrimSpace(v), nil // the text of a file ends with a line break
		}, unescapeBraces)
	if err != nil {
		return "", err
	}
	return url, CheckURL(url)
}

// substitute replaces matches of pattern in a URL, if isOne returns true for their position. value
// returns the value of the name in the first group, and how an error names it. literal is applied
// to the rest of the URL.
func substitute(
	url string, pattern *lazyregexp.Regexp, isOne func(begin int) bool,
	value func(name string) (label, value string, err error), literal *strings.Replacer,
) (string, error) {
	_, rest, hasScheme := strings.Cut(url, "://")
	authority := len(url) - len(rest) // where it begins, if there is a scheme
	var out strings.Builder
	end := 0 // of the part of url that is in out
	for _, at := range pattern.FindAllStringSubmatchIndex(url, -1) {
		if !isOne(at[0]) {
			continue
		}
		label, value, err := value(url[at[2]:at[3]])
		if err != nil {
			return "", err
		}
		if value == "" {
			return "", fmt.Errorf("%s is empty; give it a value", label)
		}
		switch {
		case !hasScheme && at[0] == 0: // checked below
		case strings.ContainsFunc(value, unicode.IsControl):
			return "", errControlInURL
		case hasScheme && at[0] < authority:
			if !schemeName.MatchString(value) {
				return "", fmt.Errorf("%s stands for the schema of the URL, but its value is not one; a schema is a word such as discord", label)
			}
		case hasScheme && isHostPlace(pattern, url[authority:], at[0]-authority, at[1]-authority):
			value = encodePart(value, ":[]")
		default:
			value = encodePart(value, "")
		}
		out.WriteString(literal.Replace(url[end:at[0]]))
		out.WriteString(value)
		end = at[1]
	}
	out.WriteString(literal.Replace(url[end:]))
	return strings.TrimSpace(out.String()), nil
}

// CheckURL returns an error if a URL without placeholders is empty or
// several URLs.
func CheckURL(url string) error {
	if url == "" {
		return errors.New("the URL is empty; write one such as discord://id/token")
	}
	return CheckSingleURL(url)
}

var (
	schemeName     = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*$`)
	unescapeBraces = strings.NewReplacer(`\{`, "{", `\}`, "}")
)

// isHostPlace reports whether the match of pattern at text[begin:end] is in the host
// of a URL; text is the URL after ://. The host ends at the first slash,
// question mark or number sign, and begins after the last @ before that.
func isHostPlace(pattern *lazyregexp.Regexp, text string, begin, end int) bool {
	text = pattern.ReplaceAllStringFunc(text, func(p string) string { return strings.Repeat("x", len(p)) })
	if i := strings.IndexAny(text, "/?#"); i >= 0 {
		text = text[:i]
	}
	return end <= len(text) && begin > strings.LastIndexByte(text, '@')
}

// isEncoded matches a value that is percent-encoded already.
var isEncoded = lazyregexp.New(`^(?:[A-Za-z0-9._~,!*'()-]|%[0-9A-Fa-f]{2})*$`).MatchString

// encodePart percent-encodes a value that is a part of a URL, except the comma, which separates
// items of lists, and the characters in keep.
//
// A value that is encoded already stays as it is. That is a value with a percent
// sign in which each percent sign is followed by two hexadecimal digits and all
// other characters are letters, digits or one of -._~,!*'().
func encodePart(value, keep string) string {
	if strings.Contains(value, "%") && isEncoded(value) {
		return value
	}
	return percent.Encode(value, keep+",")
}

// CheckSingleURL returns an error if text is a list of URLs. Otherwise
// everything after the first comma would be a part of the first URL.
func CheckSingleURL(text string) error {
	switch {
	case len(notifier.SplitURLs(text)) > 1:
		return ErrSeveralURLs
	case strings.ContainsFunc(strings.TrimSpace(text), unicode.IsControl):
		return errControlInURL
	}
	return nil
}

var errControlInURL = errors.New("the URL has a line break or another control character in it; remove it")

// ErrSeveralURLs is returned for a list of URLs where one URL belongs.
var ErrSeveralURLs = errors.New("this holds several URLs; write one URL per url line or argument, and %2C for a comma within a URL")
