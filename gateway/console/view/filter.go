package view

import "strings"

// FilterLine is the line above a filter. On a phone, which has no room for its fields, it folds them.
type FilterLine struct {
	Set string // what is set, in words; "" for nothing
	All string // the address without it
}

// newFilterLine returns the line of a filter with these parts, of which empty ones are not set.
func newFilterLine(all string, parts ...string) FilterLine {
	var set []string
	for _, p := range parts {
		if p != "" {
			set = append(set, p)
		}
	}
	return FilterLine{Set: strings.Join(set, ", "), All: all}
}

// named returns a part of a filter in words, or "" if it is not set.
func named(name, value string) string {
	if value == "" {
		return ""
	}
	return name + " " + value
}

// label returns the label of the choice with a value, or "" for the first, which selects all.
func label(all []Choice, value string) string {
	for _, c := range all[1:] {
		if c.Value == value {
			return c.Label
		}
	}
	return value
}
