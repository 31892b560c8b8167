package markup

import "testing"

func TestTruncate(t *testing.T) {
	for _, test := range []struct {
		in         string
		max        int
		characters string
		bytes      string
	}{
		{"", 0, "", ""},
		{"", 3, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abcd", 3, "abc…", "abc…"},
		{"äöü", 3, "äöü", "ä…"},
		{"äöüß", 3, "äöü…", "ä…"},
		{"äöü", 4, "äöü", "äö…"},
		{"漢字", 0, "…", "…"},
		{"漢字", 2, "漢字", "…"},
		{"a\xff", 5, "a\xff", "a\uFFFD"},
	} {
		if got := Truncate(test.in, test.max); got != test.characters {
			t.Errorf("%q, %d characters: got %q, want %q", test.in, test.max, got, test.characters)
		}
		if got := TruncateBytes(test.in, test.max); got != test.bytes {
			t.Errorf("%q, %d bytes: got %q, want %q", test.in, test.max, got, test.bytes)
		}
	}
}
