// Package similar finds the names that somebody may have meant who has misspelled one.
package similar

import (
	"slices"
	"strings"
)

// maxSimilar bounds the suggestions for one word.
const maxSimilar = 3

// Names returns up to three of names that are similar to word, the most
// similar first.
func Names(word string, names []string) []string {
	best := Distances{}
	for _, name := range names {
		best.Add(name, word, name)
	}
	return best.Nearest()
}

// Hint says which of names somebody may have meant who wrote word. If none is similar, it returns
// otherwise.
func Hint(word string, names []string, otherwise string) string {
	if near := Names(word, names); len(near) > 0 {
		return "you may mean " + strings.Join(near, " or ")
	}
	return otherwise
}

// Distances holds the smallest distance to a word found for each name.
type Distances map[string]int

// Add records the distance between word and spelling for a name that is also spelled so, if
// they are similar.
func (d Distances) Add(name, word, spelling string) {
	n, similar := distance(word, spelling)
	if !similar {
		return
	}
	if old, ok := d[name]; !ok || n < old {
		d[name] = n
	}
}

// Nearest returns up to three names with the smallest distances, the smallest first.
func (d Distances) Nearest() []string {
	var out []string
	for name := range d {
		out = append(out, name)
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
// neighbours that have changed places count once. It reports whether they are similar enough
// for one to be a misspelling of the other. A beginning or part of a name counts as similar.
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
