package notifier

import (
	"slices"
	"strings"
	"testing"
)

func TestSplitURLs(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                  nil,
		" , ":                               nil,
		"json://a":                          {"json://a"},
		"json://a,json://b":                 {"json://a", "json://b"},
		"json://a json://b":                 {"json://a", "json://b"},
		" json://a ,, json://b\n":           {"json://a", "json://b"},
		"json://a/x,y":                      {"json://a/x,y"},
		"json://a/x, y":                     {"json://a/x, y"},
		"json://a/x,y,json://b":             {"json://a/x,y", "json://b"},
		"json://a?to=b@c,d@e,mailto://f":    {"json://a?to=b@c,d@e", "mailto://f"},
		"json://a?u=http://b":               {"json://a?u=http://b"},
		"json://a?u=http%3A%2F%2Fb,xml://c": {"json://a?u=http%3A%2F%2Fb", "xml://c"},
		"nonsense,json://a":                 {"nonsense", "json://a"},
		"nonsense":                          {"nonsense"},
		"://,://":                           {"://,://"},
		"json://json://a":                   {"json://json://a"},
	} {
		if got := SplitURLs(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzSplitURLs(f *testing.F) {
	f.Add("json://a,json://b")
	f.Add(" ,a://,://b c://d,e")
	f.Fuzz(func(t *testing.T, text string) {
		urls := SplitURLs(text)
		rest := text
		for _, u := range urls {
			if strings.TrimFunc(u, isSeparator) != u || u == "" {
				t.Errorf("%q is not trimmed", u)
			}
			i := strings.Index(rest, u)
			if i < 0 || strings.TrimFunc(rest[:i], isSeparator) != "" {
				t.Fatalf("%q: text before %q is missing", text, u)
			}
			rest = rest[i+len(u):]
			if again := SplitURLs(u); len(again) != 1 || again[0] != u {
				t.Errorf("%q splits again into %q", u, again)
			}
		}
		if strings.TrimFunc(rest, isSeparator) != "" {
			t.Errorf("%q: the end %q is missing", text, rest)
		}
	})
}
