package api

import (
	"slices"
	"testing"
)

func TestParsePairs(t *testing.T) {
	for text, want := range map[string][]pair{
		"":                nil,
		"&&":              nil,
		"a=1&b=2&a=3":     {{"a", "1"}, {"b", "2"}, {"a", "3"}},
		"a":               {{"a", ""}},
		"=x":              {{"", "x"}},
		"a=b=c":           {{"a", "b=c"}},
		"a+b=c%20d%2Be":   {{"a b", "c d+e"}},
		"a=1;b=2":         {{"a", "1;b=2"}},
		"a=100%&b=%zz&c=": {{"a", "100%"}, {"b", "%zz"}, {"c", ""}},
		"a=%C3%A9%c3%a9":  {{"a", "éé"}},
		"a=%4":            {{"a", "%4"}},
	} {
		if got, err := parsePairs(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}
