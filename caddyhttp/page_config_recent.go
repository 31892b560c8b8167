package caddyhttp

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Limits of the page of a key.
const (
	maxPageRecent  = 20     // messages and refusals
	maxPageResults = 10     // of a message
	maxPageQueued  = 50     // messages in the queue
	maxPageScanned = 10_000 // deliveries in the queue that are searched for those of the key
)

// pageRecent is an entry of the history on the page of a key: a message, or refused requests.
type pageRecent struct {
	Time    time.Time
	Source  string
	Outcome string // a word of outcomeWords
	Class   string // of the color
	Reason  string // of refusals
	Client  string // of refusals: its address
	Lines   []string
	More    int // results that are not shown
}

// outcomeWords has the word and the class of each outcome.
var outcomeWords = map[string]struct{ word, class string }{
	outcomeDelivered: {"Delivered", "log_INFO"},
	outcomeFailed:    {"Failed", "log_ERROR"},
	outcomeQueued:    {"Queued", "log_WARNING"},
	outcomeRefused:   {"Refused", "log_WARNING"},
}

// newPageRecent returns an entry of the history as the page shows it.
func newPageRecent(e historyEntry) pageRecent {
	p := pageRecent{Time: e.Time, Source: e.Source, Outcome: outcomeWords[e.Outcome].word, Class: outcomeWords[e.Outcome].class, Client: e.Client}
	if e.Outcome == outcomeRefused {
		p.Reason = fmt.Sprintf("%d: %s", e.Status, e.Error)
		if e.Count > 1 {
			p.Outcome = fmt.Sprintf("Refused ×%d", e.Count)
		}
		return p
	}
	results := make([]api.Result, 0, len(e.Results)) // failures first
	for _, failed := range []bool{true, false} {
		for _, r := range e.Results {
			if (r.Error != nil) == failed {
				results = append(results, r)
			}
		}
	}
	if p.More = e.Omitted + max(len(results)-maxPageResults, 0); len(results) > maxPageResults {
		results = results[:maxPageResults]
	}
	for _, r := range results {
		p.Lines = append(p.Lines, resultLine(r))
	}
	return p
}

// resultLine returns a result in one line.
func resultLine(r api.Result) string {
	line := r.Service + " " + r.Destination + ": " + string(r.Status)
	if r.Error != nil {
		line += ": " + *r.Error
	}
	return line
}

// pageQueue has the messages of a key in the queue.
type pageQueue struct {
	Problem  string // why the queue is not shown
	Messages []*pageQueued
	More     bool // there may be more
}

// pageQueued is a message in the queue.
type pageQueued struct {
	ID    string
	Time  time.Time
	Dead  int // deliveries that were given up
	Lines []pageDelivery
}

// pageDelivery is a delivery in the queue.
type pageDelivery struct {
	Service, Destination string
	Dead                 bool
	Attempts             int
	Next                 *time.Time // the next attempt
	Reason               string
}

// setRecent sets the last messages of a key and its messages in the queue.
func (p *configPageData) setRecent(h *Handler, ctx context.Context) {
	if p.Ambiguous = !h.solelyDefines(ctx, p.Key); p.Ambiguous {
		return
	}
	for _, e := range h.shared.history.ofKey(p.Key, maxPageRecent) {
		p.Recent = append(p.Recent, newPageRecent(e))
	}
	if q, err := h.app.durable(nil); err != nil {
		p.Queue = &pageQueue{Problem: errQueueUnread}
	} else if q != nil {
		p.Queue = newPageQueue(ctx, q, p.Key)
	}
}

// solelyDefines reports whether no other site of the process defines a key of
// the same name in another way. The history and the queue identify a key only
// by its name.
func (h *Handler) solelyDefines(ctx context.Context, name string) bool {
	own := h.resolved.keys[name]
	for _, site := range append([]*resolved{h.app.resolved}, h.app.sites...) {
		other := site.keys[name]
		switch {
		case own != nil && other != nil:
			if !own.equal(other) {
				return false
			}
		case own != nil && site.saved != nil:
			if site.saved.store.Has(ctx, name, time.Duration(site.saved.Refresh)) {
				return false
			}
		case own == nil && other != nil:
			return false
		}
	}
	return true
}

const errQueueUnread = "The queue cannot be read at the moment."

// newPageQueue returns the messages of a key that wait or were given up. If the
// queue is long, it looks only at the oldest messages.
func newPageQueue(ctx context.Context, q *openQueue, name string) *pageQueue {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	p := new(pageQueue)
	byID := map[uuid.UUID]*pageQueued{}
	for _, status := range []queue.Status{queue.Dead, queue.Queued, queue.Sending} {
		after := queue.JobID{}
		for scanned := 0; ; scanned += maxQueuePage {
			if scanned >= maxPageScanned {
				p.More = true
				break
			}
			jobs, err := q.List(ctx, status, after, maxQueuePage)
			if err != nil {
				return &pageQueue{Problem: errQueueUnread}
			}
			for i := range jobs {
				d := newDeadDelivery(&jobs[i])
				if d.state.Key != name {
					continue
				}
				id := jobs[i].Message
				m := byID[id]
				if m == nil {
					if len(byID) == maxPageQueued {
						p.More = true
						continue
					}
					m = &pageQueued{ID: id.String(), Time: messageTime(id)}
					byID[id] = m
					p.Messages = append(p.Messages, m)
				}
				m.add(&jobs[i], d)
			}
			if len(jobs) < maxQueuePage {
				break
			}
			after = jobs[len(jobs)-1].JobID
		}
	}
	slices.SortFunc(p.Messages, func(a, b *pageQueued) int { return strings.Compare(b.ID, a.ID) }) // the newest first
	return p
}

// messageTime returns when a message came in. Its ID contains the time.
func messageTime(id uuid.UUID) time.Time {
	seconds, nanoseconds := id.Time().UnixTime()
	return time.Unix(seconds, nanoseconds)
}

func (m *pageQueued) add(j *queue.Job, d deadDelivery) {
	if len(m.Lines) == maxPageResults {
		return
	}
	line := pageDelivery{Service: d.result.Service, Destination: d.result.Destination, Attempts: j.Attempts}
	if line.Dead = j.Status == queue.Dead; line.Dead {
		m.Dead++
		line.Reason = d.reason
	} else {
		line.Next = &j.Due
		if r := jobResult(j); r.Error != nil {
			line.Reason = *r.Error
		}
	}
	m.Lines = append(m.Lines, line)
}

// The query parameters of a POST to the address of a key that change a message
// in the queue. The field id is the ID of the message.
const (
	retryQuery = "retry"
	dropQuery  = "drop"
)

// changeQueued changes a message of a key: it queues again the deliveries that
// were given up, or drops those that wait or were given up. Browsers are sent
// back to the page.
func (h *Handler) changeQueued(w http.ResponseWriter, r *http.Request, name, change string) error {
	if err := h.readPageForm(w, r); err != nil {
		return err
	}
	q, err := h.app.durable(nil)
	if err != nil {
		return err
	}
	id, err := uuid.Parse(r.PostForm.Get("id"))
	if q == nil || err != nil || !h.solelyDefines(r.Context(), name) {
		return errNoMessage
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), adminTimeout)
	defer cancel()
	e, err := q.Get(ctx, id)
	if err != nil {
		return messageError(err)
	}
	if !isOfKey(e, name) {
		return errNoMessage
	}
	do := q.Retry
	if change == dropQuery {
		do = q.Drop
	}
	n, err := do(ctx, id)
	if err != nil {
		return messageError(err)
	}
	client, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	h.log.Info("queued message changed", zap.String("key", name), zap.String("id", id.String()), zap.String("change", change),
		zap.Int("deliveries", n), zap.String("user", requestUser(r)), zap.String("client_ip", client))
	if !api.PrefersHTML(r) {
		return writeJSON(w, http.StatusOK, map[string]int{"deliveries": n})
	}
	w.Header().Set("Location", configPage(r)+"#queue")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// isOfKey reports whether a message has deliveries that wait or were given up,
// and all of them are for the key.
func isOfKey(e *queue.Entry, name string) bool {
	found := false
	for i := range e.Jobs {
		j := &e.Jobs[i]
		if !j.Status.Waits() && j.Status != queue.Dead {
			continue
		}
		if newDeadDelivery(j).state.Key != name {
			return false
		}
		found = true
	}
	return found
}
