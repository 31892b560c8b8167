package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Describe returns a sentence for each rule, for people who read it, in the order in
// which the rules apply.
func (r *Rules) Describe() (out []string) {
	if r.Empty() {
		return nil
	}
	add := func(s Scope, defaults []notifier.Type, format string, args ...any) {
		out = append(out, fmt.Sprintf(format, args...)+s.describe(defaults)+".")
	}
	for i := range r.Windows {
		w := &r.Windows[i]
		what := ""
		if w.Title != "" {
			what = fmt.Sprintf(", titles that begin with %q", w.Title)
		}
		add(Scope{Tag: w.Tag}, nil, "%s–%s%s: silent%s", w.Start, w.End, describeWhen(w.Days, w.Zone), what)
	}
	if r.Dedupe != nil {
		add(r.Dedupe.Scope, nil, "Repetitions within %s are left out", describeTime(r.Dedupe.Window))
	}
	if r.Hold != nil {
		add(r.Hold.Scope, opening, "A problem is told if it lasts %s", describeTime(r.Hold.For))
	}
	if e := r.Escalate; e != nil {
		var after []string
		for _, d := range e.After {
			after = append(after, describeTime(d))
		}
		rounds := "rounds"
		if e.Repeat == 1 {
			rounds = "round"
		}
		add(e.Scope, escalated,
			"Destinations with a number are told in turn until somebody acknowledges, the next one after %s, in %d %s",
			strings.Join(after, ", then "), e.Repeat, rounds)
	}
	for _, q := range r.Quiet {
		add(q.Scope, notFailures, "%s–%s%s: held, then sent as one message", q.Start, q.End, describeWhen(q.Days, q.Zone))
	}
	switch d := r.Digest; {
	case d == nil:
	case d.Moment != nil:
		add(d.Scope, notFailures, "%s%s: what came in is sent as one message", d.Moment.At, describeWhen(d.Moment.Days, d.Moment.Zone))
	default:
		add(d.Scope, nil, "What comes in within %s is sent as one message", describeTime(d.Every))
	}
	for _, x := range r.Rate {
		messages := "messages"
		if x.Count == 1 {
			messages = "message"
		}
		add(x.Scope, nil,
			"At most %d %s in %s, the rest as one message; failures and openings of incidents are counted apart",
			x.Count, messages, describeTime(x.Per))
	}
	return out
}

// describe returns a phrase for the scope of a rule.
func (s *Scope) describe(defaults []notifier.Type) string {
	types := s.Types
	if len(types) == 0 {
		types = defaults
	}
	var parts, names []string
	for _, t := range Types {
		if slices.Contains(types, t) {
			names = append(names, string(t))
		}
	}
	if len(names) > 0 {
		parts = append(parts, strings.Join(names, ", "))
	}
	if s.Tag != "" {
		parts = append(parts, "tag "+s.Tag)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// describeWhen returns the days, if they are not all, and the zone.
func describeWhen(days Days, zone Zone) (out string) {
	if days != (Days{}) && days != (Days{true, true, true, true, true, true, true}) {
		var names []string
		for i := range 7 { // from Monday on
			if day := time.Weekday((i + 1) % 7); days[day] {
				names = append(names, day.String()[:3])
			}
		}
		out = " " + strings.Join(names, ", ")
	}
	if zone.location == nil {
		return out + " (the server's time)"
	}
	return out + " " + zone.location.String()
}

// FormatTime returns a duration as people read it, without parts that are zero.
func FormatTime(d time.Duration) string { return describeTime(d) }

// describeTime returns a duration without parts that are zero.
func describeTime(d time.Duration) string {
	const day = 24 * time.Hour
	if days := d / day; days > 0 && d%day == 0 {
		return fmt.Sprint(int(days), "d")
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
