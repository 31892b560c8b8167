package markup

import "testing"

func TestLines(t *testing.T) {
	for in, want := range map[string]struct{ one, first string }{
		"":                   {"", ""},
		"a":                  {"a", "a"},
		"\r\na\nb\r\nc\rd\n": {"a b c d", "a"},
		" \n a \n\nb":        {"   a   b", "a"},
	} {
		if got := OneLine(in); got != want.one {
			t.Errorf("OneLine(%q) = %q, want %q", in, got, want.one)
		}
		if got := FirstLine(in); got != want.first {
			t.Errorf("FirstLine(%q) = %q, want %q", in, got, want.first)
		}
	}
	if got := JoinLines("", "a", "", "b", ""); got != "a\nb" {
		t.Errorf("JoinLines = %q", got)
	}
}

// TestPrintable checks that a text from others cannot move the cursor of a terminal,
// hide a part of itself, or show itself in another order.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		"refused: quota":                  "refused: quota",
		"Grüße 日本 👍🏽":                     "Grüße 日本 👍🏽",
		"a\nb\r\nc\td":                    "a b c d",
		"\x1b[2J\x1b]0;title\aok\x7f\x00": "[2J]0;titleok",
		"a\u009b31mb\u0085c":              "a31mbc",
		"a\u2028b\u2029c":                 "a b c",
		"\u200e\u200f\u061ca\u202a\u202b\u202c\u202d\u202eb\u2066\u2067\u2068\u2069c": "abc",
	} {
		if got := Printable(in); got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
}
