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
