package qrcode

import (
	"strings"
	"testing"
)

// TestTerminal reads the half blocks, and compares them with the modules.
func TestTerminal(t *testing.T) {
	c, err := New("https://alerts.example.com/notify/ops?invite=4bqyyn4yk2v6d7n2ujqvtbd3ga")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(c.Terminal(), "\n"), "\n")
	if len(lines) != (c.Size+1)/2 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		_, line, _ = strings.Cut(line, "m")
		modules := []rune(strings.TrimSuffix(line, "\x1b[0m"))
		if len(modules) != c.Size {
			t.Fatalf("line %d has %d modules", i, len(modules))
		}
		for x, r := range modules {
			up, down := strings.ContainsRune(" ▄", r), strings.ContainsRune(" ▀", r)
			if up != c.dark(x, 2*i) || 2*i+1 < c.Size && down != c.dark(x, 2*i+1) {
				t.Errorf("the modules at %d, %d are wrong", x, 2*i)
			}
		}
	}
}
