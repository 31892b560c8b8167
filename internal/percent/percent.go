// Package percent encodes with percent escapes, and decodes them leniently.
package percent

import "strings"

// Decode returns s with its percent escapes decoded. A percent sign that does
// not begin an escape is kept (WHATWG URL, section 1.3). The result may be
// invalid UTF-8.
func Decode(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := Digit(s[i+1]), Digit(s[i+2]); hi >= 0 && lo >= 0 {
				b = append(b, byte(hi<<4|lo))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// DecodeText is like [Decode], but replaces invalid UTF-8 with U+FFFD.
func DecodeText(s string) string { return strings.ToValidUTF8(Decode(s), "\uFFFD") }

// Encode returns s with percent escapes for all bytes but unreserved characters (RFC 3986,
// section 2.3) and those in keep.
func Encode(s, keep string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			strings.IndexByte("-._~", c) >= 0, strings.IndexByte(keep, c) >= 0:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// Digit returns the value of a hexadecimal digit, or -1 if c is not one.
func Digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// DecodeForm returns s, a name or a value of a form, decoded as [Decode] does, with each
// plus sign as a space.
func DecodeForm(s string) string { return Decode(strings.ReplaceAll(s, "+", " ")) }
