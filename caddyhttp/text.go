package caddyhttp

import (
	"slices"
	"strings"
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
