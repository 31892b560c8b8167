package markup

import (
	"strings"
	"unicode/utf8"
)

const ellipsis = "…"

// Truncate returns s, or its first max characters followed by an ellipsis if s
// is longer.
func Truncate(s string, max int) string {
	if len(s) <= max {
		return s
	}
	if n := Characters.index(s, max); n < len(s) {
		return s[:n] + ellipsis
	}
	return s
}

// TruncateBytes returns s, or as many of its characters as fit into max bytes
// followed by an ellipsis if s is longer. Invalid UTF-8 is replaced by U+FFFD.
// It is for limits of memory; [Truncate] is for limits of what people read.
func TruncateBytes(s string, max int) string {
	if len(s) > max {
		for max > 0 && !utf8.RuneStart(s[max]) {
			max--
		}
		s = s[:max] + ellipsis
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
