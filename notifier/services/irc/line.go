package irc

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// serverLine is a line from the server, a message in RFC 2812, section 2.3.1.
type serverLine struct {
	source  string // the sender
	command string // a word or three digits
	params  []string
}

func parseLine(text string) (l serverLine) {
	text = strings.TrimRight(text, "\r\n")
	if strings.HasPrefix(text, "@") { // message tags (IRCv3)
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

// last returns the last parameter, or "" if there is none.
func (l serverLine) last() string {
	if len(l.params) == 0 {
		return ""
	}
	return l.params[len(l.params)-1]
}

// isError reports whether the line is an error reply, 400 to 599. Reply 422
// (no message of the day) is not an error for us.
func (l serverLine) isError() bool {
	return len(l.command) == 3 && (l.command[0] == '4' || l.command[0] == '5') && l.command != "422"
}

// reason returns the text of the line, and the number of an error reply.
func (l serverLine) reason() string {
	if !l.isError() {
		return l.last()
	}
	return fmt.Sprintf("%s (%s)", l.last(), l.command)
}

// maxText is the maximum length of the name of the target and a line of text together, in bytes.
// Others receive at most 512 bytes with the line break (RFC 2812, section 2.3), which include the
// command and our nickname, user and host. The length of these is unknown to us, but they need less
// than 110 bytes.
const maxText = 380

// splitLines splits a text into lines of at most size bytes, at spaces if
// possible. It leaves out empty lines, which IRC cannot send, NUL, which must
// not occur, and \x01, which would turn a line into a command to the reader's
// program (CTCP).
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
