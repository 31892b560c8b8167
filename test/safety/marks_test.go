package safety

import (
	"encoding/base64"
	"fmt"
	"html"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// marked is a notification URL whose secrets are marks: unique texts in the
// syntax that the service requires.
type marked struct {
	service  string
	url      string
	marks    []string
	needles  []needle // of all marks but numerals
	numerals bool     // whether some mark is a numeral
}

// needle is a text that reveals a mark.
type needle struct{ mark, text string }

// catalogue returns URLs of all services, from their descriptions and from the
// golden files. It is computed once for all tests.
func catalogue(t *testing.T) []marked {
	t.Helper()
	marking.Lock()
	defer marking.Unlock()
	if marking.all == nil {
		marking.all = markCatalogue(t)
	}
	return marking.all
}

var marking struct {
	sync.Mutex
	all []marked
}

func markCatalogue(t *testing.T) (out []marked) {
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
		public := examples(s)
		for _, u := range append(slices.Clone(s.Examples), golden[s.Name]...) {
			if m := mark(s.Name, public, u, &number); m.marks != nil {
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

// examples returns texts that errors about a service may quote, and the
// common part of its keys.
func examples(s notifier.ServiceInfo) string {
	all := slices.Clone(s.Examples)
	for _, p := range s.Params {
		all = append(all, p.Example)
	}
	return strings.Join(all, "\n")
}

// mark replaces the secrets of a URL, that is the parts hidden in its
// redacted form, by marks if the service accepts the result. A public part of a
// mark does not reveal it.
func mark(service, public, u string, number *int) marked {
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
	for _, mark := range m.marks {
		if isNumeral.MatchString(mark) {
			m.numerals = true
			continue
		}
		for _, text := range needles(mark) {
			if strings.Contains(public, text) {
				continue
			}
			m.needles = append(m.needles, needle{mark, text})
		}
	}
	return m
}

// secretMark returns the first mark that the service accepts and hides in the
// place of value. It reports whether there is one.
func secretMark(service, before, value, after string, number *int) (string, bool) {
	if len(value) < 4 {
		return "", false
	}
	*number++
	head := value[:strings.LastIndexByte(value, '_')+1] // the common prefix of such keys
	forms := []string{
		fmt.Sprintf("%05dQzmarkWvsecret", *number),
		similar(value, *number),
		similar(value+value, *number),
		head + similar(value[len(head):], *number),
		head + similar(value[len(head):]+value[len(head):], *number),
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

// numeral returns a mark for services that accept only a short number, such
// as APRS. Numbers of five digits with a leading 0 do not occur elsewhere.
func numeral(number int) string { return fmt.Sprintf("%05d", number%10_000) }

const numeralLength = 5

var isNumeral = regexp.MustCompile(`^0\d{4}$`)

// numeralsIn returns the positions of the numerals in text that are not part of
// a longer number or word and do not follow a decimal point.
func numeralsIn(text string) iter.Seq[int] {
	inWord := func(i int) bool {
		return i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i]|0x20 >= 'a' && text[i]|0x20 <= 'z')
	}
	return func(yield func(int) bool) {
		for i := 0; i+numeralLength <= len(text); i++ {
			if text[i] != '0' || i > 0 && (inWord(i-1) || text[i-1] == '.') || inWord(i+numeralLength) {
				continue
			}
			if isNumeral.MatchString(text[i:i+numeralLength]) && !yield(i) {
				return
			}
		}
	}
}

// similar returns a text of the same length with the same kinds of
// characters.
func similar(value string, number int) string {
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

// needles returns the texts that reveal a mark: the mark itself, its encodings,
// and two thirds of it.
func needles(mark string) (out []string) {
	plain, err := url.PathUnescape(mark)
	if err != nil {
		plain = mark
	}
	all := []string{mark, plain, plain[:len(plain)*2/3], plain[len(plain)/3:], html.EscapeString(plain), url.QueryEscape(plain)}
	for shift := range 3 { // a text inside a longer one has three base64 forms
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(" ", shift) + plain))
		all = append(all, encoded[4:len(encoded)-len(encoded)%4-4])
	}
	for _, f := range all {
		if len(f) >= needleLength && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// needleLength is the minimum length of a needle. Shorter ones occur by chance.
const needleLength = 8

// revealedIn returns a mark that text reveals, and where. It returns "" if text
// reveals none.
func (m marked) revealedIn(text string) string {
	for _, f := range m.needles {
		if i := strings.Index(text, f.text); i >= 0 {
			return excerpt(f.mark, text, i, i+len(f.text))
		}
	}
	if !m.numerals {
		return ""
	}
	for at := range numeralsIn(text) {
		if number := text[at : at+numeralLength]; slices.Contains(m.marks, number) {
			return excerpt(number, text, at, at+numeralLength)
		}
	}
	return ""
}

// checkNoMarks fails the test if text reveals a mark of one of the URLs. It
// reads text once for any number of marks.
func checkNoMarks(t *testing.T, where, text string, all []marked) {
	t.Helper()
	type candidate struct{ service, text string }
	begins, numbers := map[string][]candidate{}, map[string]string{}
	for _, m := range all {
		for _, f := range m.needles {
			begins[f.text[:needleLength]] = append(begins[f.text[:needleLength]], candidate{m.service, f.text})
		}
		for _, mark := range m.marks {
			if isNumeral.MatchString(mark) {
				numbers[mark] = m.service
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
	for i := range max(0, len(text)-needleLength+1) {
		for _, f := range begins[text[i:i+needleLength]] {
			if strings.HasPrefix(text[i:], f.text) {
				leak(f.service, f.text, i, i+len(f.text))
			}
		}
	}
	for at := range numeralsIn(text) {
		number := text[at : at+numeralLength]
		if service, ours := numbers[number]; ours {
			leak(service, number, at, at+numeralLength)
		}
	}
}

// excerpt quotes the part of text that reveals a mark.
func excerpt(mark, text string, from, to int) string {
	return fmt.Sprintf("%s in …%s…", mark, strings.ToValidUTF8(text[max(0, from-150):min(len(text), to+50)], ""))
}
