package caddyhttp

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// joinLines joins the lines that are not empty.
func joinLines(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "\n")
}

// firstLine returns the first line of s, trimmed.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(s)
}

// oneLine joins lines with spaces.
var oneLine = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// joinTitle returns a title as one line.
func joinTitle(title string) string { return oneLine.Replace(strings.Trim(title, "\r\n")) }

// truncate returns s, or its first max bytes and an ellipsis. The result is
// UTF-8.
func truncate(s string, max int) string {
	if len(s) > max {
		for max > 0 && !utf8.RuneStart(s[max]) {
			max--
		}
		s = s[:max] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
