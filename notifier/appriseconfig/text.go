package appriseconfig

import (
	"regexp"
	"strings"
)

// The kinds of lines in a text file, apart from comments.
var (
	// [<tags>=]<url>
	urlLine = regexp.MustCompile(`(?i)^(?:([a-z0-9, \t_:-]*)=)?\s*([a-z0-9]{1,32}://.*)$`)
	// <groups>=<tags>
	groupLine = regexp.MustCompile(`(?i)^([a-z0-9, \t_:-]*)=([a-z0-9, \t_-]*)$`)
	// include <location>
	includeLine = regexp.MustCompile(`(?i)^include\s+(.+)$`)
)

func (f *file) parseText(text string) error {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || isComment(line) {
			continue
		}
		if err := f.parseLine(n, line); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) parseLine(n int, line string) error {
	if m := urlLine.FindStringSubmatch(line); m != nil {
		return f.add(n, m[2], splitTags(m[1]))
	}
	if m := groupLine.FindStringSubmatch(line); m != nil {
		return f.addGroups(n, splitTags(m[1]), splitTags(m[2]))
	}
	if m := includeLine.FindStringSubmatch(line); m != nil {
		f.includes = append(f.includes, include{m[1], n})
		return nil
	}
	return f.mistake(n, "unknown line; write <url>, <tags>=<url>, <group>=<tags>, include <file> or # <comment>")
}
