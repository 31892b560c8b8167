package appicon

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"testing"
)

// TestIcons checks the size and the colours of the pictures where the bell is and
// where it is not, at the places that the path of SVG has.
func TestIcons(t *testing.T) {
	blue, white, none := color.RGBA{0x1f, 0x77, 0xc9, 0xff}, color.RGBA{0xff, 0xff, 0xff, 0xff}, color.RGBA{}
	for _, c := range []struct {
		name   string
		data   []byte
		size   int
		units  float64
		margin float64
		back   color.RGBA
	}{
		{"192", PNG(192), 192, 26, 5, blue},
		{"512", PNG(512), 512, 26, 5, blue},
		{"badge", Badge(96), 96, 16, 0, none},
	} {
		picture, err := png.Decode(bytes.NewReader(c.data))
		if err != nil {
			t.Fatal(err)
		}
		if got := picture.Bounds(); got != image.Rect(0, 0, c.size, c.size) {
			t.Errorf("%s is %v", c.name, got)
		}
		at := func(x, y float64) color.Color {
			scale := float64(c.size) / c.units
			return color.RGBAModel.Convert(picture.At(int(math.Floor((x+c.margin)*scale)), int(math.Floor((y+c.margin)*scale))))
		}
		for _, p := range [][2]float64{{8, 1.5}, {8, 6}, {4, 6}, {12, 6}, {3, 11}, {13, 11}, {8, 14}} {
			if got := at(p[0], p[1]); got != white {
				t.Errorf("%s: the bell is %v at %v", c.name, got, p)
			}
		}
		for _, p := range [][2]float64{{.5, .5}, {15.5, 15.5}, {3, 5}, {13, 5}, {8, 12.3}, {5, 14}, {11, 14}} {
			if got := at(p[0], p[1]); got != c.back {
				t.Errorf("%s: the background is %v at %v", c.name, got, p)
			}
		}
	}
	if !strings.Contains(SVG, `fill="#1f77c9"`) {
		t.Error("the SVG has another colour than the pictures")
	}
}
