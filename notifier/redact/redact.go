// Package redact masks secrets in texts that a server or a library wrote, such
// as error messages and answers. It finds a secret also if it is escaped or
// encoded.
package redact

import (
	"cmp"
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

// maxDepth is the maximum number of nested escapes within which a secret is
// found, such as JSON within JSON, or percent escapes of percent escapes.
const maxDepth = 3

// NewMasker returns a Masker for secrets. It ignores secrets shorter than 4
// bytes: they would match ordinary words. Secrets of 4 to 7 letters and digits are
// masked where they are whole words: "pass" leaves "the password is wrong" alone.
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
			for range maxDepth {
				plain, offsets := unescape(escaped)
				if len(plain) < minSecret {
					break
				}
				search.add(plain)
				if offsets == nil {
					break
				}
				escaped = plain
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
// literals, up to three times; and within base64, where it replaces the whole
// encoded word up to a slash. The time it takes grows with the length of text,
// not with the number of secrets.
func (m *Masker) Mask(text string) string {
	if m.search.shortest == 0 {
		return text
	}
	return replace(text, m.find(text))
}

// MaskPrefix returns the first n bytes of text with each secret masked, also one
// that begins before the cut and ends after it. It reads no more of text than
// it needs for that.
func (m *Masker) MaskPrefix(text string, n int) string {
	if len(text) <= n {
		return m.Mask(text)
	}
	if m.search.shortest == 0 {
		return text[:n]
	}
	var spans []span
	for _, s := range m.find(text[:min(len(text), n+maxEscape*m.search.longest)]) {
		if s.start < n {
			spans = append(spans, span{s.start, min(s.end, n)})
		}
	}
	return replace(text[:n], spans)
}

// maxEscape is the maximum number of bytes that an escaped byte of a secret may
// take for MaskPrefix to find it. A byte that JSON escapes within JSON takes up
// to 13.
const maxEscape = 16

// find returns the spans of text to mask, in no particular order.
func (m *Masker) find(text string) []span {
	secrets := m.search.find(text)
	var origins []int // of the bytes of plain in text
	plain := text
	for range maxDepth {
		next, offsets := unescape(plain)
		if offsets == nil || next == plain {
			break
		}
		if origins != nil {
			for i, o := range offsets {
				offsets[i] = origins[o]
			}
		}
		plain, origins = next, offsets
		for _, s := range m.search.find(plain) {
			secrets = append(secrets, span{origins[s.start], origins[s.end]})
		}
	}
	return secrets
}

// replace returns text with one [Mask] in place of each group of overlapping
// spans.
func replace(text string, spans []span) string {
	if len(spans) == 0 {
		return text
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
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
