package markup

import (
	"slices"
	"strings"
)

var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

// OneLine returns s without line breaks at its ends and with a space for each
// other one. Titles become mail subjects and headers, which have one line.
func OneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return lineBreaks.Replace(strings.Trim(s, "\r\n"))
}

// FirstLine returns the first line of s that is not blank, trimmed.
func FirstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(s)
}

// JoinLines joins the lines that are not empty.
func JoinLines(lines ...string) string {
	return strings.Join(slices.DeleteFunc(lines, func(s string) bool { return s == "" }), "\n")
}
