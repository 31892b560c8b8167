package notifier

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
)

// disguises are the secrets of a destination in the spellings in which they
// may turn up in an error or an answer.
type disguises struct {
	texts   []string // the longest first
	encoded []string // what base64 makes of a secret within a longer text
}

// disguisesOf leaves out what is shorter than four characters: it gives nothing
// away and would mask half of every sentence.
func disguisesOf(secrets []string) *disguises {
	d := new(disguises)
	for _, s := range secrets {
		if len(s) < 4 {
			continue
		}
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
		spellings := []string{
			s, quoted, strings.ReplaceAll(quoted, "/", `\/`), html.EscapeString(s),
			url.QueryEscape(s), url.PathEscape(s), escapeUser(s), escapeSegment(s),
			base64.StdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)),
		}
		if b, err := json.Marshal(s); err == nil {
			spellings = append(spellings, string(b[1:len(b)-1]))
		}
		for _, v := range spellings {
			if !slices.Contains(d.texts, v) {
				d.texts = append(d.texts, v)
			}
		}
		d.encoded = append(d.encoded, encodedWithin(s)...)
	}
	slices.SortFunc(d.texts, func(a, b string) int { return len(b) - len(a) })
	return d
}

// encodedWithin lists what base64 makes of s as a part of something longer,
// such as the user's name and password of HTTP Basic authentication: the
// characters that depend on s alone, for each place in which s may begin.
func encodedWithin(s string) (out []string) {
	const short = 6 // what is shorter may stand anywhere by chance
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift, skip := range []int{0, 2, 3} {
			text := encoding.EncodeToString(append(make([]byte, shift), s...))
			if text = text[skip : (shift+len(s))*8/6]; len(text) >= short && !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}

// redact masks the destination's secrets in a text.
func (d *Destination) redact(text string) string {
	d.masking.Do(func() { d.disguises = disguisesOf(d.schema.secrets()) })
	for _, s := range d.disguises.texts {
		text = strings.ReplaceAll(text, s, mask)
	}
	for _, s := range d.disguises.encoded {
		text = maskWords(text, s)
	}
	return text
}

// maskWords masks each word of base64 that s is a part of.
func maskWords(text, s string) string {
	plain := func(r rune) bool {
		switch {
		case r >= '0' && r <= '9', r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', strings.ContainsRune("+/-_=", r):
			return false
		}
		return true
	}
	for {
		before, after, found := strings.Cut(text, s)
		if !found {
			return text
		}
		before = before[:strings.LastIndexFunc(before, plain)+1]
		if end := strings.IndexFunc(after, plain); end >= 0 {
			after = after[end:]
		} else {
			after = ""
		}
		text = before + mask + after
	}
}
