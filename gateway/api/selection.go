package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Selection is where a message goes. The zero value with Targets is complete,
// for messages that do not come from a request.
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

// SelectTags selects among the destinations of a key, and gives those that have a template
// the values of the request. choose returns those that
// a tag expression matches; the empty expression stands for a request without
// tags. An error of choose becomes a 424.
func (q *Request) SelectTags(choose func(notifier.TagExpr) ([]notifier.Target, error)) (*Selection, error) {
	w, err := q.Wish()
	if err != nil {
		return nil, err
	}
	targets, err := w.Choose(choose)
	if err != nil {
		return nil, Errorf(http.StatusFailedDependency, "%w", err)
	}
	return &Selection{Targets: q.fill(targets, w.Values), warnings: q.warningRecords()}, nil
}

// warningRecords returns the warnings about the request for the report.
func (q *Request) warningRecords() []notifier.Record { return warningRecords(q.warnings) }

func warningRecords(warnings []string) (out []notifier.Record) {
	for _, w := range warnings {
		out = append(out, notifier.Record{Time: time.Now(), Level: notifier.LevelWarning, Text: w})
	}
	return out
}

// maxSuggestions bounds the URLs of one request for which a correction is
// searched, because the search takes a while.
const maxSuggestions = 5

// SelectURLs selects the destinations of the URLs in the request or, if there
// are none, fallback. parse makes a destination of a URL; the Request closes
// it. URLs that parse rejects are part of the report; if it rejects all of
// them, SelectURLs returns a 400.
func (q *Request) SelectURLs(parse func(url string) (*notifier.Destination, error), fallback []notifier.Target) (*Selection, error) {
	urls, err := q.content.urls(q.limits.Client)
	if err != nil {
		return nil, err
	}
	if err := q.content.checkTagTypes(); err != nil {
		return nil, err
	}
	if len(urls) == 0 {
		if len(fallback) == 0 {
			return nil, badField(fieldURLs, "the field urls is missing; set it to the notification URLs to send to")
		}
		return &Selection{Targets: fallback, warnings: q.warningRecords()}, nil
	}
	s := &Selection{Transient: true, Limits: q.limits.Client, unusable: map[int]notifier.Result{}, warnings: q.warningRecords()}
	var first error
	for i, url := range urls {
		d, err := parse(url)
		if err == nil {
			s.add(d, i+1, len(urls))
			continue
		}
		if len(s.unusable) < maxSuggestions {
			err = notifier.WithSuggestion(url, err)
		}
		err = fmt.Errorf("URL %d of %d: %w", i+1, len(urls), err)
		s.unusable[i] = unusableURL(url, err)
		if first == nil {
			first = err
		}
	}
	q.opened = s.Targets
	if len(s.Targets) == 0 {
		e := badRequest("no URL of the field urls can be used, so nothing was sent; %w", first)
		e.Field = fieldURLs
		e.Results = s.results(nil)
		return nil, e
	}
	return s, nil
}

// add adds the destination of the i-th of n URLs.
func (s *Selection) add(d *notifier.Destination, i, n int) {
	s.Targets = append(s.Targets, notifier.Target{Destination: d})
	warnings := d.Warnings()
	if s.Limits != nil {
		warnings = append(slices.Clip(warnings), s.Limits.Warnings(d)...)
	}
	for _, w := range warnings {
		s.warnings = append(s.warnings, notifier.Record{Time: time.Now(), Level: notifier.LevelWarning, Text: fmt.Sprintf("URL %d of %d: %s", i, n, w)})
	}
}

// unusableURL returns the result for a URL without a destination. It shows
// only the scheme of the URL, and only if a service has it.
func unusableURL(url string, err error) notifier.Result {
	r := notifier.Result{Status: notifier.Skipped, Err: err}
	if scheme, _, ok := strings.Cut(url, "://"); ok && notifier.SchemesOf(scheme) != nil {
		r.Destination = strings.ToLower(scheme) + "://"
	}
	return r
}

// Warn adds warnings to the report.
func (s *Selection) Warn(texts ...string) {
	s.warnings = append(slices.Clip(s.warnings), warningRecords(texts)...)
}

// Check returns an [*Error] if the message exceeds the limits of messages to
// URLs of a client: 413 if it is too large for its destinations, 400 if it has
// too many of them.
func (s *Selection) Check(m *notifier.Message) error {
	if s.Limits == nil {
		return nil
	}
	err := s.Limits.Check(m, s.Targets)
	if e, ok := errors.AsType[*notifier.LimitError](err); ok && e.Limit == notifier.LimitBytes {
		return Errorf(http.StatusRequestEntityTooLarge, "%w", err)
	}
	if err != nil {
		return badRequest("%w", err)
	}
	return nil
}

// Report returns the report on the whole selection: the deliveries in sent, and
// the URLs that could not be used.
func (s *Selection) Report(sent *notifier.Report) *notifier.Report {
	if len(s.unusable)+len(s.warnings) == 0 {
		return sent
	}
	r := &notifier.Report{Results: s.results(sent.Results), Records: append(slices.Clip(s.warnings), sent.Records...)}
	for i := range r.Results {
		if u, ok := s.unusable[i]; ok {
			r.Records = append(r.Records, notifier.Record{Time: time.Now(), Level: notifier.LevelError, Text: "Not sent: " + u.Err.Error()})
		}
	}
	return r
}

// Positions returns the place that the result of each target has in the report.
func (s *Selection) Positions() []int {
	out := make([]int, 0, len(s.Targets))
	for at := 0; len(out) < len(s.Targets); at++ {
		if _, ok := s.unusable[at]; !ok {
			out = append(out, at)
		}
	}
	return out
}

// results returns the results in the order of the request's URLs.
func (s *Selection) results(sent []notifier.Result) []notifier.Result {
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
