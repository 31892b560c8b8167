package command

import (
	"fmt"
	"strings"
)

// indent puts spaces before each line of text that is not empty.
func indent(text, spaces string) string {
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	for i, line := range lines {
		if line = strings.TrimRight(line, "\r"); line != "" {
			line = spaces + line
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n") + "\n"
}

// numbered returns what and the number of the i-th of n, unless there is only one.
func numbered(what string, i, n int) string {
	if n == 1 {
		return what
	}
	return fmt.Sprintf("%s %d of %d", what, i+1, n)
}

// count returns "1 URL" or "2 URLs".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
