package safety

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
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
	files, err := filepath.Glob("../notifier/services/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	golden := map[string][]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if u, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "url: "); ok {
				if d, err := notifier.Parse(u, nil); err == nil && !slices.Contains(golden[d.Service()], u) {
					golden[d.Service()] = append(golden[d.Service()], u)
				}
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
		if secret && s.Name != "Aprs" && !slices.ContainsFunc(out, func(m marked) bool { return m.service == s.Name }) {
			t.Errorf("%s has secrets, but no URL in which they can be marked", s.Name) // that of Aprs is a number below 32768
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
	for _, m := range []string{
		fmt.Sprintf("%05dQzmarkWvsecret", *number),
		likeness(value, *number),
		likeness(value+value, *number),
		head + likeness(value[len(head):], *number),
		head + likeness(value[len(head):]+value[len(head):], *number),
	} {
		d, err := notifier.Parse(before+m+after, nil)
		if err == nil && d.Service() == service && len(m) >= 8 && strings.Contains(d.URL(), m) && !strings.Contains(d.String(), m) {
			return m, true
		}
	}
	return "", false
}

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

// shows returns which mark, or how much of one, can be read in a text: as it
// is, in an encoding that anybody can undo, or its greater part.
func (m marked) shows(text string) string {
	for _, mark := range m.marks {
		plain, err := url.PathUnescape(mark)
		if err != nil {
			plain = mark
		}
		forms := []string{mark, plain, plain[:len(plain)*2/3], plain[len(plain)/3:], html.EscapeString(plain), url.QueryEscape(plain)}
		for shift := range 3 { // base64 has three forms of a text within a longer one
			encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(" ", shift) + plain))
			forms = append(forms, encoded[4:len(encoded)-len(encoded)%4-4])
		}
		for _, f := range forms {
			if i := strings.Index(text, f); len(f) >= 8 && i >= 0 {
				return fmt.Sprintf("%s in …%s…", mark, strings.ToValidUTF8(text[max(0, i-150):min(len(text), i+len(f)+50)], ""))
			}
		}
	}
	return ""
}
