package console

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/console/inline"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// saysOf returns the outcome of a message with these results, in the words of its line. by is who
// takes care of its incident, or "".
func saysOf(results []message.QueuedResult, by string) (view.Outcome, view.Says) {
	s := sortResults(results)
	switch {
	case len(results) == 0: // it has no destination, and is not refused
		return view.Delivered, view.Says{Text: "Kept in the inbox"}
	case len(s.failed) > 0:
		return view.Failed, view.Says{Text: s.missing()}
	case len(s.waiting) > 0:
		return view.Queued, view.Says{Text: s.missing()}
	case s.held != nil && (s.delivered == 0 || s.held.Rule != notifier.RuleSilenced):
		return s.saysHeld()
	case s.step != nil && s.delivered > 0:
		return view.Delivered, view.Says{Text: "Delivered; " + s.nextStep(), At: *s.step.Next, Then: "unless acknowledged"}
	case s.step != nil:
		return view.Queued, view.Says{Text: s.nextStep(), At: *s.step.Next, Then: "unless acknowledged"}
	case len(s.kept) > 0 && s.delivered > 0:
		return view.Delivered, view.Says{Text: "Delivered; silent for " + namesOfResults(s.kept) + " until", At: *s.kept[0].Until}
	case len(s.kept) > 0:
		return view.Queued, view.Says{Text: "Silenced until", At: *s.kept[0].Until}
	case s.held != nil: // a silence keeps it from some
		says := view.Says{Text: "Delivered; silent for " + s.held.Name}
		if s.held.Until != nil {
			says.Text, says.At = says.Text+" until", *s.held.Until
		}
		return view.Delivered, says
	case len(s.cancelled) > 0 && s.delivered > 0:
		return view.Cancelled, view.Says{Text: s.missing()}
	case len(s.cancelled) > 0:
		return view.Cancelled, view.Says{Text: "Cancelled"}
	case s.delivered > 0 && (by != "" || s.has(notifier.RuleAcknowledged)):
		return view.Delivered, view.Says{Text: acknowledged(by)}
	case s.delivered > 0:
		return view.Delivered, view.Says{Text: "Delivered"}
	}
	return view.Skipped, view.Says{Text: s.notNeeded(by)}
}

// sorted are the results of a message by outcome.
type sorted struct {
	failed, waiting []*message.QueuedResult
	cancelled       []*message.QueuedResult
	held            *message.QueuedResult // the result of a delivery held by a rule
	step            *message.QueuedResult // a result of the step that begins next
	steps           []*message.QueuedResult
	kept            []*message.QueuedResult // results of steps that a silence keeps back
	delivered       int
	rules           map[notifier.Rule]bool
}

func sortResults(results []message.QueuedResult) *sorted {
	s := &sorted{rules: map[notifier.Rule]bool{}}
	for i := range results {
		r := &results[i]
		s.rules[r.Rule] = true
		switch {
		case r.Status == notifier.Failed && !r.Optional, r.Status == notifier.Skipped && r.Error != nil:
			s.failed = append(s.failed, r)
		case r.Rule == notifier.RuleEscalating && r.Next != nil:
			s.steps = append(s.steps, r)
			if s.step == nil || r.Next.Before(*s.step.Next) {
				s.step = r
			}
		case r.Rule == notifier.RuleEscalating && r.Until != nil:
			s.kept = append(s.kept, r)
		case r.Status == message.StatusQueued && r.Rule != "":
			if s.held == nil || r.Until != nil && (s.held.Until == nil || r.Until.Before(*s.held.Until)) {
				s.held = r
			}
		case r.Status == message.StatusQueued:
			s.waiting = append(s.waiting, r)
		case r.Status == notifier.Delivered:
			s.delivered++
		case r.Status == message.StatusCancelled:
			s.cancelled = append(s.cancelled, r)
		}
	}
	return s
}

func (s *sorted) has(rule notifier.Rule) bool { return s.rules[rule] }

// missing says how many destinations have the message, if some have, and names the others.
func (s *sorted) missing() string {
	var parts []string
	if s.delivered > 0 {
		all := s.delivered + len(s.failed) + len(s.waiting) + len(s.cancelled)
		parts = append(parts, fmt.Sprintf("%d of %d delivered", s.delivered, all))
	}
	for _, x := range []struct {
		text string
		some []*message.QueuedResult
	}{{"failed: ", s.failed}, {"waiting for ", s.waiting}, {"cancelled for ", s.cancelled}} {
		if len(x.some) > 0 {
			parts = append(parts, x.text+namesOfResults(x.some))
		}
	}
	return sentenceCase(strings.Join(parts, "; "))
}

// maxSaid is how many destinations the line of a message names.
const maxSaid = 2

// namesOfResults names the destinations of results, the first ones if there are many.
func namesOfResults(some []*message.QueuedResult) string {
	var names []string
	for _, r := range some {
		if !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	if more := len(names) - maxSaid; more > 1 {
		return inline.Names(names[:maxSaid]) + " and " + strconv.Itoa(more) + " more"
	}
	return inline.Names(names)
}

// nextStep names the destinations of the step that begins next.
func (s *sorted) nextStep() string {
	var names []string
	for _, r := range s.steps {
		if r.Step == s.step.Step && r.Next.Equal(*s.step.Next) {
			names = append(names, r.Name)
		}
	}
	return inline.Names(names)
}

// saysHeld says until when a rule holds the message.
func (s *sorted) saysHeld() (view.Outcome, view.Says) {
	outcome, text := view.Queued, "Held"
	switch s.held.Rule {
	case notifier.RulePlanned:
		outcome, text = view.Planned, "Planned for"
	case notifier.RuleDigested:
		text = "In a digest"
	case notifier.RuleSilenced:
		text = "Silenced"
	}
	if s.held.Until == nil {
		return outcome, view.Says{Text: text}
	}
	if text == "Held" || text == "Silenced" {
		text += " until"
	}
	return outcome, view.Says{Text: text, At: *s.held.Until}
}

// acknowledged says who has acknowledged the incident of a message; by is "" if unknown.
func acknowledged(by string) string {
	if by == "" {
		return "Acknowledged"
	}
	return "Acknowledged by " + by
}

// notNeeded says why no destination has received a message.
func (s *sorted) notNeeded(by string) string {
	switch {
	case s.has(notifier.RuleAcknowledged):
		return acknowledged(by)
	case s.has(notifier.RuleSilenced):
		return "Silenced"
	case s.has(notifier.RuleDigested):
		return "Sent in a digest"
	case s.has(notifier.RuleSuppressed):
		return "Not needed: known already"
	case s.has(notifier.RuleSuperseded):
		return "Not needed: a newer one tells it"
	case s.has(notifier.RuleHeld):
		return "Not needed: it did not last"
	}
	return "Not needed"
}
