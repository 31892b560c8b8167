package site

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// ErrNoPublicURL is returned for a rule whose messages need a link while the address of the gateway
// is unknown.
var ErrNoPublicURL = errors.New("its messages have a link with which to acknowledge, and the gateway does not know its address; add " +
	"public_url https://… with the address that phones reach it at to the same block or to the global option notify")

// namedScope is a rule with its name.
type namedScope struct {
	name  string
	scope rules.Scope
}

// scopesOf returns the rules in the order in which they apply.
func scopesOf(r *rules.Rules) (all []namedScope) {
	for _, w := range r.Windows {
		all = append(all, namedScope{"silence", rules.Scope{Tag: w.Tag}})
	}
	if r.Dedupe != nil {
		all = append(all, namedScope{"dedupe", r.Dedupe.Scope})
	}
	if r.Hold != nil {
		all = append(all, namedScope{"hold", r.Hold.Scope})
	}
	if r.Escalate != nil {
		all = append(all, namedScope{"escalate", r.Escalate.Scope})
	}
	for _, q := range r.Quiet {
		all = append(all, namedScope{"quiet", q.Scope})
	}
	if r.Digest != nil {
		all = append(all, namedScope{"digest", r.Digest.Scope})
	}
	for _, x := range r.Rate {
		all = append(all, namedScope{"rate", x.Scope})
	}
	return all
}

// checkRules returns an error and the name of the rule if a rule of k does not fit its targets.
// With push, a device may have a tag later. A key without targets has incidents, with any rule.
func (k *Key) checkRules(public string, push bool) (rule string, err error) {
	if k.Rules == nil {
		return "", nil
	}
	all := scopesOf(k.Rules)
	first := all[0].name
	tags := map[string]string{} // tags, with the names of the rules
	for _, x := range all {
		if x.scope.Tag != "" {
			tags[x.scope.Tag] = x.name
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		if !push && !slices.ContainsFunc(k.Targets, func(t notifier.Target) bool { return hasTag(t, tag) }) {
			return tags[tag], fmt.Errorf("%s: tag: no URL of the key has the tag %s; give it to a URL, or correct it", tags[tag], tag)
		}
	}
	if k.Rules.Escalate != nil {
		if err := k.checkSteps(public, push); err != nil {
			return "escalate", fmt.Errorf("escalate: %w", err)
		}
		return "", nil
	}
	for _, t := range k.Targets {
		if r := k.Rules.For(t.Tags); r != nil && rules.StepOf(t.Tags) != 0 {
			return first, fmt.Errorf("%s: rules do not apply to URLs with numbers in their tags, which are tried one after the other; add "+
				"escalate, with which they are steps, limit each rule with tag to other URLs, or write these URLs into a key of their own", first)
		}
	}
	return "", nil
}

// hasTag reports whether a target has a tag, with a number or without.
func hasTag(t notifier.Target, tag string) bool {
	return slices.ContainsFunc(t.Tags, func(x string) bool {
		_, name := notifier.SplitTag(x)
		return strings.EqualFold(name, tag)
	})
}

// checkSteps returns an error if the targets of k do not fit the rule escalate.
func (k *Key) checkSteps(public string, push bool) error {
	e := k.Rules.Escalate
	if public == "" {
		return ErrNoPublicURL
	}
	numbers, err := k.steps(k.Targets)
	if err != nil {
		return err
	}
	if err := e.CheckSteps(numbers); err != nil && !push {
		return err
	}
	if numbers, _ := k.steps(k.DefaultTargets); len(numbers) == 0 && !push {
		return errors.New("default_tag selects no URL with a number, so that messages without a tag would wake nobody; add a tag that " +
			"selects them")
	}
	if n := len(k.Targets) * e.Repeat; n > rules.MaxStepJobs {
		return fmt.Errorf("the key has %d URLs, which %d rounds would send to %d times; the limit is %d: lower repeat", len(k.Targets), e.Repeat,
			n, rules.MaxStepJobs)
	}
	return nil
}

// steps returns the numbers of targets, all of which must be steps.
func (k *Key) steps(targets []notifier.Target) (numbers []int, err error) {
	for _, t := range targets {
		n := rules.StepOf(t.Tags)
		if n != 0 && k.Rules.For(t.Tags).IsStep() {
			numbers = append(numbers, n)
		} else if n != 0 {
			return nil, fmt.Errorf("tag: the URL with the number %d has no tag %s, so that it would be neither a step nor tried after others; "+
				"give it the tag, or remove the number", n, k.Rules.Escalate.Tag)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}
