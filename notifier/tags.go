package notifier

import (
	"fmt"
	"slices"
	"strings"
)

// The limits of a tag expression. They also apply to the product that an AND of
// several ORs is expanded to.
const (
	maxTagTerms = 1024
	maxTagText  = 16 << 10 // bytes
	maxTagDepth = 8        // nested arrays
)

// Tags with a special meaning.
const (
	tagAll    = "all"    // in an expression: matches every destination
	tagAlways = "always" // of a destination: every expression matches it
)

// TagExpr is an expression that selects destinations by their tags. It is a
// list of groups and matches a destination that has all tags of at least one
// group. The zero TagExpr is empty and matches every destination.
type TagExpr struct {
	groups []tagGroup // sorted and unique; {"all"} alone if it is one of them
}

// A tagGroup is a sorted list of unique names in lower case.
type tagGroup []string

// TagError is returned when a tag expression is invalid. Its text is a sentence
// for the client.
type TagError struct{ reason string }

func (e *TagError) Error() string { return e.reason }

func tagErrorf(format string, args ...any) error {
	return &TagError{fmt.Sprintf(format, args...)}
}

// ParseTags parses a tag expression: nil, a string or a []any of strings and
// arrays, as encoding/json decodes it.
//
// In a string, a comma or | is OR; white space, + and & are AND and bind
// tighter: "ops db, admins" is (ops AND db) OR admins. An array is the OR of its
// elements, an array in an array is the AND of its elements, and each string in
// them is an expression. A string without names is the empty expression. Case
// is ignored.
//
// The error is a [*TagError].
func ParseTags(v any) (TagExpr, error) {
	var groups []tagGroup
	var err error
	switch v := v.(type) {
	case nil:
	case string:
		groups, err = parseTagText(v)
	case []any:
		groups, err = parseTagArray(v, 1)
	default:
		err = tagErrorf("a tag must be a text or an array of texts")
	}
	if err != nil {
		return TagExpr{}, err
	}
	return TagExpr{canonicalTags(groups)}, nil
}

// parseTagArray parses an array. The outermost, at depth 1, is the OR of its
// elements; all others are the AND.
func parseTagArray(array []any, depth int) ([]tagGroup, error) {
	if depth > maxTagDepth {
		return nil, tagErrorf("tags may be nested at most %d arrays deep", maxTagDepth)
	}
	if len(array) > maxTagTerms {
		return nil, errTagTerms()
	}
	var result []tagGroup
	for _, v := range array {
		var groups []tagGroup
		var err error
		switch v := v.(type) {
		case string:
			groups, err = parseTagText(v)
		case []any:
			groups, err = parseTagArray(v, depth+1)
		default:
			err = tagErrorf("an array of tags may hold texts and arrays of texts only")
		}
		if err != nil {
			return nil, err
		}
		if depth == 1 {
			result = append(result, groups...)
		} else {
			result = andTags(result, groups)
		}
		if err := checkTagSize(result); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// andTags returns the AND of a and b as a list of groups. An empty operand is
// ignored. The result stops growing once it exceeds the limits; [checkTagSize]
// then refuses it.
func andTags(a, b []tagGroup) []tagGroup {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	var product []tagGroup
	terms := 0
	for _, x := range a {
		for _, y := range b {
			group := canonicalGroup(slices.Concat(x, y))
			product = append(product, group)
			if terms += len(group); terms > maxTagTerms {
				return product
			}
		}
	}
	return product
}

func checkTagSize(groups []tagGroup) error {
	terms, text := 0, 0
	for _, g := range groups {
		terms += len(g)
		for _, name := range g {
			text += len(name) + 1
		}
	}
	if terms > maxTagTerms {
		return errTagTerms()
	}
	if text > maxTagText {
		return errTagText()
	}
	return nil
}

func errTagTerms() error {
	return tagErrorf("a tag expression may hold at most %d tags", maxTagTerms)
}

func errTagText() error {
	return tagErrorf("a tag expression may be at most %d KiB long", maxTagText>>10)
}

// parseTagText parses an expression in a string.
func parseTagText(text string) ([]tagGroup, error) {
	if len(text) > maxTagText {
		return nil, errTagText()
	}
	for _, r := range text {
		if !strings.ContainsRune(",|+& \t\r\n\v\f_-", r) && !isTagAlnum(r) {
			return nil, tagErrorf("a tag expression may not hold the character %q; use letters, digits, - and _ for names, a comma for OR and a space for AND", r)
		}
	}
	var groups []tagGroup
	for _, or := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '|' }) {
		var group tagGroup
		for _, name := range strings.FieldsFunc(or, func(r rune) bool { return strings.ContainsRune("+& \t\r\n\v\f", r) }) {
			if !ValidTag(name) {
				return nil, tagErrorf("a tag must begin with a letter or a digit, not with %q", name[:1])
			}
			group = append(group, strings.ToLower(name))
		}
		if len(group) > 0 {
			groups = append(groups, canonicalGroup(group))
		}
	}
	return groups, checkTagSize(groups)
}

// canonicalGroup sorts the names and removes those without effect. It may change
// its argument.
func canonicalGroup(g tagGroup) tagGroup {
	slices.Sort(g)
	g = slices.Compact(g)
	if len(g) > 1 {
		g = slices.DeleteFunc(g, func(name string) bool { return name == tagAll })
	}
	return g
}

// canonicalTags does the same with groups.
func canonicalTags(groups []tagGroup) []tagGroup {
	for _, g := range groups {
		if g[0] == tagAll {
			return []tagGroup{{tagAll}}
		}
	}
	slices.SortFunc(groups, func(a, b tagGroup) int { return slices.Compare(a, b) })
	return slices.CompactFunc(groups, func(a, b tagGroup) bool { return slices.Equal(a, b) })
}

// Empty reports whether the expression has no tags.
func (e TagExpr) Empty() bool { return len(e.groups) == 0 }

// Match reports whether the expression selects a destination with these tags.
// An empty expression and the tag all select every destination. A destination
// with the tag always is selected by every expression.
func (e TagExpr) Match(tags []string) bool {
	if e.Empty() || hasTag(tags, tagAlways) {
		return true
	}
	for _, g := range e.groups {
		if g.match(tags) {
			return true
		}
	}
	return false
}

func (g tagGroup) match(tags []string) bool {
	for _, name := range g {
		if name != tagAll && !hasTag(tags, name) {
			return false
		}
	}
	return true
}

func hasTag(tags []string, name string) bool {
	for _, t := range tags {
		if strings.EqualFold(t, name) {
			return true
		}
	}
	return false
}

// String returns the expression in a canonical form that [ParseTags] accepts:
// expressions that differ only in order, case and repetition are equal.
func (e TagExpr) String() string {
	groups := make([]string, len(e.groups))
	for i, g := range e.groups {
		groups[i] = strings.Join(g, " ")
	}
	return strings.Join(groups, ",")
}

// ValidTag reports whether s is the name of a tag: a letter or digit, followed by
// letters, digits, _ and -, all in ASCII.
func ValidTag(s string) bool {
	for i, r := range s {
		if !isTagAlnum(r) && (i == 0 || r != '_' && r != '-') {
			return false
		}
	}
	return s != ""
}

func isTagAlnum(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
