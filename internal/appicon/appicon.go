// Package appicon draws the icon of the app that a phone installs: the bell of the pages.
package appicon

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"

	"golang.org/x/image/vector"
)

// SVG is the icon: the bell on a square that systems may cut to a circle, because the
// bell is within its middle.
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-5 -5 26 26"><path fill="#1f77c9" ` +
	`d="M-5-5h26v26H-5z"/><path fill="#fff" d="M8 1a4.5 4.5 0 0 0-4.5 4.5c0 4-1.5 5-1.5 ` +
	`6h12c0-1-1.5-2-1.5-6A4.5 4.5 0 0 0 8 1zM6 13a2 2 0 0 0 4 0z"/></svg>`

// PNG returns the picture of SVG that is size pixels wide.
func PNG(size int) []byte { return drawIcon(size, 26, color.RGBA{0x1f, 0x77, 0xc9, 0xff}) }

// Badge returns the bell alone, size pixels wide. Android shows its shape in the colour
// of the system.
func Badge(size int) []byte { return drawIcon(size, 16, color.RGBA{}) }

// drawIcon returns a PNG with a white bell in the middle of a square, which is units
// wide in the units of SVG.
func drawIcon(size int, units float32, back color.RGBA) []byte {
	picture := image.NewRGBA(image.Rect(0, 0, size, size))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(back), image.Point{}, draw.Src)
	p := bellPen{vector.NewRasterizer(size, size), float32(size) / units, (units - 16) / 2}
	p.draw()
	p.Draw(picture, picture.Bounds(), image.White, image.Point{})
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}

// bellPen draws the bell, whose own square is 16 wide.
type bellPen struct {
	*vector.Rasterizer
	scale, margin float32
}

func (p bellPen) at(x, y float32) (a, b float32) {
	return (x + p.margin) * p.scale, (y + p.margin) * p.scale
}

func (p bellPen) move(x, y float32) { p.MoveTo(p.at(x, y)) }
func (p bellPen) line(x, y float32) { p.LineTo(p.at(x, y)) }

func (p bellPen) curve(x1, y1, x2, y2, x, y float32) {
	ax, ay := p.at(x1, y1)
	bx, by := p.at(x2, y2)
	cx, cy := p.at(x, y)
	p.CubeTo(ax, ay, bx, by, cx, cy)
}

// draw draws the path of SVG.
func (p bellPen) draw() {
	const quarter = 0.5523 // how far the control points of a quarter of a circle are from its ends
	const r, k = 4.5, 4.5 * quarter
	p.move(8, 1)
	p.curve(8-k, 1, 8-r, 1+r-k, 8-r, 1+r)
	p.curve(3.5, 9.5, 2, 10.5, 2, 11.5)
	p.line(14, 11.5)
	p.curve(14, 10.5, 12.5, 9.5, 8+r, 1+r)
	p.curve(8+r, 1+r-k, 8+k, 1, 8, 1)
	p.ClosePath()
	const s, j = 2, 2 * quarter
	p.move(6, 13)
	p.curve(6, 13+j, 8-j, 13+s, 8, 13+s)
	p.curve(8+j, 13+s, 10, 13+j, 10, 13)
	p.ClosePath()
}
