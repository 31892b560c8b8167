package programs

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestCharsets reads every sample in several charsets, and expects the same message as in UTF-8.
func TestCharsets(t *testing.T) {
	little, big := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder(),
		unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewEncoder()
	for _, sample := range racetest.Part(samples(t), 5) {
		s := withImages(t, sample.source)
		read := func(body, declared string) (string, error) {
			header := sample.header.Clone()
			if declared != "" {
				media, _, _ := strings.Cut(header.Get("Content-Type"), ";")
				header.Set("Content-Type", media+"; charset="+declared)
			}
			m, err := s.Read(t.Context(), &source.Request{
				Header: header, Query: url.Values{}, Body: []byte(body),
				Time: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC),
			})
			if err != nil {
				return "", err
			}
			guessed := fmt.Sprintf("%t\n", strings.Contains(strings.Join(m.Warnings, ""), "Windows-1252"))
			m.Warnings = nil
			return guessed + goldenText(m), nil
		}
		text := withUmlauts(sample.body)
		want, err := read(text, "")
		if err != nil {
			continue // a name of the format has changed
		}
		latin1, err := charmap.Windows1252.NewEncoder().String(text)
		if err != nil {
			t.Fatal(sample.path, err)
		}
		inLittle, _ := little.String(text)
		inBig, _ := big.String(text)
		for _, c := range []struct{ name, body, declared string }{
			{"a mark", "\xEF\xBB\xBF" + text, ""},
			{"UTF-16LE with a mark", "\xFF\xFE" + inLittle, ""},
			{"UTF-16BE with a mark", "\xFE\xFF" + inBig, "utf-8"},
			{"UTF-16LE", inLittle, ""},
			{"UTF-16BE", inBig, "utf-16be"},
			{"Windows-1252", latin1, "windows-1252"},
			{"Windows-1252 undeclared", latin1, ""},
		} {
			want := want
			if strings.HasSuffix(c.name, "undeclared") && latin1 != text {
				want = strings.Replace(want, "false", "true", 1) // with a warning
			}
			if got, err := read(c.body, c.declared); err != nil || got != want {
				t.Errorf("%s in %s: %v, got\n%s, want\n%s", sample.path, c.name, err, got, want)
			}
		}
	}
}

// TestSignatureOfBytes checks that a signature covers the bytes as they arrived.
func TestSignatureOfBytes(t *testing.T) {
	s, err := source.New(source.Config{Name: "github", Scheme: source.SchemeGitHub, Secret: "hiccup"})
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range samples(t) {
		if sample.source != "github" {
			continue
		}
		for _, body := range []string{"\xEF\xBB\xBF" + string(sample.body), strings.Replace(string(sample.body), "e", "\xE9", 1)} {
			m := hmac.New(sha256.New, []byte("hiccup"))
			m.Write([]byte(body))
			header := sample.header.Clone()
			header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(m.Sum(nil)))
			r := &source.Request{Header: header, Query: url.Values{}, Body: []byte(body), Time: time.Now()}
			_ = r.Text() // it changes nothing
			if err := s.Authenticate(t.Context(), r, nil); err != nil {
				t.Errorf("%s: %v", sample.path, err)
			}
		}
	}
}

// withUmlauts returns a payload with characters beyond ASCII in its texts, all of which are in
// Windows-1252.
func withUmlauts(body []byte) string {
	var compact bytes.Buffer
	if json.Compact(&compact, body) == nil {
		body = compact.Bytes()
	}
	text := strings.Map(func(r rune) rune {
		if _, ok := charmap.Windows1252.EncodeRune(r); ok {
			return r
		}
		return '?'
	}, string(body))
	// Spaces are only within texts. The text with an umlaut at its end is not UTF-8.
	return strings.ReplaceAll(text, " ", " ü€ ")
}

// TestNtfyTextOrFile checks that a body in another charset is the text, and a picture a file.
func TestNtfyTextOrFile(t *testing.T) {
	s, err := source.Builtin("ntfy")
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		"gr\xF6\xDFer":                 "größer",
		"\xFF\xFEo\x00\xE4\x00":        "oä",
		"\xEF\xBB\xBFgrößer":           "größer",
		"\xFF\xD8\xFF\xE0\x00\x10JFIF": "file attachment",
	} {
		m, err := s.Read(t.Context(), &source.Request{
			Method: http.MethodPost, Path: "topic", Header: http.Header{"Title": {"T\xFCr"}}, Query: url.Values{}, Body: []byte(body),
		})
		if err != nil || m.Title+m.File == "" {
			t.Errorf("%q: %+v, %v", body, m, err)
			continue
		}
		got := m.Body
		if m.File != "" {
			got = "file " + m.File
		} else if m.Title != "Tür" {
			t.Errorf("%q: the title is %q", body, m.Title)
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
	}
}
