package api

import (
	"strings"
	"testing"
)

func TestPrintable(t *testing.T) {
	for name, want := range map[string]string{"a.txt": "a.txt", "a\u202e\r\n.txt": "a.txt", strings.Repeat("x", 200): strings.Repeat("x", 100) + "…"} {
		if got := printable(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}
