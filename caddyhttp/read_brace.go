package caddyhttp

import (
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// braceHint returns the end of an error of the Caddyfile adapter that says where a } may be
// missing, or "" if none is. Caddy's own error names the line at which it noticed, which is
// often the last one.
func braceHint(text []byte, file string) string {
	line, ok := missingBrace(text, file)
	if !ok {
		return ""
	}
	return fmt.Sprintf("; a } is missing for the block that begins in line %d", line)
}

// missingBrace returns the line of a block without an end, and reports whether there is one.
// If several could be it, it is the one that the } of another block would end if the
// indentation counted.
func missingBrace(text []byte, file string) (line int, ok bool) {
	tokens, err := caddyfile.Tokenize(text, file)
	if err != nil {
		return 0, false
	}
	lines := strings.Split(string(text), "\n")
	indent := func(line int) int {
		if line < 1 || line > len(lines) {
			return 0
		}
		return len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " \t"))
	}
	var open []int // the lines of the blocks that have not ended
	suspect := 0   // the line of a block that a } with less indentation has ended
	for _, t := range tokens {
		switch {
		case t.Quoted():
		case t.Text == "{":
			open = append(open, t.Line)
		case t.Text == "}" && len(open) > 0:
			last := open[len(open)-1]
			if suspect == 0 && last != t.Line && indent(last) > indent(t.Line) {
				suspect = last
			}
			open = open[:len(open)-1]
		}
	}
	switch {
	case len(open) == 0:
		return 0, false
	case suspect > 0:
		return suspect, true
	}
	return open[len(open)-1], true
}
