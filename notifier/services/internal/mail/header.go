package mail

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// AddressField returns addresses as the value of a header field.
func AddressField(list []Address) string {
	out := make([]string, len(list))
	for i, a := range list {
		out[i] = a.String()
		if name := EncodeText(a.Name); name != a.Name {
			out[i] = name + " <" + a.Address + ">"
		}
	}
	return strings.Join(out, ", ")
}

// EncodeText returns a text as the value of a header field, in one line. It uses
// encoded words (RFC 2047) if the text is not ASCII, looks like an encoded word
// or has words that are too long to fold.
func EncodeText(s string) string {
	s = OneLine(s)
	long := slices.ContainsFunc(strings.Fields(s), func(word string) bool { return len(word) > 400 })
	if IsASCII(s) && !strings.Contains(s, "=?") && !long {
		return s
	}
	const maxBytes = 45 // 60 characters when encoded; a word may have 75
	var words []string
	for s != "" {
		n := 0
		for n < len(s) {
			_, size := utf8.DecodeRuneInString(s[n:])
			if n+size > maxBytes {
				break
			}
			n += size
		}
		words = append(words, "=?utf-8?b?"+base64.StdEncoding.EncodeToString([]byte(s[:n]))+"?=")
		s = s[n:]
	}
	return strings.Join(words, " ")
}

// FoldField returns a header field, folded at spaces into lines of at most 78
// characters if possible (RFC 5322, section 2.2.3).
func FoldField(name, value string) string {
	var b strings.Builder
	b.WriteString(name + ":")
	column := len(name) + 1
	for i, word := range strings.Split(value, " ") {
		if i > 0 && word != "" && column+1+len(word) > 78 {
			b.WriteString("\r\n")
			column = 0
		}
		b.WriteString(" " + word)
		column += 1 + len(word)
	}
	return b.String() + "\r\n"
}

// IsASCII reports whether s has ASCII characters only.
func IsASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}
