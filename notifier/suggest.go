package notifier

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/caddy-notify/caddy-notify/internal/similar"
)

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
	word, best := letters(name), similar.Distances{}
	for _, e := range registry.entries {
		for _, candidate := range append([]string{letters(e.schema.Name)}, e.schemes...) {
			best.Add(e.schemes[0], word, candidate)
		}
	}
	return best.Nearest()
}

// WithSuggestion returns err, the error of [Parse] for url, with similar schemes that the author of
// url may have meant. If the scheme of url exists, is retired, or no other is similar, it returns
// err itself.
func WithSuggestion(url string, err error) error {
	scheme, _, ok := strings.Cut(strings.TrimSpace(url), "://")
	if !ok || SchemesOf(scheme) != nil || Retired(scheme) != nil || len(scheme) > 32 ||
		strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https") {
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
	best := similar.Distances{}
	for _, e := range registry.entries {
		if e.schema.templates[0].Address != "" {
			continue // no URL begins so
		}
		for _, scheme := range e.schemes {
			best.Add(scheme, strings.ToLower(word), scheme)
		}
		best.Add(e.schemes[0], letters(word), letters(e.schema.Name))
	}
	return best.Nearest()
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
