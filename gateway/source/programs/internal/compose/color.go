package compose

import (
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// ParseColor returns the value of a colour such as #A32037 or #F00, or -1 if s is not
// a colour.
func ParseColor(s string) int64 {
	s = strings.TrimPrefix(strings.TrimSpace(s), "#")
	if len(s) == 3 {
		s = s[:1] + s[:1] + s[1:2] + s[1:2] + s[2:] + s[2:]
	}
	n, err := strconv.ParseInt(s, 16, 64)
	if err != nil || len(s) != 6 {
		return -1
	}
	return n
}

// TypeOfColor returns the type for a colour: failure for red, warning for orange and
// yellow, success for green, and "" for any other colour.
func TypeOfColor(color int64) notifier.Type {
	if color < 0 || color > 0xFFFFFF {
		return ""
	}
	r, g, b := float64(color>>16), float64(color>>8&0xFF), float64(color&0xFF)
	high, low := max(r, g, b), min(r, g, b)
	if high-low < 50 { // grey
		return ""
	}
	var hue float64 // in degrees
	switch high {
	case r:
		hue = 60 * (g - b) / (high - low)
	case g:
		hue = 60 * (2 + (b-r)/(high-low))
	default:
		hue = 60 * (4 + (r-g)/(high-low))
	}
	if hue < 0 {
		hue += 360
	}
	switch {
	case hue < 20 || hue >= 340:
		return notifier.Failure
	case hue < 70:
		return notifier.Warning
	case hue >= 80 && hue < 175:
		return notifier.Success
	}
	return ""
}
