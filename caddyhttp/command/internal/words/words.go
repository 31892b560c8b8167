// Package words has counts, numbers and indented lines for what the commands of caddy notify
// print.
package words

import (
	"fmt"
	"strings"
)

// Indent puts spaces before each line of text that is not empty.
func Indent(text, spaces string) string {
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	for i, line := range lines {
		if line = strings.TrimRight(line, "\r"); line != "" {
			line = spaces + line
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n") + "\n"
}

// Numbered returns what and the number of the i-th of n, unless there is only one.
func Numbered(what string, i, n int) string {
	if n == 1 {
		return what
	}
	return fmt.Sprintf("%s %d of %d", what, i+1, n)
}

// Count returns "1 URL" or "2 URLs".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
