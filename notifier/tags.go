package notifier

import (
	"fmt"
	"slices"
	"strings"
)

// What a tag expression may measure. An expression that ANDs several ORs is
// multiplied out, and the limits hold for the product, too.
const (
	maxTagTerms = 1024
	maxTagText  = 16 << 10 // bytes
	maxTagDepth = 8        // arrays within arrays
)

// Tags with a meaning of their own.
const (
	tagAll    = "all"    // asked for: every destination
	tagAlways = "always" // on a destination: joins whatever is asked for
)

// TagExpr says by their tags which destinations a message is for. It is a
// list of groups: a destination is meant that has all tags of one group. The
// zero TagExpr is empty.
type TagExpr struct {
	groups []tagGroup // sorted, none twice; just {"all"} where all are meant
}

// A tagGroup holds lower-case names, sorted, none twice.
type tagGroup []string

// TagError is a tag expression that cannot be read. Its text is one sentence
// for the client.
type TagError struct{ reason string }

func (e *TagError) Error() string { return e.reason }

func tagErrorf(format string, args ...any) error {
	return &TagError{fmt.Sprintf(format, args...)}
}

// ParseTags reads a tag expression from a text, or from what encoding/json
// makes of a text or an array.
//
// In a text, commas and | mean OR; white space, + and & mean AND and bind
// tighter: "ops db, admins" is (ops AND db) OR admins. Of arrays, the outer
// one means OR and those within it AND, and each text in them is itself an
// expression. Nothing, and separators with nothing between them, is the empty
// expression. Letters count without case.
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

// parseTagArray reads an array: the outermost, at depth 1, ORs what is in it,
// and all others AND.
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

// andTags multiplies out. An empty factor does not count. The product stops
// growing beyond the limits, for [checkTagSize] to refuse.
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

// parseTagText reads an expression that is written as one text.
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

// canonicalGroup sorts the names and drops those that change nothing. It may
// alter its argument.
func canonicalGroup(g tagGroup) tagGroup {
	slices.Sort(g)
	g = slices.Compact(g)
	if len(g) > 1 {
		g = slices.DeleteFunc(g, func(name string) bool { return name == tagAll })
	}
	return g
}

// canonicalTags does the same for groups.
func canonicalTags(groups []tagGroup) []tagGroup {
	for _, g := range groups {
		if g[0] == tagAll {
			return []tagGroup{{tagAll}}
		}
	}
	slices.SortFunc(groups, func(a, b tagGroup) int { return slices.Compare(a, b) })
	return slices.CompactFunc(groups, func(a, b tagGroup) bool { return slices.Equal(a, b) })
}

// Empty reports whether the expression asks for nothing in particular.
func (e TagExpr) Empty() bool { return len(e.groups) == 0 }

// Match reports whether a destination with these tags is meant. Every
// destination is where the expression is empty or contains all, and one that
// is tagged always is by every expression.
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

// String writes the expression as [ParseTags] reads it, in one spelling for
// all expressions that differ in order, case and repetition only.
func (e TagExpr) String() string {
	groups := make([]string, len(e.groups))
	for i, g := range e.groups {
		groups[i] = strings.Join(g, " ")
	}
	return strings.Join(groups, ",")
}

// ValidTag reports whether s is the name of a tag: ASCII letters, digits, _
// and -, of which a letter or a digit comes first.
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
