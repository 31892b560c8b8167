package mail

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// SplitList splits a list of addresses at commas, semicolons and white space
// after an address, but not within quotes, and not within the name of an address.
func SplitList(s string) (items []string) {
	for _, item := range split(s, func(_ string, r rune) bool { return r == ',' || r == ';' }) {
		if hasOneAddress(item) {
			items = append(items, item)
			continue
		}
		items = append(items, split(item, func(before string, r rune) bool { return unicode.IsSpace(r) && endsInAddress(before) })...)
	}
	return items
}

// split splits s at the runes outside of quotes that are separators. before is the item that
// would end at the rune.
func split(s string, isSeparator func(before string, r rune) bool) (items []string) {
	start, quoted := 0, false
	for i, r := range s {
		switch {
		case r == '"' && (i == 0 || s[i-1] != '\\'):
			quoted = !quoted
		case !quoted && isSeparator(s[start:i], r):
			items = append(items, s[start:i])
			start = i + utf8.RuneLen(r)
		}
	}
	return append(items, s[start:])
}

// hasOneAddress reports whether s ends with an address in angle brackets and contains no other, so
// that the text before it is its name, as in Ops @ Home <jo@example.com>.
func hasOneAddress(s string) bool {
	name, bracketed, ok := strings.Cut(strings.TrimSpace(s), "<")
	if !ok || strings.Contains(bracketed, "<") || !strings.HasSuffix(bracketed, ">") {
		return false
	}
	return !slices.ContainsFunc(strings.Fields(name), func(word string) bool {
		_, ok := ParseAddress(word)
		return ok
	})
}

// endsInAddress reports whether a text seems to end in an address.
func endsInAddress(s string) bool {
	s = s[strings.LastIndexFunc(s, unicode.IsSpace)+1:]
	return strings.Contains(strings.Trim(s, "@"), "@")
}

// ParseList reads addresses that [CheckAddress] has checked.
func ParseList(list []string) []Address {
	out := make([]Address, len(list))
	for i, s := range list {
		out[i], _ = ParseAddress(s)
	}
	return out
}

// List binds a list of addresses to a parameter.
func List(s *notifier.Schema, v *[]string, name, doc string) *notifier.Param {
	return s.List(v, name, doc).Split(SplitList).Normalize(CheckAddress)
}

// Copies is [List] for a list that a message can do without, such as the recipients of copies: all
// of its addresses may be invalid.
func Copies(s *notifier.Schema, v *[]string, name, doc string) *notifier.Param {
	return List(s, v, name, doc).DropInvalid()
}

// Without returns the addresses of list that are not in others, each once.
// Names are ignored.
func Without(list, others []Address) (out []Address) {
	for _, a := range list {
		same := func(o Address) bool { return o.Address == a.Address }
		if !slices.ContainsFunc(others, same) && !slices.ContainsFunc(out, same) {
			out = append(out, a)
		}
	}
	return out
}

// Addresses returns the addresses without their names.
func Addresses(list []Address) []string {
	out := make([]string, len(list))
	for i, a := range list {
		out[i] = a.Address
	}
	return out
}

// Headers returns the addresses for header fields, see [Address.Header].
func Headers(list []Address) []string {
	out := make([]string, len(list))
	for i, a := range list {
		out[i] = a.Header()
	}
	return out
}
