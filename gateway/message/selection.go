package message

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Selection is where a message goes. Messages that do not come from a request need only Targets.
type Selection struct {
	// Targets are the destinations that can be sent to.
	Targets []notifier.Target

	// Transient reports whether the destinations exist for this message only,
	// because their URLs are in the request.
	Transient bool

	// Limits holds the limits of a message; nil means no limits, for
	// destinations of the operator.
	Limits *notifier.Limits

	unusable map[int]notifier.Result // by the position among the request's URLs
	warnings []notifier.Record
}

func warningRecords(warnings []string) (out []notifier.Record) {
	for _, w := range warnings {
		out = append(out, notifier.Record{Time: time.Now(), Level: notifier.LevelWarning, Text: w})
	}
	return out
}

// Add adds the destination of the i-th of n URLs.
func (s *Selection) Add(d *notifier.Destination, i, n int) {
	s.Targets = append(s.Targets, notifier.Target{Destination: d})
	warnings := d.Warnings()
	if s.Limits != nil {
		warnings = append(slices.Clip(warnings), s.Limits.Warnings(d)...)
	}
	for _, w := range warnings {
		s.warnings = append(s.warnings, notifier.Record{
			Time: time.Now(), Level: notifier.LevelWarning,
			Text: fmt.Sprintf("URL %d of %d: %s", i, n, w),
		})
	}
}

// Reject adds the i-th URL, from 0, as unusable because of err. Its result shows only the scheme,
// and only if a service has it.
func (s *Selection) Reject(i int, url string, err error) {
	r := notifier.Result{Status: notifier.Skipped, Err: err}
	if scheme, _, ok := strings.Cut(url, "://"); ok && notifier.SchemesOf(scheme) != nil {
		r.Destination = strings.ToLower(scheme) + "://"
	}
	if s.unusable == nil {
		s.unusable = map[int]notifier.Result{}
	}
	s.unusable[i] = r
}

// Warn adds warnings to the report.
func (s *Selection) Warn(texts ...string) {
	s.warnings = append(slices.Clip(s.warnings), warningRecords(texts)...)
}

// Check returns a [*message.Error] if the message exceeds the limits for a client's URLs: TooLarge
// if it is too large for its destinations, Invalid if it has too many of them.
func (s *Selection) Check(m *notifier.Message) error {
	if s.Limits == nil {
		return nil
	}
	err := s.Limits.Check(m, s.Targets)
	if e, ok := errors.AsType[*notifier.LimitError](err); ok && e.Limit == notifier.LimitBytes {
		return Errorf(TooLarge, "%w", err)
	}
	if err != nil {
		return Errorf(Invalid, "%w", err)
	}
	return nil
}

// Report returns the report on the whole selection: the deliveries in sent, and
// the URLs that could not be used.
func (s *Selection) Report(sent *notifier.Report) *notifier.Report {
	if len(s.unusable)+len(s.warnings) == 0 {
		return sent
	}
	r := &notifier.Report{Results: s.Results(sent.Results), Records: append(slices.Clip(s.warnings), sent.Records...)}
	for i := range r.Results {
		if u, ok := s.unusable[i]; ok {
			r.Records = append(r.Records, notifier.Record{Time: time.Now(), Level: notifier.LevelError, Text: "Not sent: " + u.Err.Error()})
		}
	}
	return r
}

// Positions returns the position of each target's result in the report.
func (s *Selection) Positions() []int {
	out := make([]int, 0, len(s.Targets))
	for at := 0; len(out) < len(s.Targets); at++ {
		if _, ok := s.unusable[at]; !ok {
			out = append(out, at)
		}
	}
	return out
}

// Results returns the results in the order of the request's URLs.
func (s *Selection) Results(sent []notifier.Result) []notifier.Result {
	out := make([]notifier.Result, 0, len(sent)+len(s.unusable))
	for len(out) < cap(out) {
		if r, ok := s.unusable[len(out)]; ok {
			out = append(out, r)
			continue
		}
		out, sent = append(out, sent[0]), sent[1:]
	}
	return out
}

// Wish says which destinations of a key the client of a request wants to reach.
type Wish struct {
	Tags      notifier.TagExpr  // empty for a request without tags
	Preferred []string          // tags that select only if a destination has one of them
	Values    map[string]string // for the variables in URLs
}

// Choose returns the destinations that the client wants to reach. choose returns the destinations
// that a tag expression matches; the empty expression means a request without tags.
func (w *Wish) Choose(choose func(notifier.TagExpr) ([]notifier.Target, error)) ([]notifier.Target, error) {
	if w.Tags.Empty() {
		if targets := PreferredTargets(w.Preferred, choose); targets != nil {
			return targets, nil
		}
	}
	return choose(w.Tags)
}

// PreferredTargets returns the targets that have one of the preferred tags and the targets that get
// every message, or nil if no target has such a tag. choose returns the targets that an expression
// selects.
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
