package markup

import (
	"strings"
	"sync"

	"github.com/yuin/goldmark-emoji/definition"
)

// emojiNames builds the table when it is first needed. Most programs never use
// it.
var emojiNames = sync.OnceValue(func() definition.Emojis { return definition.Github() })

// maxEmojiName is a limit for the length of a name in bytes, longer than any.
const maxEmojiName = 64

// ReplaceEmojis replaces names of emojis between colons, such as :smile: and
// :+1:, by the emojis. The names are those of GitHub, in any case. Unknown
// names are kept.
func ReplaceEmojis(s string) string {
	if strings.Count(s, ":") < 2 {
		return s
	}
	var b strings.Builder
	for {
		start := strings.IndexByte(s, ':')
		if start < 0 {
			break
		}
		b.WriteString(s[:start])
		s = s[start:]
		chars, size := leadingEmoji(s)
		if size == 0 {
			chars, size = s[:1], 1
		}
		b.WriteString(chars)
		s = s[size:]
	}
	b.WriteString(s)
	return b.String()
}

// leadingEmoji returns the emoji whose name s begins with, and the size of the
// name and its colons in bytes. The size is 0 if there is no such name.
func leadingEmoji(s string) (chars string, size int) {
	for i := 1; i < len(s) && i <= maxEmojiName; i++ {
		c := s[i]
		if c == ':' {
			e, ok := emojiNames().Get(strings.ToLower(s[1:i]))
			if !ok || !e.IsUnicode() {
				return "", 0
			}
			return string(e.Unicode), i + 1
		}
		if !isLetter(c) && (c < '0' || c > '9') && c != '_' && c != '-' && c != '+' {
			return "", 0
		}
	}
	return "", 0
}
