package rules

import (
	"errors"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// anyText stands for any text in the title of a silence, and alone as its tag for every tag.
const anyText = "*"

// Errors of what a silence matches.
var (
	errRegexpTitle = errors.New("title: a regular expression does not work here; write how the title begins, with * for any text in it, " +
		"such as Disk * full, or *full for any title with full in it")
	errTagPattern = errors.New("tag: * does not stand for a part of a tag; write one whole tag of URLs, such as phone, or all for every URL")
	errTag        = errors.New("tag: it must be one tag of URLs, such as phone, or all")
	errWindowTag  = errors.New("tag: it must be one tag of URLs, such as phone; without it, the silence holds for every URL")
)

// regexpPart matches what has a meaning in regular expressions and is not in titles that people
// write: anchors, repetitions, classes, and alternatives without a space.
var regexpPart = lazyregexp.New(`^\^|\$$|\.[*+]|[\])][*+?]|\(\?|\\[\[\](){}.*+?^$|/-]|\\[dDwWsSbB](?:[^A-Za-z]|$)|` +
	`\[\^?(?:\w-\w)+\]|\{\d+(?:,\d*)?\}|[\w)\]]\|[\w(\[]`)

// checkTitle checks the title of a silence, and drops asterisks at its end, which change nothing.
func checkTitle(title *string) error {
	if regexpPart.MatchString(*title) {
		return errRegexpTitle
	}
	if short := strings.TrimRight(*title, anyText); short != "" {
		*title = short
	} else if *title != "" {
		*title = anyText
	}
	return nil
}

// checkSilenceTag returns an error if the tag of a silence is not a whole tag.
func checkSilenceTag(tag string, invalid error) error {
	switch {
	case strings.Contains(tag, anyText):
		return errTagPattern
	case tag != "" && !notifier.ValidTag(tag):
		return invalid
	}
	return nil
}

// titleMatches reports whether a title begins with the text of a silence, in any case. Each asterisk
// of the text stands for any text.
func titleMatches(text, title string) bool {
	part, rest, more := strings.Cut(text, anyText)
	if len(title) < len(part) || !strings.EqualFold(title[:len(part)], part) {
		return false
	}
	title = title[len(part):]
	for more {
		part, rest, more = strings.Cut(rest, anyText)
		at := 0
		for ; at+len(part) <= len(title) && !strings.EqualFold(title[at:at+len(part)], part); at++ {
		}
		if at+len(part) > len(title) {
			return false
		}
		title = title[at+len(part):]
	}
	return true
}
