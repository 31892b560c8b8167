package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// openFailures finds failures that no success has followed. The situation is not quiet while there
// is one. Failures whose incidents are stored are not among them, because the incidents are listed.
//
// It remembers what it has read of the queue, so that a page reads only newer messages.
type openFailures struct {
	mu     sync.Mutex
	about  map[failureSubject]followed
	newest time.Time // when the newest message that was read came in
}

// failureSubject is what a failure is about: its incident or, without one, everything that the
// source sends to the key without an incident.
type failureSubject struct{ site, key, source, incident string }

// followed has the last failure about a subject and the time of the last success.
type followed struct {
	failed, succeeded time.Time
	id                uuid.UUID // of the failure; zero if only the history has it
}

// Bounds of what is read and remembered.
const (
	maxFailureScan = 5000        // messages that are read after a start
	maxFailures    = 1000        // subjects that are remembered
	failureOverlap = time.Minute // clocks of gateways differ
	maxNowFailures = 10          // that the page lists
)

// ownSources are the sources of messages that the gateway makes about something that the pages show
// elsewhere, and of tests.
var ownSources = []string{
	site.SourceTest, site.SourceOwnEvent, site.SourceFallback, site.SourceDigest, site.SourceExpect, site.SourceDevice, site.SourceAsk,
	site.SourceCallback, site.SourceEscalation, site.SourceSilence,
}

// add adds a message about a subject.
func (f *openFailures) add(s failureSubject, t notifier.Type, at time.Time, id uuid.UUID) {
	if slices.Contains(ownSources, s.source) {
		return
	}
	x := f.about[s]
	switch {
	case t == notifier.Failure && at.After(x.failed):
		x.failed, x.id = at, id
	case t == notifier.Success && at.After(x.succeeded):
		x.succeeded = at
	default:
		return
	}
	f.about[s] = x
}

// read adds the messages of the queue that it has not read.
func (f *openFailures) read(ctx context.Context, q *gateway.Rooms) {
	var before uuid.UUID
	newest := f.newest
	for n := 0; n < maxFailureScan; n += messagesPerRead {
		entries, next, err := q.Outbox.Messages().Page(ctx, before, messagesPerRead)
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
			f.add(failureSubject{s.Site, s.Key, s.Source, s.Incident}, s.Type, at, e.Message.ID)
		}
		if before = next; next == (uuid.UUID{}) || entries[len(entries)-1].Message.Created.Before(f.newest.Add(-failureOverlap)) {
			break
		}
	}
	f.newest = newest
}

// forget drops what is over, and what the queue does not keep any more. Of too many, it drops any.
func (f *openFailures) forget(now time.Time, keep time.Duration) {
	for s, x := range f.about {
		over := !x.failed.After(x.succeeded) && now.Sub(x.succeeded) > failureOverlap
		if over || now.Sub(x.failed) > keep && now.Sub(x.succeeded) > keep || len(f.about) > maxFailures {
			delete(f.about, s)
		}
	}
}

// openFailure is a failure that no success has followed.
type openFailure struct {
	failureSubject
	followed
}

// openFailures returns the failures of the site that no success has followed, the newest first.
func (h *shared) openFailures(ctx context.Context, q *gateway.Rooms) (open []openFailure) {
	f, siteID := &h.failures, h.Site()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.about == nil || q == nil { // the history has all
		f.about = map[failureSubject]followed{}
	}
	if q != nil {
		f.read(ctx, q)
		f.forget(q.Outbox.Queue.Now(), q.Outbox.Queue.Keep())
	}
	for _, e := range h.Shared.History.List() {
		if e.Site != siteID || e.ID != "" || e.Outcome == site.OutcomeRefused || e.IncidentID != "" {
			continue // what has an ID is in the queue
		}
		s := failureSubject{site: e.Site, source: e.Source, incident: e.Incident}
		if e.Key != nil {
			s.key = *e.Key
		}
		f.add(s, e.Type, e.Time, uuid.UUID{})
	}
	for s, x := range f.about {
		if s.site == siteID && x.failed.After(x.succeeded) {
			open = append(open, openFailure{s, x})
		}
	}
	slices.SortFunc(open, func(a, b openFailure) int { return cmp.Or(b.failed.Compare(a.failed), cmp.Compare(a.key, b.key)) })
	return open
}

// setFailures sets the failures that no success has followed.
func (h *nowPage) setFailures(r *http.Request, p *view.NowPage, s *situation) {
	p.MoreFailures = max(len(s.failures)-maxNowFailures, 0)
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	for _, x := range s.failures[:len(s.failures)-p.MoreFailures] {
		m := view.ListedMessage{Time: x.failed, Key: x.key, Source: x.source, Incident: x.incident, Type: string(notifier.Failure)}
		if x.id != (uuid.UUID{}) {
			m.ID, m.Address = x.id.String(), httpapi.AddressOf(r, httpapi.RouteConsoleMessages)+"/"+x.id.String()
		}
		if x.key != "" {
			m.KeyAddress = httpapi.ConsoleKey(r, x.key)
		}
		p.Failures = append(p.Failures, m)
	}
	if h.messages.titles(r).set(ctx, p.Failures) != nil {
		p.Problem = httpapi.ErrQueueUnread
	}
}
