package charset

import (
	"slices"
	"testing"
)

// TestReadForm reads forms with what other parsers leave out, and forms in several charsets.
func TestReadForm(t *testing.T) {
	for _, test := range []struct {
		text, declared string
		want           []Pair
	}{
		{"", "", nil},
		{"&&", "", nil},
		{"a=1&b=2&a=3", "", []Pair{{"a", "1"}, {"b", "2"}, {"a", "3"}}},
		{"a", "", []Pair{{"a", ""}}},
		{"=x", "", []Pair{{"", "x"}}},
		{"a=b=c", "", []Pair{{"a", "b=c"}}},
		{"a+b=c%20d%2Be", "", []Pair{{"a b", "c d+e"}}},
		{"a=1;b=2", "", []Pair{{"a", "1;b=2"}}},
		{"a=100%&b=%zz&c=", "", []Pair{{"a", "100%"}, {"b", "%zz"}, {"c", ""}}},
		{"a=%4", "", []Pair{{"a", "%4"}}},
		{"a=%C3%A9%c3%a9", "", []Pair{{"a", "éé"}}},
		{"a=%E9&%E9=b", "", []Pair{{"a", "é"}, {"é", "b"}}},
		{"a=\xE9", "", []Pair{{"a", "é"}}},
		{"a=%E9&b=\xE9", "iso-8859-5", []Pair{{"a", "щ"}, {"b", "щ"}}},
		{"a=%E9&_charset_=windows-1251", "", []Pair{{"a", "й"}, {"_charset_", "windows-1251"}}},
		{"\xEF\xBB\xBFa=1", "", []Pair{{"a", "1"}}},
		{"\xFF\xFEa\x00=\x00\xE9\x00", "", []Pair{{"a", "é"}}},
		{"a\x00=\x00\xE9\x00", "utf-16le", []Pair{{"a", "é"}}},
		{"body=%C3%A9&title=a", "utf-16", []Pair{{"body", "é"}, {"title", "a"}}},
		{"a=%EF%BB%BFb", "", []Pair{{"a", "b"}}},
	} {
		if got, _, ok := ReadForm([]byte(test.text), test.declared, 3); !ok || !slices.Equal(got, test.want) {
			t.Errorf("%q in %q: %q, %v; want %q", test.text, test.declared, got, ok, test.want)
		}
	}
	if _, _, ok := ReadForm([]byte("a&b&c&d"), "", 3); ok {
		t.Error("more pairs than are allowed")
	}
	if _, d := ParseQuery("a=%E9"); !d.Guessed {
		t.Error("no doubt about a query that is not UTF-8")
	}
}
