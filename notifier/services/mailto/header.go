package mailto

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// addressField lists addresses as a header field wants them.
func addressField(list []mail.Address) string {
	out := make([]string, len(list))
	for i, a := range list {
		out[i] = a.String()
		if name := encodeText(a.Name); name != a.Name {
			out[i] = name + " <" + a.Address + ">"
		}
	}
	return strings.Join(out, ", ")
}

// encodeText makes a text safe to be the value of a header field: one line,
// in encoded words (RFC 2047) unless it is ASCII, could not be mistaken for
// one of those and can be folded.
func encodeText(s string) string {
	s = mail.OneLine(s)
	long := slices.ContainsFunc(strings.Fields(s), func(word string) bool { return len(word) > 400 })
	if isASCII(s) && !strings.Contains(s, "=?") && !long {
		return s
	}
	const most = 45 // 60 of 75 characters when encoded
	var words []string
	for s != "" {
		n := 0
		for n < len(s) {
			_, size := utf8.DecodeRuneInString(s[n:])
			if n+size > most {
				break
			}
			n += size
		}
		words = append(words, "=?utf-8?b?"+base64.StdEncoding.EncodeToString([]byte(s[:n]))+"?=")
		s = s[n:]
	}
	return strings.Join(words, " ")
}

// foldField writes a header field in lines of at most 78 characters as far
// as the spaces in it allow (RFC 5322, section 2.2.3).
func foldField(name, value string) string {
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
