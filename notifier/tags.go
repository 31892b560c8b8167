package notifier

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The limits of a tag expression. They also apply to the product that an AND of
// several ORs is expanded to.
const (
	maxTagTerms = 1024
	maxTagText  = 16 << 10 // bytes
	maxTagDepth = 8        // nested arrays
)

// maxTagAttempts is the maximum number of attempts that an expression can ask for:
// the first one and 10 retries, as with ?retry=10.
const maxTagAttempts = 11

// Tags with a special meaning.
const (
	tagAll    = "all"    // in an expression: matches every destination
	tagAlways = "always" // of a destination: every expression matches it
)

// TagExpr is an expression that selects destinations by their tags. It is a
// list of groups and matches a destination that has all tags of at least one
// group. The zero TagExpr is empty and matches every destination.
type TagExpr struct {
	groups []tagGroup // unique, in the order of the expression
}

// A tagGroup is a sorted list of unique terms.
type tagGroup []tagTerm

// A tagTerm is a tag in an expression, as in 2:ops:3.
type tagTerm struct {
	name     string // in lower case
	number   int    // that the destination's tag must have; -1 for any
	attempts int    // 0 for the number that the URL asks for
}

func (t tagTerm) String() string {
	s := t.name
	if t.number >= 0 {
		s = strconv.Itoa(t.number) + ":" + s
	}
	if t.attempts > 0 {
		s += ":" + strconv.Itoa(t.attempts-1)
	}
	return s
}

func compareTerms(a, b tagTerm) int {
	return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.number, b.number), cmp.Compare(a.attempts, b.attempts))
}

// TagError is returned when a tag expression is invalid. Its text is a sentence
// for the client.
type TagError struct{ reason string }

func (e *TagError) Error() string { return e.reason }

func tagErrorf(format string, args ...any) error {
	return &TagError{fmt.Sprintf(format, args...)}
}

// ParseTags parses a tag expression: nil, a string or a []any of strings and arrays, as
// encoding/json decodes it.
//
// In a string, a comma or | is OR; white space, + and & are AND and bind tighter: "ops db, admins"
// is (ops AND db) OR admins. An array is the OR of its elements, an array in an array is the AND of
// its elements, and each string in them is an expression. A string without names is the empty
// expression. Case is ignored.
//
// A tag may have a number before it, as in 2:ops, and a number of retries after it, as in ops:3:
// see [TagExpr.Select].
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
	return TagExpr{uniqueGroups(groups)}, nil
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
		for _, t := range g {
			text += len(t.name) + 1
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
		if !strings.ContainsRune(",|+& \t\r\n\v\f_-:", r) && !isTagAlnum(r) {
			return nil, tagErrorf("a tag expression may not hold the character %q; "+
				"use letters, digits, - and _ for names, a comma for OR and a space for AND", r)
		}
	}
	var groups []tagGroup
	for _, or := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '|' }) {
		var group tagGroup
		for _, word := range strings.FieldsFunc(or, func(r rune) bool { return strings.ContainsRune("+& \t\r\n\v\f", r) }) {
			term, err := parseTerm(word)
			if err != nil {
				return nil, err
			}
			group = append(group, term)
		}
		if len(group) > 0 {
			groups = append(groups, canonicalGroup(group))
		}
	}
	return groups, checkTagSize(groups)
}

// parseTerm parses a tag with an optional number before it, and an optional
// number of retries after it.
func parseTerm(word string) (tagTerm, error) {
	parts := strings.Split(word, ":")
	t := tagTerm{number: -1}
	if len(parts) > 1 && isNumber(parts[0]) && ValidTag(parts[1]) {
		t.number = tagNumber(parts[0])
		parts = parts[1:]
	}
	if len(parts) == 2 && isNumber(parts[1]) {
		t.attempts = min(tagNumber(parts[1])+1, maxTagAttempts)
		parts = parts[:1]
	}
	switch {
	case len(parts) > 1:
		return t, tagErrorf("a colon in a tag is for numbers; write 2:ops for the destinations with the number 2, and ops:3 to try 3 times again")
	case !ValidTag(parts[0]):
		return t, tagErrorf("a tag must begin with a letter or a digit, not with %q", word[:1])
	}
	t.name = strings.ToLower(parts[0])
	return t, nil
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// maxTagNumber is the largest number of a tag. Larger ones mean the same.
const maxTagNumber = 1<<31 - 2

func tagNumber(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return maxTagNumber
	}
	return min(n, maxTagNumber)
}

// canonicalGroup sorts the terms and removes repeated ones. It may change its
// argument.
func canonicalGroup(g tagGroup) tagGroup {
	if len(g) > 1 {
		slices.SortFunc(g, compareTerms)
	}
	return slices.Compact(g)
}

// uniqueGroups removes repeated groups. It keeps the order, because the order
// decides which chain a destination belongs to.
func uniqueGroups(groups []tagGroup) (out []tagGroup) {
	seen := map[string]bool{}
	for _, g := range groups {
		if text := g.String(); !seen[text] {
			seen[text] = true
			out = append(out, g)
		}
	}
	return out
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
	for _, t := range g {
		if !t.match(tags) {
			return false
		}
	}
	return true
}

// match reports whether the term is all, or tags has its name, with its number
// if it has one.
func (t tagTerm) match(tags []string) bool {
	if t.name == tagAll {
		return true
	}
	number, ok := numberOf(tags, t.name)
	return ok && (t.number < 0 || t.number == number)
}

func hasTag(tags []string, name string) bool {
	_, ok := numberOf(tags, name)
	return ok
}

// numberOf returns the number of the tag with a name, the lowest if there are
// several, and reports whether there is one.
func numberOf(tags []string, name string) (number int, ok bool) {
	for _, tag := range tags {
		n, x := SplitTag(tag)
		if strings.EqualFold(x, name) && (!ok || n < number) {
			number, ok = n, true
		}
	}
	return number, ok
}

// String returns the expression in a form that [ParseTags] accepts. Expressions
// that differ only in case and repetition are equal.
func (e TagExpr) String() string {
	groups := make([]string, len(e.groups))
	for i, g := range e.groups {
		groups[i] = g.String()
	}
	return strings.Join(groups, ",")
}

func (g tagGroup) String() string {
	terms := make([]string, len(g))
	for i, t := range g {
		terms[i] = t.String()
	}
	return strings.Join(terms, " ")
}

// SplitTag returns the number and the name of a destination's tag: 2 and ops of
// "2:ops", and 0 and ops of "ops".
func SplitTag(tag string) (number int, name string) {
	if digits, rest, ok := strings.Cut(tag, ":"); ok && isNumber(digits) {
		return tagNumber(digits), rest
	}
	return 0, tag
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
