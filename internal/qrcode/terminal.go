package qrcode

import "strings"

// Terminal returns the code as lines of half blocks, two rows of modules a line. The
// modules are white on black and the reverse by escape sequences, because a scanner needs
// the dark ones to be dark in a dark terminal, too.
func (c *Code) Terminal() string {
	const on, off = "\x1b[38;5;231;48;5;16m", "\x1b[0m"
	var b strings.Builder
	for y := 0; y < c.Size; y += 2 {
		b.WriteString(on)
		for x := range c.Size {
			switch up, down := c.dark(x, y), c.dark(x, y+1) || y+1 == c.Size; {
			case up && down:
				b.WriteString(" ")
			case up:
				b.WriteString("▄")
			case down:
				b.WriteString("▀")
			default:
				b.WriteString("█")
			}
		}
		b.WriteString(off + "\n")
	}
	return b.String()
}
