package percent

import (
	"net/url"
	"strings"
)

// DecodeForm returns s, a name or a value of a form, decoded as [Decode] does, with each
// plus sign as a space.
func DecodeForm(s string) string { return Decode(strings.ReplaceAll(s, "+", " ")) }

// ParseForm parses a form or a query string as browsers do (WHATWG URL, section 5.1).
// Unlike [url.ParseQuery], which leaves out fields with a semicolon or with a percent sign
// that begins no escape, it takes these as ordinary characters.
func ParseForm(s string) url.Values {
	form := url.Values{}
	for part := range strings.SplitSeq(s, "&") {
		if part != "" {
			name, value, _ := strings.Cut(part, "=")
			form.Add(DecodeForm(name), DecodeForm(value))
		}
	}
	return form
}
