package percent

import (
	"maps"
	"net/url"
	"slices"
	"testing"
)

func TestParseForm(t *testing.T) {
	for text, want := range map[string]url.Values{
		"":                                 {},
		"&&":                               {},
		"a=1&b=x+y&a=2":                    {"a": {"1", "2"}, "b": {"x y"}},
		"a%3Db=%26&c":                      {"a=b": {"&"}, "c": {""}},
		"message=91% full; act now&p=100%": {"message": {"91% full; act now"}, "p": {"100%"}},
		"a=%zz%4&b=%e2%82%ac":              {"a": {"%zz%4"}, "b": {"\u20ac"}},
	} {
		got := ParseForm(text)
		if !maps.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
