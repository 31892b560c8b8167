package safety

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// marked is a notification URL whose secrets are marks: texts that occur
// nowhere else, of the form that the service demands.
type marked struct {
	service string
	url     string
	marks   []string
}

// catalogue are URLs of all services: those of their descriptions and those of
// the golden files.
func catalogue(t *testing.T) (out []marked) {
	t.Helper()
	golden := map[string][]string{}
	for _, file := range servicetest.Files(t, "../../notifier/services") {
		for _, c := range servicetest.ReadCases(t, file) {
			if d, err := notifier.Parse(c.URL, nil); err == nil && !slices.Contains(golden[d.Service()], c.URL) {
				golden[d.Service()] = append(golden[d.Service()], c.URL)
			}
		}
	}
	number := 0
	for _, s := range notifier.Services() {
		for _, u := range append(slices.Clone(s.Examples), golden[s.Name]...) {
			if m := mark(s.Name, u, &number); m.marks != nil {
				out = append(out, m)
			}
		}
	}
	for _, s := range notifier.Services() {
		secret := slices.ContainsFunc(s.Params, func(p notifier.ParamInfo) bool { return p.Secret && p.Kind != notifier.KindMap })
		if secret && !slices.ContainsFunc(out, func(m marked) bool { return m.service == s.Name }) {
			t.Errorf("%s has secrets, but no URL in which they can be marked", s.Name)
		}
	}
	return out
}

// mark finds the secrets of a URL: what its redacted form does not show. Each
// becomes a mark, as long as the service still takes the URL for one of its
// own.
func mark(service, u string, number *int) marked {
	m := marked{service: service, url: u}
	begin := strings.Index(u, "://") + len("://")
	for at := begin; at < len(m.url); {
		end := at + strings.IndexAny(m.url[at:]+"/", "/:@?&=;,") // of one value
		value := m.url[at:end]
		if mark, ok := secretMark(service, m.url[:at], value, m.url[end:], number); ok {
			m.url = m.url[:at] + mark + m.url[end:]
			m.marks = append(m.marks, mark)
			end = at + len(mark)
		}
		at = end + 1
	}
	return m
}

// secretMark tries marks in the place of a value and returns the first that
// the service accepts and hides.
func secretMark(service, before, value, after string, number *int) (string, bool) {
	if len(value) < 4 {
		return "", false
	}
	*number++
	head := value[:strings.LastIndexByte(value, '_')+1] // what every key of the kind begins with
	forms := []string{
		fmt.Sprintf("%05dQzmarkWvsecret", *number),
		likeness(value, *number),
		likeness(value+value, *number),
		head + likeness(value[len(head):], *number),
		head + likeness(value[len(head):]+value[len(head):], *number),
	}
	if strings.Trim(value, "0123456789") == "" {
		forms = append(forms, numeral(*number))
	}
	for _, m := range forms {
		d, err := notifier.Parse(before+m+after, nil)
		if err == nil && d.Service() == service && (len(m) >= 8 || isNumeral.MatchString(m)) && strings.Contains(d.URL(), m) && !strings.Contains(d.String(), m) {
			return m, true
		}
	}
	return "", false
}

// numeral is a mark for services that take nothing but a short number, as Aprs
// does. Nobody but us writes numbers of five digits with a 0 in front.
func numeral(number int) string { return fmt.Sprintf("%05d", number%10_000) }

var isNumeral = regexp.MustCompile(`^0\d{4}$`)

// numerals are the places of a text where one stands by itself, neither a part
// of a longer number or word nor behind a decimal point.
var numerals = regexp.MustCompile(`(?:^|[^0-9A-Za-z.])(0\d{4})(?:[^0-9A-Za-z]|$)`)

// likeness is a text of the same length and the same kinds of characters.
func likeness(value string, number int) string {
	hex := strings.Trim(value, "0123456789abcdefABCDEF-") == ""
	out := []byte(value)
	seed := uint32(number)*2654435761 + 12345
	for i, c := range out {
		seed = seed*1664525 + 1013904223
		n := byte(seed >> 24)
		switch {
		case c == '%' || i > 0 && value[i-1] == '%' || i > 1 && value[i-2] == '%':
		case i > 0 && value[i-1] == '-': // in a UUID, its version and its variant
		case c >= '0' && c <= '9':
			out[i] = '0' + n%10
		case hex && c >= 'a' && c <= 'f':
			out[i] = 'a' + n%6
		case hex && c >= 'A' && c <= 'F':
			out[i] = 'A' + n%6
		case c >= 'a' && c <= 'z':
			out[i] = 'a' + n%26
		case c >= 'A' && c <= 'Z':
			out[i] = 'A' + n%26
		}
	}
	return string(out)
}

// forms are the texts that give a mark away: the mark as it is, in an encoding
// that anybody can undo, and its greater part.
func forms(mark string) (out []string) {
	plain, err := url.PathUnescape(mark)
	if err != nil {
		plain = mark
	}
	all := []string{mark, plain, plain[:len(plain)*2/3], plain[len(plain)/3:], html.EscapeString(plain), url.QueryEscape(plain)}
	for shift := range 3 { // base64 has three forms of a text within a longer one
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(" ", shift) + plain))
		all = append(all, encoded[4:len(encoded)-len(encoded)%4-4])
	}
	for _, f := range all {
		if len(f) >= formLength && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// formLength is how long a form is at least, so that none occurs by chance.
const formLength = 8

// shows returns which mark, or how much of one, can be read in a text.
func (m marked) shows(text string) string {
	for _, mark := range m.marks {
		if isNumeral.MatchString(mark) {
			continue
		}
		for _, f := range forms(mark) {
			if i := strings.Index(text, f); i >= 0 {
				return excerpt(mark, text, i, i+len(f))
			}
		}
	}
	for _, at := range numerals.FindAllStringSubmatchIndex(text, -1) {
		if number := text[at[2]:at[3]]; slices.Contains(m.marks, number) {
			return excerpt(number, text, at[2], at[3])
		}
	}
	return ""
}

// holdsNone demands that no mark of these URLs can be read in a text, however
// long, through which it goes once.
func holdsNone(t *testing.T, where, text string, all []marked) {
	t.Helper()
	type form struct{ service, text string }
	begins, numbers := map[string][]form{}, map[string]string{}
	for _, m := range all {
		for _, mark := range m.marks {
			if isNumeral.MatchString(mark) {
				numbers[mark] = m.service
				continue
			}
			for _, f := range forms(mark) {
				begins[f[:formLength]] = append(begins[f[:formLength]], form{m.service, f})
			}
		}
	}
	found := map[string]bool{} // once for each service is enough
	leak := func(service, mark string, from, to int) {
		if !found[service] {
			t.Errorf("%s: %s shows %s", service, where, excerpt(mark, text, from, to))
		}
		found[service] = true
	}
	for i := range max(0, len(text)-formLength+1) {
		for _, f := range begins[text[i:i+formLength]] {
			if strings.HasPrefix(text[i:], f.text) {
				leak(f.service, f.text, i, i+len(f.text))
			}
		}
	}
	for _, at := range numerals.FindAllStringSubmatchIndex(text, -1) {
		if service, ours := numbers[text[at[2]:at[3]]]; ours {
			leak(service, text[at[2]:at[3]], at[2], at[3])
		}
	}
}

// excerpt is the part of a text that shows a mark.
func excerpt(mark, text string, from, to int) string {
	return fmt.Sprintf("%s in …%s…", mark, strings.ToValidUTF8(text[max(0, from-150):min(len(text), to+50)], ""))
}
