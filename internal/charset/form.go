package charset

import (
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// Pair is a name and a value of a form or of a query string.
type Pair struct{ Name, Value string }

// ReadForm reads a form (application/x-www-form-urlencoded) or a query string as browsers do
// (WHATWG URL, section 5.1), and returns the pairs in order. Unlike [url.ParseQuery], it takes a
// semicolon, and a percent sign that begins no escape, as ordinary characters: curl -d
// "body=91% full; act now" sends that text. The names and values are in the charset that the
// field _charset_ names or that is declared. ok is false if there are more than max pairs.
func ReadForm(text []byte, declared string, max int) (pairs []Pair, d Doubt, ok bool) {
	wide := isWide(findCharset(declared))
	if IsWide(text, declared) {
		text, d = Decode(text, declared)
		wide = true
	}
	if wide { // the text was, or only its declaration is
		declared = ""
	}
	for part := range strings.SplitSeq(string(text), "&") {
		if part == "" {
			continue
		}
		if len(pairs) == max {
			return nil, d, false
		}
		name, value, _ := strings.Cut(part, "=")
		p := Pair{percent.DecodeForm(name), percent.DecodeForm(value)}
		if p.Name == CharsetField && p.Value != "" {
			declared = p.Value
		}
		pairs = append(pairs, p)
	}
	for i := range pairs {
		p := &pairs[i]
		var name, value Doubt
		p.Name, name = DecodeString(p.Name, declared)
		p.Value, value = DecodeString(p.Value, declared)
		d = d.Or(name).Or(value)
	}
	return pairs, d, true
}

// CharsetField is the field in which a form says what its charset is (RFC 7578, section 4.6).
const CharsetField = "_charset_"

// ParseQuery returns the parameters of a query string as [ReadForm] reads them.
func ParseQuery(query string) (url.Values, Doubt) {
	pairs, d, _ := ReadForm([]byte(query), "", len(query)+1)
	return Values(pairs), d
}

// Values returns the values of pairs by their names.
func Values(pairs []Pair) url.Values {
	values := url.Values{}
	for _, p := range pairs {
		values.Add(p.Name, p.Value)
	}
	return values
}
