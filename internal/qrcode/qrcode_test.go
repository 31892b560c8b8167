package qrcode

import (
	"fmt"
	"strings"
	"testing"

	"github.com/boombuler/barcode/qr"
)

// TestPath draws the path, and compares it with what the library draws.
func TestPath(t *testing.T) {
	const text = "https://alerts.example.com/notify/ops?invite=4bqyyn4yk2v6d7n2ujqvtbd3ga"
	c, err := New(text)
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[[2]int]bool{}
	for part := range strings.SplitSeq(strings.TrimSuffix(c.Path(), "z"), "z") {
		var x, y, n, back int
		if _, err := fmt.Sscanf(part, "M%d %dh%dv1h-%d", &x, &y, &n, &back); err != nil || n != back {
			t.Fatalf("%q: %v", part, err)
		}
		for i := range n {
			drawn[[2]int{x + i, y}] = true
		}
	}
	want, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		t.Fatal(err)
	}
	if c.Size != want.Bounds().Dx()+8 {
		t.Errorf("the code is %d wide", c.Size)
	}
	for y := range c.Size {
		for x := range c.Size {
			dark := false
			if inner := want.Bounds().Dx(); x >= 4 && y >= 4 && x < inner+4 && y < inner+4 {
				r, _, _, _ := want.At(x-4, y-4).RGBA()
				dark = r == 0
			}
			if drawn[[2]int{x, y}] != dark {
				t.Fatalf("the module at %d, %d is wrong", x, y)
			}
		}
	}
}

// TestTooLong checks that a text that no code can hold is refused.
func TestTooLong(t *testing.T) {
	if _, err := New(strings.Repeat("x", 3000)); err == nil {
		t.Error("it is accepted")
	}
}
