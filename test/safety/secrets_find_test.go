package safety

import (
	"encoding/base64"
	"fmt"
	"html"
	"iter"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// secretURL is a notification URL with test secrets: unique texts that a test
// can find, in the syntax that the service requires.
type secretURL struct {
	service  string
	url      string
	secrets  []string
	leaks    []leak // of all secrets except numerals
	numerals bool   // some secret is a numeral
}

// leak is a text that reveals a secret.
type leak struct{ secret, text string }

// catalogue returns URLs of all services, from their descriptions and from the
// golden files. It is computed once for all tests.
func catalogue(t *testing.T) []secretURL {
	t.Helper()
	catalogueCache.Lock()
	defer catalogueCache.Unlock()
	if catalogueCache.all == nil {
		catalogueCache.all = newCatalogue(t)
	}
	return catalogueCache.all
}

var catalogueCache struct {
	sync.Mutex
	all []secretURL
}

// oneOfEach returns one URL of each service, in each turn another, or all URLs
// if full is set.
func oneOfEach(all []secretURL, turn int) (out []secretURL) {
	if full {
		return all
	}
	of := map[string][]secretURL{}
	for _, m := range all {
		of[m.service] = append(of[m.service], m)
	}
	for _, service := range slices.Sorted(maps.Keys(of)) {
		out = append(out, of[service][turn%len(of[service])])
	}
	return out
}

func newCatalogue(t *testing.T) (out []secretURL) {
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
			if m := withTestSecrets(s.Name, public, u, &number); m.secrets != nil {
				out = append(out, m)
			}
		}
	}
	for _, s := range notifier.Services() {
		hasSecret := slices.ContainsFunc(s.Params, func(p notifier.ParamInfo) bool { return p.Secret && p.Kind != notifier.KindMap })
		if hasSecret && !slices.ContainsFunc(out, func(m secretURL) bool { return m.service == s.Name }) {
			t.Errorf("%s has secrets, but no URL that accepts test secrets", s.Name)
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

// withTestSecrets returns the URL with test secrets in place of the parts that
// its redacted form hides, if the service accepts them. A part of a secret that
// public contains does not reveal it.
func withTestSecrets(service, public, u string, number *int) secretURL {
	m := secretURL{service: service, url: u}
	begin := strings.Index(u, "://") + len("://")
	for at := begin; at < len(m.url); {
		end := at + strings.IndexAny(m.url[at:]+"/", "/:@?&=;,") // of one value
		value := m.url[at:end]
		if secret, ok := testSecret(service, m.url[:at], value, m.url[end:], number); ok {
			m.url = m.url[:at] + secret + m.url[end:]
			m.secrets = append(m.secrets, secret)
			end = at + len(secret)
		}
		at = end + 1
	}
	for _, secret := range m.secrets {
		if isNumeral.MatchString(secret) {
			m.numerals = true
			continue
		}
		for _, text := range leaksOf(secret) {
			if strings.Contains(public, text) {
				continue
			}
			m.leaks = append(m.leaks, leak{secret, text})
		}
	}
	return m
}

// testSecret returns the first test secret that the service accepts and hides in
// place of value, and reports whether there is one.
func testSecret(service, before, value, after string, number *int) (string, bool) {
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
		if err == nil && d.Service() == service && (len(m) >= 8 || isNumeral.MatchString(m)) &&
			strings.Contains(d.URL(), m) && !strings.Contains(d.String(), m) {
			return m, true
		}
	}
	return "", false
}

// numeral returns a secret for services that accept only a short number, such
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

// leaksOf returns the texts that reveal a secret: the secret itself, its
// encodings, and two thirds of it.
func leaksOf(secret string) (out []string) {
	plain, err := url.PathUnescape(secret)
	if err != nil {
		plain = secret
	}
	all := []string{secret, plain, plain[:len(plain)*2/3], plain[len(plain)/3:], html.EscapeString(plain), url.QueryEscape(plain)}
	for shift := range 3 { // a text inside a longer one has three base64 forms
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(" ", shift) + plain))
		all = append(all, encoded[4:len(encoded)-len(encoded)%4-4])
	}
	for _, f := range all {
		if len(f) >= minLeak && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// minLeak is the minimum length of a leak. Shorter texts occur by chance.
const minLeak = 8

// revealedIn returns a secret that text reveals, and where. It returns "" if text
// reveals none.
func (m secretURL) revealedIn(text string) string {
	for _, f := range m.leaks {
		if i := strings.Index(text, f.text); i >= 0 {
			return excerpt(f.secret, text, i, i+len(f.text))
		}
	}
	if !m.numerals {
		return ""
	}
	for at := range numeralsIn(text) {
		if number := text[at : at+numeralLength]; slices.Contains(m.secrets, number) {
			return excerpt(number, text, at, at+numeralLength)
		}
	}
	return ""
}

// checkNoSecrets fails the test if text reveals a secret of one of the URLs. It
// reads text once for any number of secrets.
func checkNoSecrets(t *testing.T, where, text string, all []secretURL) {
	t.Helper()
	type candidate struct{ service, text string }
	begins, numbers := map[string][]candidate{}, map[string]string{}
	for _, m := range all {
		for _, f := range m.leaks {
			begins[f.text[:minLeak]] = append(begins[f.text[:minLeak]], candidate{m.service, f.text})
		}
		for _, secret := range m.secrets {
			if isNumeral.MatchString(secret) {
				numbers[secret] = m.service
			}
		}
	}
	found := map[string]bool{} // once for each service is enough
	report := func(service, secret string, from, to int) {
		if !found[service] {
			t.Errorf("%s: %s shows %s", service, where, excerpt(secret, text, from, to))
		}
		found[service] = true
	}
	for i := range max(0, len(text)-minLeak+1) {
		for _, f := range begins[text[i:i+minLeak]] {
			if strings.HasPrefix(text[i:], f.text) {
				report(f.service, f.text, i, i+len(f.text))
			}
		}
	}
	for at := range numeralsIn(text) {
		number := text[at : at+numeralLength]
		if service, ours := numbers[number]; ours {
			report(service, number, at, at+numeralLength)
		}
	}
}

// excerpt quotes the part of text that reveals a secret.
func excerpt(secret, text string, from, to int) string {
	return fmt.Sprintf("%s in …%s…", secret, strings.ToValidUTF8(text[max(0, from-150):min(len(text), to+50)], ""))
}
