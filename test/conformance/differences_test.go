package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// match pairs the expected requests with those that were sent, in any order, so that as few
// differences as possible are left, and returns these. "*" stands for any requests.
func match(want any, got []any) (all []string) {
	if want == any("*") {
		return nil
	}
	expected, _ := want.([]any)
	left := slices.Clone(got)
	for i, w := range expected {
		best, least := -1, []string(nil)
		for j, g := range left {
			if d := differences(fmt.Sprintf("request %d", i+1), w, g); best < 0 || len(d) < len(least) {
				best, least = j, d
			}
		}
		if best < 0 {
			all = append(all, fmt.Sprintf("request %d is not sent: %s", i+1, summary(w)))
			continue
		}
		left = slices.Delete(left, best, best+1)
		all = append(all, least...)
	}
	for _, g := range left {
		all = append(all, "is sent, too: "+summary(g))
	}
	return all
}

// summary returns the method, URL and body of a request.
func summary(request any) string {
	r, _ := request.(map[string]any)
	return fmt.Sprintf("%v %v://%v%v %s", r["method"], r["scheme"], r["host"], r["path"], short(r["body"]))
}

// differences returns the places below at where got is not what want asks for. "*" stands for
// anything. Texts that no reader can tell apart are equal, and so are paths with another
// encoding and types of content with another charset.
func differences(at string, want, got any) (all []string) {
	if want == any("*") {
		return nil
	}
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			names := slices.Concat(slices.Collect(maps.Keys(w)), slices.Collect(maps.Keys(g)))
			slices.Sort(names)
			for _, name := range slices.Compact(names) {
				all = append(all, differencesOfMember(at+"."+name, name, w, g)...)
			}
			return all
		}
	case []any:
		if g, ok := got.([]any); ok && len(w) == len(g) {
			for i := range w {
				all = append(all, differences(fmt.Sprintf("%s[%d]", at, i), w[i], g[i])...)
			}
			return all
		} else if ok {
			return []string{fmt.Sprintf("%s: %d items, want %d\n\tgot  %s\n\twant %s", at, len(g), len(w), short(got), short(want))}
		}
	case string:
		if g, ok := got.(string); ok {
			return differencesOfText(at, w, g)
		}
	case json.Number:
		if g, ok := got.(json.Number); ok && equalNumbers(w, g) {
			return nil
		}
	default: // true, false or null
		if want == got {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s\n\tgot  %s\n\twant %s", at, short(got), short(want))}
}

func differencesOfMember(at, name string, want, got map[string]any) []string {
	w, expected := want[name]
	g, sent := got[name]
	switch {
	case !expected:
		return []string{fmt.Sprintf("%s is sent, too: %s", at, short(g))}
	case !sent:
		return []string{fmt.Sprintf("%s is missing: %s", at, short(w))}
	}
	wantText, _ := w.(string)
	gotText, isText := g.(string)
	switch {
	case isText && name == "path" && unescapePath(wantText) == unescapePath(gotText),
		isText && (name == "content-type" || name == "type") && strings.Contains(wantText, "/") && mediaType(wantText) == mediaType(gotText):
		return nil
	}
	return differences(at, w, g)
}

func unescapePath(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

var charset = regexp.MustCompile(`(?i);\s*charset=[\w-]+`)

func mediaType(s string) string {
	return strings.ToLower(strings.TrimSpace(charset.ReplaceAllString(s, "")))
}

func equalNumbers(a, b json.Number) bool {
	x, okX := new(big.Rat).SetString(a.String())
	y, okY := new(big.Rat).SetString(b.String())
	return okX && okY && x.Cmp(y) == 0
}

var (
	alike = strings.NewReplacer("\r\n", "\n", "&nbsp;", " ", "&emsp;", "\t", "\u00a0", " ",
		"&#x27;", "'", "&#39;", "'", "&quot;", `"`, "&#34;", `"`)
	breaks    = regexp.MustCompile(`<(br|hr)\s*/?>`)
	lineBreak = regexp.MustCompile(`[ \t]*\n[\s\p{Z}]*`)
)

// fold returns a text without what no reader can tell apart.
func fold(s string) string {
	return strings.TrimSpace(lineBreak.ReplaceAllString(breaks.ReplaceAllString(alike.Replace(s), "<$1/>"), "\n"))
}

// differencesOfText shows long texts from shortly before the first character that differs.
func differencesOfText(at, want, got string) []string {
	if want == got || fold(want) == fold(got) {
		return nil
	}
	same := 0
	for same < min(len(want), len(got)) && want[same] == got[same] {
		same++
	}
	return []string{fmt.Sprintf("%s differs at byte %d of %d, want %d\n\tgot  %s\n\twant %s", at, same, len(got), len(want),
		around(got, same), around(want, same))}
}

// around returns the part of a text around a place.
func around(s string, at int) string {
	const before, after = 40, 80
	start, end := "", ""
	if at > before {
		s, start = s[at-before:], "… "
		at = before
	}
	if len(s) > at+after {
		s, end = s[:at+after], " …"
	}
	return start + fmt.Sprintf("%q", s) + end
}

// short returns the beginning and the end of a value as JSON.
func short(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	s := strings.TrimSuffix(b.String(), "\n")
	if len(s) < 300 {
		return s
	}
	return strings.ToValidUTF8(s[:200], "") + " … " + strings.ToValidUTF8(s[len(s)-90:], "")
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want, got string
		differ    string // what the differences begin with, separated by "; "
	}{
		{`"*"`, `[1]`, ""},
		{`{"a": 1, "b": "x"}`, `{"a": 1.0, "b": "x"}`, ""},
		{`{"a": 1, "b": true}`, `{"a": "1", "b": 1}`, "r.a; r.b"},
		{`{"a": null}`, `{"b": null}`, "r.a is missing; r.b is sent, too"},
		{`[1, 2]`, `[1]`, "r: 1 items, want 2"},
		{`[1, 2]`, `[1, 3]`, "r[1]"},
		{`"a &quot;b&quot;<br>\r\n  c "`, `"a \"b\"<br/>\nc"`, ""},
		{`"a b"`, `"a c"`, "r differs at byte 2 of 3, want 3"},
		{`{"path": "/a%40b"}`, `{"path": "/a@b"}`, ""},
		{`{"path": "/a"}`, `{"path": "/b"}`, "r.path differs at byte 1 of 2, want 2"},
		{`{"type": "text/plain; charset=utf-8"}`, `{"type": "text/plain"}`, ""},
		{`{"type": "text/plain"}`, `{"type": "text/html"}`, "r.type differs at byte 5"},
		{`{"type": "a; charset=b"}`, `{"type": "a"}`, "r.type differs at byte 1 of 1, want 12"},
	} {
		got := differences("r", decoded(t, c.want), decoded(t, c.got))
		begins := strings.Split(c.differ, "; ")
		if c.differ == "" {
			begins = nil
		}
		if !slices.EqualFunc(got, begins, strings.HasPrefix) {
			t.Errorf("%s and %s differ: %q, want %q", c.want, c.got, got, begins)
		}
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	const a, b, c = `{"method":"GET","path":"/a"}`, `{"method":"GET","path":"/b"}`, `{"method":"PUT","path":"/c"}`
	for _, x := range []struct{ want, got, differ string }{
		{`"*"`, `[` + a + `]`, ""},
		{`[` + a + `,` + b + `]`, `[` + b + `,` + a + `]`, ""},
		{`[` + a + `,` + b + `]`, `[` + a + `]`, "request 2 is not sent: GET"},
		{`[` + a + `]`, `[` + b + `,` + a + `]`, "is sent, too: GET"},
		{`[` + a + `]`, `[` + c + `,` + b + `]`, "request 1.path; is sent, too: PUT"},
	} {
		got := match(decoded(t, x.want), decoded(t, x.got).([]any))
		begins := strings.Split(x.differ, "; ")
		if x.differ == "" {
			begins = nil
		}
		if !slices.EqualFunc(got, begins, strings.HasPrefix) {
			t.Errorf("%s and %s differ: %q, want %q", x.want, x.got, got, begins)
		}
	}
}

func decoded(t *testing.T, s string) any {
	t.Helper()
	v, err := decode([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
