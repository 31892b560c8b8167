// Package qrcode makes QR codes of links, for pages and terminals.
package qrcode

import (
	"fmt"
	"image/color"
	"strings"

	"github.com/boombuler/barcode/qr"
)

// quiet is the width of the light edge that scanners need, in modules (ISO/IEC 18004,
// section 9.1).
const quiet = 4

// Code is a QR code: a square of dark and light modules with its light edge.
type Code struct {
	Size int // the number of modules of a side
	dark func(x, y int) bool
}

// New returns the QR code of a text.
func New(text string) (*Code, error) {
	c, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return nil, fmt.Errorf("making a QR code: %w", err)
	}
	inner := c.Bounds().Dx()
	return &Code{Size: inner + 2*quiet, dark: func(x, y int) bool {
		x, y = x-quiet, y-quiet
		return x >= 0 && y >= 0 && x < inner && y < inner && color.GrayModel.Convert(c.At(x, y)).(color.Gray).Y == 0
	}}, nil
}

// Path returns the dark modules as the path of an SVG, in which a module is a unit wide.
func (c *Code) Path() string {
	var b strings.Builder
	for y := range c.Size {
		for x := 0; x < c.Size; x++ {
			from := x
			for c.dark(x, y) {
				x++
			}
			if n := x - from; n > 0 {
				fmt.Fprintf(&b, "M%d %dh%dv1h-%dz", from, y, n, n)
			}
		}
	}
	return b.String()
}
