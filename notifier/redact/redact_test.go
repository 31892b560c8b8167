package redact

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// mask returns text with secrets masked.
func mask(text string, secrets ...string) string { return NewMasker(secrets).Mask(text) }

func TestMask(t *testing.T) {
	const secret = "s3cr/et&word"
	basic := base64.StdEncoding.EncodeToString([]byte("user:" + secret))
	for text, want := range map[string]string{
		"nothing in it":                       "nothing in it",
		"the token " + secret + ".":           "the token xxxxx.",
		"?t=" + url.QueryEscape(secret):       "?t=xxxxx",
		"<b>" + html.EscapeString(secret):     "<b>xxxxx",
		`{"t":"s3cr\/et&word"}`:               `{"t":"xxxxx"}`,
		`{"t":"s3cr/et\u0026word"}`:           `{"t":"xxxxx"}`,
		"Authorization: Basic " + basic + ";": "Authorization: Basic xxxxx;",
		basic + " " + basic:                   "xxxxx xxxxx",
	} {
		if got := mask(text, secret, "abc"); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	// One secret as different programs escape it, in whole or in part.
	const odd = "p\u00e4ss/w\"o'r&t+\\ \U0001F511"
	for _, text := range []string{
		"p%C3%A4ss%2Fw%22o%27r%26t%2B%5C%20%F0%9F%94%91",
		"p%c3%a4ss%2fw%22o%27r%26t%2b%5c+%f0%9f%94%91",
		"p%c3%a4ss/w%22o'r&t+%5c%20\U0001F511",
		`p\u00e4ss/w\"o'r&t+\\ \ud83d\udd11`,
		`p\u00E4ss\/w\"o\u0027r\u0026t+\\ \uD83D\uDD11`,
		`p\xc3\xa4ss/w"o\'r&t+\\ \xf0\x9f\x94\x91`,
		"p\u00e4ss/w&#34;o&#39;r&amp;t+\\ \U0001F511",
		"p&auml;ss&#x2F;w&quot;o&apos;r&amp;t+\\ &#128273;",
		"p&#xe4;ss&sol;w&#x22;o&#x27;r&t&plus;&bsol; &#x1F511;",
		base64.RawURLEncoding.EncodeToString([]byte(odd)),
		base64.StdEncoding.EncodeToString([]byte("a:" + odd + "\n")),
		url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("ab:" + odd))),
		strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(odd)), "/", `\/`),
	} {
		if got := mask("\\<"+text+"> 100% & more", odd); got != "\\<xxxxx> 100% & more" {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
	for text, want := range map[string]string{
		"100%abcdefgh": "100%xxxxx", // % and the first two letters could be an escape
		`\\nabcdefgh`:  `\\nxxxxx`,
		"%61bcdefgh%":  "xxxxx%",
		"/api/" + base64.StdEncoding.EncodeToString([]byte("abcdefgh")):                          "/api/xxxxx",
		"/a/" + base64.StdEncoding.EncodeToString([]byte("\xff\xffabcdefgh\xff\xff\xff")) + "/b": "/a///xxxxx///w==/b",
		"t=" + base64.StdEncoding.EncodeToString([]byte("abcdefgh")):                             "t=xxxxx",
	} {
		if got := mask(text, "abcdefgh"); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"%41%42%43%44": "xxxxx", "ABCD": "xxxxx", "%2541%2542%2543%2544": "xxxxx", "ABC": "ABC"} {
		if got := mask(text, "%41%42%43%44", "%41%42%43"); got != want {
			t.Errorf("a secret with escapes: %q became %q, want %q", text, got, want)
		}
	}
	if got := mask("t=0000000+", "0000000 "); got != "t=xxxxx" { // a space as forms write it, and no other escape
		t.Errorf("a form: %q", got)
	}
	if got := mask("tokenABCDxyz1 and ABCDxyz", "tokenABCD", "ABCDxyz1"); got != "xxxxx and ABCDxyz" {
		t.Errorf("of secrets that overlap, %q is shown", got)
	}
	if got := mask("abc abcd abcdef", "abc", "abcd", "abcdef"); got != "abc xxxxx xxxxx" {
		t.Errorf("got %q", got)
	}
}

// TestMaskWords checks that a short secret that could be a word is masked as a whole
// word only, however it is escaped, and any other within words, too.
func TestMaskWords(t *testing.T) {
	for _, tt := range []struct{ secret, text, want string }{
		{"pass", "535 wrong password, bypassed", "535 wrong password, bypassed"},
		{"pass", `{"password":"pass"}`, `{"password":"xxxxx"}`},
		{"pass", "pass", "xxxxx"},
		{"pass", "user:pass@host, (pass) pass_ _pass “pass” pass.", "user:xxxxx@host, (xxxxx) xxxxx_ _xxxxx “xxxxx” xxxxx."},
		{"pass", "user%3Apass%40host password", "user%3Axxxxx%40host password"},
		{"pass", `
pass= password`, `
xxxxx= password`},
		{"pass", "%70ass %70assword", "xxxxx %70assword"},
		{"pass", base64.StdEncoding.EncodeToString([]byte("me:pass")) + " password", "xxxxx password"},
		{"pass", base64.StdEncoding.EncodeToString([]byte("\x00me\x00pass")), "xxxxx"},
		{"test", "latest tests of the test", "latest tests of the xxxxx"},
		{"home", "homepage of home", "homepage of xxxxx"},
		{"1234", "error 12345 at 51234: 1234", "error 12345 at 51234: xxxxx"},
		{"tok3n", "tok3n tok3ns", "xxxxx tok3ns"},
		{"a-b-c", "xa-b-cx", "xxxxxxx"},
		{"pässe", "xpässex", "xxxxxxx"},
		{"swordfish", "swordfishes", "xxxxxes"},
	} {
		if got := mask(tt.text, tt.secret); got != tt.want {
			t.Errorf("%s: %q became %q, want %q", tt.secret, tt.text, got, tt.want)
		}
	}
	// Of secrets that end alike, each counts.
	if got := mask("bypass pass apass-xy bypass-xy", "pass", "bypass", "pass-xy"); got != "xxxxx xxxxx axxxxx xxxxx" {
		t.Errorf("got %q", got)
	}
	m := NewMasker([]string{"pass"})
	if got := m.MaskPrefix("pass password", 4); got != Mask {
		t.Errorf("a secret before the cut: %q", got)
	}
	if got := m.MaskPrefix("password pass", 4); got != "pass" {
		t.Errorf("a word across the cut: %q", got)
	}
}

// A program that answers with what it was sent may escape it several times, and
// only in part.
func TestMaskNestedEscapes(t *testing.T) {
	percentAll := func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, "%%%02X", s[i])
		}
		return b.String()
	}
	quote := func(s string) string { q := strconv.QuoteToASCII(s); return q[1 : len(q)-1] }
	for _, secret := range []string{"s3cr/et&word", `p"a\s's wörd`, "100%41bc%", "&amp;secret&lt", `C:\new\table`} {
		for name, form := range map[string]func(string) string{
			"JSON in JSON":              func(s string) string { return jsonEscape(jsonEscape(s)) },
			"JSON in JSON in JSON":      func(s string) string { return jsonEscape(jsonEscape(jsonEscape(s))) },
			"percent twice":             func(s string) string { return url.QueryEscape(url.PathEscape(s)) },
			"percent three times":       func(s string) string { return url.PathEscape(url.PathEscape(percentAll(s))) },
			"HTML in JSON":              func(s string) string { return jsonEscape(html.EscapeString(s)) },
			"a URL in JSON in HTML":     func(s string) string { return html.EscapeString(jsonEscape(url.PathEscape(s))) },
			"a literal in JSON":         func(s string) string { return jsonEscape(quote(s)) },
			"half of it percent twice":  func(s string) string { return s[:len(s)/2] + url.PathEscape(percentAll(s[len(s)/2:])) },
			"half of it once, rest not": func(s string) string { return percentAll(s[:len(s)/2]) + s[len(s)/2:] },
			"base64 in a URL":           func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
		} {
			if got := mask("<"+form(secret)+">", secret); got != "<xxxxx>" {
				t.Errorf("%s, %q: %q is shown as %q", secret, name, form(secret), got)
			}
		}
	}
}

// MaskPrefix masks a secret that the cut falls into, however it is escaped.
func TestMaskPrefix(t *testing.T) {
	const secret = "s3cr/et&word-99"
	m := NewMasker([]string{secret})
	for _, form := range []string{
		secret, jsonEscape(jsonEscape(secret)), url.PathEscape(url.PathEscape(secret)),
		base64.StdEncoding.EncodeToString([]byte("ab" + secret)),
	} {
		for before := range 40 {
			text := strings.Repeat(".", before) + form + strings.Repeat(".", 400)
			got := m.MaskPrefix(text, 40)
			if want := strings.Repeat(".", before) + Mask; !strings.HasPrefix(got, want) || strings.Trim(got[len(want):], ".") != "" {
				t.Fatalf("%q after %d: %q", form, before, got)
			}
		}
	}
	if got := m.MaskPrefix("a"+secret, 100); got != "axxxxx" {
		t.Errorf("a short text: %q", got)
	}
	if got := NewMasker(nil).MaskPrefix("abcdef", 3); got != "abc" {
		t.Errorf("without secrets: %q", got)
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// TestMaskCost checks that the cost of masking depends on the length of the
// text, not on the number of secrets.
func TestMaskCost(t *testing.T) {
	var secrets []string
	for i := range 500 {
		secrets = append(secrets, fmt.Sprintf("s%dcrt-%d/%d\u00e9\"", i, i*7919, i*31))
	}
	m := NewMasker(secrets)
	plain := strings.Repeat("harmless text of an answer ", 64<<10/27)
	if n := testing.AllocsPerRun(1, func() { m.Mask(plain) }); n != 0 {
		t.Errorf("%g allocations when there is nothing to mask", n)
	}
	for name, text := range map[string]string{
		"secrets": strings.Repeat(secrets[0]+" ", 64<<10/len(secrets[0])),
		"all":     strings.Join(secrets, " "),
		"base64":  strings.Repeat(base64.StdEncoding.EncodeToString([]byte(secrets[1]))+" ", 2000),
		"escapes": strings.Repeat("%41&amp;", 8<<10),
	} {
		if n := allocated(func() { m.Mask(text) }); n > 32*len(text) {
			t.Errorf("%s: %d bytes are allocated for a text of %d", name, n, len(text))
		}
	}
	if n := len(m.search.states); n > 100*len(secrets) {
		t.Errorf("%d states for %d secrets", n, len(secrets))
	}
}

var percentTriple = regexp.MustCompile("%..")

func FuzzMask(f *testing.F) {
	f.Add("before", "s3cr/et&word", "after")
	f.Add("user:", "päss wörd", "")
	f.Add("", "xxxxxx", "x")
	f.Add("a", "\x00\"\\\n", "b")
	f.Fuzz(func(t *testing.T, before, secret, after string) {
		if len(secret) < 8 || strings.Contains("xxxxx"+Mask, secret) || strings.Trim(secret, "x") == "" {
			return
		}
		for _, form := range []func(string) string{
			func(s string) string { return s },
			url.QueryEscape,
			url.PathEscape,
			func(s string) string { return percentTriple.ReplaceAllStringFunc(url.QueryEscape(s), strings.ToLower) },
			html.EscapeString,
			jsonEscape,
			func(s string) string { return strings.ReplaceAll(jsonEscape(s), "/", `\/`) },
			func(s string) string { q := strconv.QuoteToASCII(s); return q[1 : len(q)-1] },
			func(s string) string { return base64.StdEncoding.EncodeToString([]byte(before + s + after)) },
		} {
			hidden := form(secret)
			// before and after may contain the escaped secret themselves.
			if got := mask(before+" "+hidden+" "+after, secret); strings.Contains(got, hidden) &&
				!strings.Contains(before+Mask+after, hidden) && len(form(secret)) < 4*len(secret) {
				t.Errorf("%q shows %q", got, hidden)
			}
		}
	})
}
