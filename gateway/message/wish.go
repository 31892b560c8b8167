package message

import (
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Wish is whom the client of a request wants to reach in a key.
type Wish struct {
	Tags      notifier.TagExpr  // empty for a request without tags
	Preferred []string          // tags that select only if a destination has one of them
	Values    map[string]string // for the variables in URLs
}

// Choose returns the destinations that the client wants to reach. choose returns those that a
// tag expression matches; the empty expression stands for a request without tags.
func (w *Wish) Choose(choose func(notifier.TagExpr) ([]notifier.Target, error)) ([]notifier.Target, error) {
	if w.Tags.Empty() {
		if targets := PreferredTargets(w.Preferred, choose); targets != nil {
			return targets, nil
		}
	}
	return choose(w.Tags)
}

// PreferredTargets returns the targets that have one of the preferred tags, with
// those that get every message, or nil if none has. choose returns the targets
// that an expression selects.
func PreferredTargets(preferred []string, choose func(notifier.TagExpr) ([]notifier.Target, error)) []notifier.Target {
	if len(preferred) == 0 {
		return nil
	}
	e, err := notifier.ParseTags(strings.Join(preferred, ","))
	if err != nil {
		return nil
	}
	isPreferred := func(t notifier.Target) bool {
		return slices.ContainsFunc(t.Tags, func(tag string) bool {
			_, tag = notifier.SplitTag(tag)
			return slices.ContainsFunc(preferred, func(p string) bool { return strings.EqualFold(tag, p) })
		})
	}
	targets, err := choose(e)
	if err != nil || !slices.ContainsFunc(targets, isPreferred) {
		return nil
	}
	return targets
}
