package notifier

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Found is a service that [Search] has found.
type Found struct {
	ServiceInfo

	// Reason is the matching text, as in: known for "gmail".
	Reason string `json:"reason"`
}

// Named returns the only service that a text can mean: the one with that name, or with that scheme.
// It returns nil if there is none, and for a scheme that people use as the word for a whole group,
// such as push.
func Named(text string) *ServiceInfo {
	text = strings.TrimSpace(text)
	if scheme, ok := strings.CutSuffix(text, "://"); ok {
		return FindService(scheme)
	}
	s := FindService(text)
	if s != nil && letters(s.Name) != letters(text) && isGroupWord(letters(text)) {
		return nil
	}
	return s
}

// isGroupWord reports whether the letters of a text are a word for a group.
func isGroupWord(text string) bool {
	for _, g := range groups {
		for _, w := range append([]string{string(g.group)}, g.words...) {
			if letters(w) == text {
				return true
			}
		}
	}
	return false
}

// maxSearch is the maximum length of a text to search for. No name is longer.
const maxSearch = 100

// Search returns the services for a text, the best first: by name, by the words of
// [Schema.Words], by scheme, and by group. A text of several words finds the
// services for which each word matches. Case, spaces and punctuation do not count.
func Search(text string) []Found {
	word := letters(text)
	if word == "" || len(text) > maxSearch {
		return nil
	}
	type ranked struct {
		Found
		rank int
	}
	var found []ranked
	for _, e := range registry.entries {
		rank, reason := e.search(word)
		if parts := splitWords(text); rank == 0 && len(parts) > 1 {
			rank, reason = e.searchAll(parts)
		}
		if rank > 0 {
			found = append(found, ranked{Found{e.info(), reason}, rank})
		}
	}
	slices.SortFunc(found, func(a, b ranked) int {
		return cmp.Or(a.rank-b.rank, strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)))
	})
	out := make([]Found, len(found))
	for i, f := range found {
		out[i] = f.Found
	}
	return out
}

// Ranks of matches, the best first. 0 means no match.
const (
	rankName = iota + 1
	rankWord
	rankScheme
	rankNameBegins // or one of its words
	rankWordBegins
	rankSchemeBegins
	rankGroup
	rankNameContains
	rankSeveral // added if each word matches, but not all together
)

// minInside is the minimum length of a text that is found inside a name.
const minInside = 3

// search returns how well the letters of a text match the service, and the matching text.
func (e *entry) search(text string) (rank int, reason string) {
	s := e.schema
	better := func(r int, why string) {
		if rank == 0 || r < rank {
			rank, reason = r, why
		}
	}
	const byName = "its name"
	switch name := letters(s.Name); {
	case name == text:
		return rankName, byName
	case beginsWord(s.Name, text):
		better(rankNameBegins, byName)
	case len(text) >= minInside && strings.Contains(name, text):
		better(rankNameContains, byName)
	}
	for _, w := range s.words {
		if letters(w) == text {
			better(rankWord, `known for "`+w+`"`)
		} else if beginsWord(w, text) {
			better(rankWordBegins, `known for "`+w+`"`)
		}
	}
	for _, scheme := range e.schemes {
		if scheme == text {
			better(rankScheme, "the scheme "+scheme+"://")
		} else if strings.HasPrefix(scheme, text) {
			better(rankSchemeBegins, "the scheme "+scheme+"://")
		}
	}
	for _, g := range groups {
		if !slices.Contains(s.groups, g.group) {
			continue
		}
		for _, w := range append([]string{string(g.group), g.title}, g.words...) {
			if len(text) >= minInside && beginsWord(w, text) {
				better(rankGroup, "the group "+g.title)
			}
		}
	}
	return rank, reason
}

// searchAll returns how well the service matches each of the words, and the reason of the worst
// match.
func (e *entry) searchAll(words []string) (rank int, reason string) {
	for _, w := range words {
		r, why := e.search(w)
		if r == 0 || r == rankNameContains {
			return 0, ""
		}
		if r+rankSeveral > rank {
			rank, reason = r+rankSeveral, why
		}
	}
	return rank, reason
}

// beginsWord reports whether the text from the beginning of one of the words of
// name begins with letters.
func beginsWord(name, text string) bool {
	words := splitWords(name)
	for i := range words {
		if strings.HasPrefix(strings.Join(words[i:], ""), text) {
			return true
		}
	}
	return false
}

// splitWords returns the words of a text in lower case, without spaces and
// punctuation.
func splitWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
