package appriseconfig

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// The kinds of lines in a text file, apart from comments.
var (
	// [<tags>=]<url>, where a URL may begin with a variable
	urlLine = lazyregexp.New(`(?i)^(?:([a-z0-9, \t_:-]*)=)?\s*((?:[a-z0-9]{1,32}://|\$\{[a-z_][a-z0-9_]*\}).*)$`)
	// <groups>=<tags>
	groupLine = lazyregexp.New(`(?i)^([a-z0-9, \t_:-]*)=([a-z0-9, \t_-]*)$`)
	// include <location>
	includeLine = lazyregexp.New(`(?i)^include\s+(.+)$`)
)

func (f *file) parseText(text string) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || isComment(line) {
			continue
		}
		f.parseLine(n, line)
	}
}

func (f *file) parseLine(n int, line string) {
	if m := urlLine.FindStringSubmatch(line); m != nil {
		f.add(n, m[2], splitTags(m[1]))
	} else if m := groupLine.FindStringSubmatch(line); m != nil {
		f.addGroups(n, splitTags(m[1]), splitTags(m[2]))
	} else if m := includeLine.FindStringSubmatch(line); m != nil {
		f.includes = append(f.includes, include{m[1], n})
	} else {
		f.fail(n, "unknown line; write <url>, <tags>=<url>, <group>=<tags>, include <file> or # <comment>")
	}
}
