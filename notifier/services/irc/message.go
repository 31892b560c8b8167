package irc

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// message is a line of the server (RFC 2812, section 2.3.1).
type message struct {
	source  string // who says it
	command string // a word or three digits
	params  []string
}

func parseMessage(text string) (l message) {
	text = strings.TrimRight(text, "\r\n")
	if strings.HasPrefix(text, "@") { // tags of IRCv3
		_, text, _ = strings.Cut(text, " ")
	}
	if rest, ok := strings.CutPrefix(text, ":"); ok {
		l.source, text, _ = strings.Cut(rest, " ")
	}
	text, last, hasLast := strings.Cut(text, " :")
	words := strings.Fields(text)
	if len(words) > 0 {
		l.command, l.params = strings.ToUpper(words[0]), words[1:]
	}
	if hasLast {
		l.params = append(l.params, last)
	}
	return l
}

func (l message) last() string {
	if len(l.params) == 0 {
		return ""
	}
	return l.params[len(l.params)-1]
}

// isError says whether the line is a numeric reply from 400 to 599, which
// mean errors, but for the lack of a message of the day.
func (l message) isError() bool {
	return len(l.command) == 3 && (l.command[0] == '4' || l.command[0] == '5') && l.command != "422"
}

func (l message) reason() string {
	if !l.isError() {
		return l.last()
	}
	return fmt.Sprintf("%s (%s)", l.last(), l.command)
}

// maxText is how many bytes of name and text fit into a line as others
// receive it: 512 with a line break (RFC 2812, section 2.3), the command and
// our nickname, user and host, of which we know no more than that they take
// some 110 bytes at most.
const maxText = 380

// splitLines is a text as lines of at most so many bytes, without those that
// are empty, which IRC cannot carry. NUL may not occur, and \x01 would make a
// command to the reader's program of a line.
func splitLines(text string, size int) (lines []string) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "", "\x01", "").Replace(text)
	for line := range strings.SplitSeq(text, "\n") {
		for len(line) > size {
			end := strings.LastIndexByte(line[:size+1], ' ')
			if end <= 0 {
				for end = size; end > 1 && !utf8.RuneStart(line[end]); {
					end--
				}
			}
			lines = append(lines, line[:end])
			line = strings.TrimPrefix(line[end:], " ")
		}
		if strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
