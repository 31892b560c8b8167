// Package failures finds failures that no success has followed.
package failures

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Open finds failures that no success has followed. The situation is not quiet while there
// is one. Failures whose incidents are stored are not among them, because the incidents are listed.
//
// It remembers what it has read of the queue, so that a page reads only newer messages.
type Open struct {
	mu     sync.Mutex
	about  map[Subject]Followed
	newest time.Time // when the newest message that was read came in
}

// Subject is what a failure is about: its incident or, without one, everything that the
// source sends to the key without an incident.
type Subject struct{ Site, Key, Source, Incident string }

// Followed has the last failure about a subject and the time of the last success.
type Followed struct {
	Failed, succeeded time.Time
	ID                uuid.UUID // of the failure; zero if only the history has it
}

// Bounds of what is read and remembered.
const (
	maxFailureScan = 5000        // messages that are read after a start
	maxFailures    = 1000        // subjects that are remembered
	failureOverlap = time.Minute // clocks of gateways differ
	pageSize       = 50          // messages that are read at once
)

// ownSources are the sources of messages that the gateway makes about something that the pages show
// elsewhere, and of tests.
var ownSources = []string{
	site.SourceTest, site.SourceOwnEvent, site.SourceFallback, site.SourceDigest, site.SourceExpect, site.SourceDevice, site.SourceAsk,
	site.SourceCallback, site.SourceEscalation, site.SourceSilence,
}

// add adds a message about a subject.
func (f *Open) add(s Subject, t notifier.Type, at time.Time, id uuid.UUID) {
	if slices.Contains(ownSources, s.Source) {
		return
	}
	x := f.about[s]
	switch {
	case t == notifier.Failure && at.After(x.Failed):
		x.Failed, x.ID = at, id
	case t == notifier.Success && at.After(x.succeeded):
		x.succeeded = at
	default:
		return
	}
	f.about[s] = x
}

// read adds the messages of the queue that it has not read.
func (f *Open) read(ctx context.Context, q *gateway.Rooms) {
	var before uuid.UUID
	newest := f.newest
	for n := 0; n < maxFailureScan; n += pageSize {
		entries, next, err := q.Outbox.Messages().Page(ctx, before, pageSize)
		if err != nil {
			return // the next page reads them
		}
		for _, e := range entries {
			at := e.Message.Created
			if at.After(newest) {
				newest = at
			}
			var s queued.Summary
			if outbox.IsPlanned(e) || s.Decode(e.Message.Summary) != nil || s.Known != "" || s.Asks {
				continue
			}
			f.add(Subject{s.Site, s.Key, s.Source, s.Incident}, s.Type, at, e.Message.ID)
		}
		if before = next; next == (uuid.UUID{}) || entries[len(entries)-1].Message.Created.Before(f.newest.Add(-failureOverlap)) {
			break
		}
	}
	f.newest = newest
}

// forget drops what is over, and what the queue does not keep any more. Of too many, it drops any.
func (f *Open) forget(now time.Time, keep time.Duration) {
	for s, x := range f.about {
		over := !x.Failed.After(x.succeeded) && now.Sub(x.succeeded) > failureOverlap
		if over || now.Sub(x.Failed) > keep && now.Sub(x.succeeded) > keep || len(f.about) > maxFailures {
			delete(f.about, s)
		}
	}
}

// Failure is a failure that no success has followed.
type Failure struct {
	Subject
	Followed
}

// Of returns the failures of a site that no success has followed, the newest first. q is nil without a
// queue.
func (f *Open) Of(ctx context.Context, siteID string, q *gateway.Rooms, h *history.History) (open []Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.about == nil || q == nil { // the history has all
		f.about = map[Subject]Followed{}
	}
	if q != nil {
		f.read(ctx, q)
		f.forget(q.Outbox.Queue.Now(), q.Outbox.Queue.Keep())
	}
	for _, e := range h.List() {
		if e.Site != siteID || e.ID != "" || e.Outcome == site.OutcomeRefused || e.IncidentID != "" {
			continue // what has an ID is in the queue
		}
		s := Subject{Site: e.Site, Key: string(e.Key), Source: e.Source, Incident: e.Incident}
		f.add(s, e.Type, e.Time, uuid.UUID{})
	}
	for s, x := range f.about {
		if s.Site == siteID && x.Failed.After(x.succeeded) {
			open = append(open, Failure{s, x})
		}
	}
	slices.SortFunc(open, func(a, b Failure) int { return cmp.Or(b.Failed.Compare(a.Failed), cmp.Compare(a.Key, b.Key)) })
	return open
}
