// Package redact masks secrets in texts that a server or a library wrote, such
// as error messages and answers. It finds a secret also if it is escaped or
// encoded.
package redact

import (
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
)

// Mask is the text that replaces a secret.
const Mask = "xxxxx"

// minSecret is the length in bytes of the shortest secret that is masked.
// Shorter ones would match ordinary words.
const minSecret = 4

// Masker replaces secrets in texts. It may be used concurrently.
type Masker struct{ search *searcher }

// NewMasker returns a Masker for secrets. It ignores secrets shorter than 4
// bytes: they would match ordinary words.
func NewMasker(secrets []string) *Masker {
	search := newSearcher()
	for _, secret := range secrets {
		if len(secret) < minSecret {
			continue
		}
		search.add(secret)
		// Mask searches a text also with its escapes decoded. If the secret
		// itself contains something that looks like an escape, decoding
		// changes it, in a way that depends on how the text escapes it.
		for _, escaped := range []string{
			secret, strings.ReplaceAll(secret, `\`, `\\`), jsonEscape(secret), html.EscapeString(secret), url.QueryEscape(secret),
		} {
			if plain, _ := unescape(escaped); len(plain) >= minSecret {
				search.add(plain)
			}
		}
	}
	search.link()
	return &Masker{search}
}

// jsonEscape returns s as it is written within a JSON string.
func jsonEscape(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b[1 : len(b)-1])
}

// Mask returns text with each secret replaced by "xxxxx". It finds a secret as
// it is; with some or all characters escaped as in URLs, HTML, JSON or string
// literals; and within base64, where it replaces the whole encoded word up to
// a slash. The time it takes grows with the length of text, not with the
// number of secrets.
func (m *Masker) Mask(text string) string {
	if m.search.shortest == 0 {
		return text
	}
	secrets := m.search.find(text)
	if plain, offsets := unescape(text); offsets != nil {
		for _, s := range m.search.find(plain) {
			secrets = append(secrets, span{offsets[s.start], offsets[s.end]})
		}
	}
	return replace(text, secrets)
}

// replace returns text with one [Mask] in place of each group of overlapping
// spans.
func replace(text string, spans []span) string {
	if len(spans) == 0 {
		return text
	}
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	var b strings.Builder
	end := 0
	for _, s := range spans {
		if s.start >= end {
			b.WriteString(text[end:s.start] + Mask)
		}
		end = max(end, s.end)
	}
	b.WriteString(text[end:])
	return b.String()
}
