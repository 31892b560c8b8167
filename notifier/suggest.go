package notifier

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxSimilar bounds the suggestions for one word.
const maxSimilar = 3

// FindService returns the service with a name or scheme, or nil if there is
// none. It ignores case, and in names also spaces and punctuation.
func FindService(name string) *ServiceInfo {
	found := registry.byScheme[strings.ToLower(name)]
	if word := letters(name); found == nil && word != "" {
		i := slices.IndexFunc(registry.entries, func(e *entry) bool { return letters(e.schema.Name) == word })
		if i >= 0 {
			found = registry.entries[i]
		}
	}
	if found == nil {
		return nil
	}
	info := found.info()
	return &info
}

// SimilarServices returns up to three services with a name or scheme similar to
// name, each as its first scheme, the most similar first.
func SimilarServices(name string) []string {
	word, best := letters(name), distances{}
	for _, e := range registry.entries {
		for _, candidate := range append([]string{letters(e.schema.Name)}, e.schemes...) {
			best.add(e.schemes[0], word, candidate)
		}
	}
	return best.nearest()
}

// WithSuggestion returns err, the error of [Parse] for url, with the schemes
// added that the author of url may have meant. If the scheme of url exists, is
// retired, or no other is similar, it returns err itself.
func WithSuggestion(url string, err error) error {
	scheme, _, ok := strings.Cut(strings.TrimSpace(url), "://")
	if !ok || SchemesOf(scheme) != nil || Retired(scheme) != nil || len(scheme) > 32 || strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https") {
		return err
	}
	if s := similarSchemes(scheme); len(s) > 0 {
		return fmt.Errorf("%w; you may mean %s://", err, strings.Join(s, ":// or "))
	}
	return err
}

// similarSchemes returns up to three schemes similar to word, the most similar
// first.
func similarSchemes(word string) []string {
	best := distances{}
	for _, e := range registry.entries {
		if e.schema.templates[0].address != "" {
			continue // no URL begins so
		}
		for _, scheme := range e.schemes {
			best.add(scheme, strings.ToLower(word), scheme)
		}
		best.add(e.schemes[0], letters(word), letters(e.schema.Name))
	}
	return best.nearest()
}

// Similar returns up to three of names that are similar to word, the most
// similar first.
func Similar(word string, names []string) []string {
	best := distances{}
	for _, name := range names {
		best.add(name, word, name)
	}
	return best.nearest()
}

// letters returns the letters and digits of a name, in lower case.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// distances holds the smallest distance to a word found for each scheme or name.
type distances map[string]int

// add records the distance between word and name under scheme if they are
// similar.
func (d distances) add(scheme, word, name string) {
	n, similar := distance(word, name)
	if !similar {
		return
	}
	if old, ok := d[scheme]; !ok || n < old {
		d[scheme] = n
	}
}

// nearest returns the schemes or names with the smallest distances.
func (d distances) nearest() []string {
	var out []string
	for scheme := range d {
		out = append(out, scheme)
	}
	slices.SortFunc(out, func(a, b string) int {
		if d[a] != d[b] {
			return d[a] - d[b]
		}
		return strings.Compare(a, b)
	})
	return out[:min(len(out), maxSimilar)]
}

// distance returns the Levenshtein distance between word and name, where two
// neighbours that have changed places count once, and reports whether they are similar enough for one to be a misspelling of the other. A
// beginning or part of a name counts as similar.
func distance(word, name string) (n int, similar bool) {
	a, b := []rune(word), []rune(name)
	if len(a) < 2 || len(a) > 64 {
		return 0, false
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for i := range a {
		copy(before, last)
		copy(last, row)
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			substitution := diagonal
			if a[i] != b[j] {
				substitution++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitution, row[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	n = row[len(b)]
	if len(a) > 2 && (strings.HasPrefix(name, word) || len(b) > 3 && strings.HasPrefix(word, name)) {
		return min(n, 1), true
	}
	if len(a) > 3 && strings.Contains(name, word) {
		return min(n, 2), true
	}
	return n, n <= min(2, len(a)/3)
}
