package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// queueActions retries, hurries and drops deliveries in the queue.
type queueActions struct{ *shared }

// Limits of the page of a key.
const (
	maxPageRecent  = 20     // messages and refusals; equal ones count once
	maxKeyScan     = 300    // messages searched for the key's
	maxPageResults = 10     // results per message
	maxPageGroups  = 50     // groups of deliveries in the queue
	maxPageQueued  = 50     // messages per group
	maxStepScan    = 500    // messages whose steps silences may keep back
	maxPageScanned = 10_000 // deliveries in the queue searched for the key's
)

// setRecent sets the latest messages of a key and its messages in the queue, if they came to the
// site. key is nil if the saved configuration cannot be used; then no titles are known.
func (h *keyPages) setRecent(r *http.Request, p *view.KeyPage, key *httpapi.Lookup) {
	id := site.KeyID{Site: h.Site(), Key: p.Key}
	search := messageSearch{filter: messageFilter{key: p.Key}, scan: maxKeyScan}
	if key != nil {
		search.titles = h.messages.titles(r)
		search.titles.found = key
	}
	list, err := h.messages.listMessages(r, search)
	if err == nil {
		p.Recent = list.messages
		if list.stored {
			p.RecentHint = "Equal ones are one line. Refused requests are the latest since the gateway started."
		} else {
			p.RecentHint = "Equal ones are one line. These are the latest messages and refused requests since the gateway started."
		}
	}
	for i := range p.Recent {
		p.Recent[i].Key = ""
	}
	p.Recent = view.Group(p.Recent, maxPageRecent)
	if q, err := h.App.Open(nil); err != nil {
		p.Queue = &view.Queue{Problem: httpapi.ErrQueueUnread}
	} else if q != nil {
		p.Queue = newPageQueue(r.Context(), q, id)
	}
}

// newPageQueue returns the waiting and dead deliveries of a key, grouped by destination and reason.
// If the queue is long, it covers only the oldest messages.
func newPageQueue(ctx context.Context, q *gateway.Rooms, key site.KeyID) *view.Queue {
	ctx, cancel := context.WithTimeout(ctx, outbox.AdminTimeout)
	defer cancel()
	p := new(view.Queue)
	type groupID struct {
		outcome                view.Outcome
		name, url, destination string
		reason                 string
		hold                   string
	}
	at := map[groupID]int{}
	silenced := silencedSteps(ctx, q)
	for _, status := range []queue.Status{queue.Dead, queue.Queued, queue.Sending, queue.Held} {
		after := queue.JobID{}
		for scanned := 0; ; scanned += outbox.MaxQueuePage {
			if scanned >= maxPageScanned {
				p.More = true
				break
			}
			jobs, err := q.Outbox.Queue.List(ctx, after, outbox.MaxQueuePage, status)
			if err != nil {
				return &view.Queue{Problem: httpapi.ErrQueueUnread}
			}
			for i := range jobs {
				d := outbox.NewDeadDelivery(&jobs[i])
				if d.Key() != key {
					continue
				}
				g := view.QueuedGroup{
					Named: named(d.Result.Service, d.Result.Destination), Tags: strings.Join(d.Result.Tags, ", "),
					URL: d.Result.Destination, Outcome: view.Queued,
				}
				if status == queue.Dead {
					g.Outcome, g.Reason = view.GivenUp, d.Reason
				} else if r := queued.JobResult(&jobs[i]); r.Error != nil {
					g.Reason = *r.Error
				} else if r.Rule != "" {
					g.Outcome, g.Hold = view.Held, holdText(r.Rule)
					if r.Rule == notifier.RuleEscalating {
						g.Outcome = view.Later
						if s := silenced(jobs[i].Message); s.Keeps(d.Result.Destination, jobs[i].Due) {
							g.Outcome, g.Hold, jobs[i].Due = view.Held, "A silence keeps the next step back.", s.Until
						}
					}
				}
				id := groupID{g.Outcome, g.Name, g.URL, jobs[i].Destination, g.Reason, g.Hold}
				n, ok := at[id]
				if !ok {
					if len(p.Groups) == maxPageGroups {
						p.More = true
						continue
					}
					n = len(p.Groups)
					at[id], p.Groups = n, append(p.Groups, g)
				}
				addToGroup(&p.Groups[n], &jobs[i])
				p.More = p.More || p.Groups[n].Count > maxPageQueued
			}
			if len(jobs) < outbox.MaxQueuePage {
				break
			}
			after = jobs[len(jobs)-1].JobID
		}
	}
	return p
}

// silencedSteps returns a function that returns what silences keep back of the incident of a message.
func silencedSteps(ctx context.Context, q *gateway.Rooms) func(uuid.UUID) *alerting.Silenced {
	known := map[uuid.UUID]*alerting.Silenced{}
	return func(id uuid.UUID) *alerting.Silenced {
		if known[id] != nil || len(known) == maxStepScan {
			return cmp.Or(known[id], new(alerting.Silenced))
		}
		s := new(alerting.Silenced)
		known[id] = s
		if e, err := q.Outbox.Queue.Get(ctx, id); err == nil { // else the page shows the rest
			if x := q.Alerts.Incidents.OfMessage(ctx, e.Message); x != nil {
				*s, _ = q.Alerts.Silences.Of(ctx, x)
			}
		}
		return s
	}
}

// holdText says why a rule holds a delivery.
func holdText(rule notifier.Rule) string {
	switch rule {
	case notifier.RuleEscalating:
		return "A later step of the escalation, which is not needed if somebody acknowledges."
	case notifier.RulePlanned:
		return "Planned by its sender."
	case notifier.RuleSilenced:
		return "A silence matches it."
	case notifier.RuleDigested:
		return "It will be part of a digest."
	}
	return "A rule of the key holds it."
}

// addToGroup adds a delivery to its group. A message that occurs several times, once in each round
// of an escalation, counts once.
func addToGroup(g *view.QueuedGroup, j *queue.Job) {
	if j.Status != queue.Dead && (g.Next.IsZero() || j.Due.Before(g.Next)) {
		g.Next = j.Due
	}
	if n := len(g.Messages); n > 0 && g.Messages[n-1].ID == j.Message.String() {
		return // the deliveries of a message follow one another
	}
	g.Count++
	came := messageTime(j.Message)
	if g.First.IsZero() || came.Before(g.First) {
		g.First = came
	}
	if len(g.Messages) < maxPageQueued {
		g.Messages = append(g.Messages, view.MessageLink{ID: j.Message.String(), Time: came})
	}
}

// messageTime returns the time at which a message arrived, which its ID contains.
func messageTime(id uuid.UUID) time.Time {
	seconds, nanoseconds := id.Time().UnixTime()
	return time.Unix(seconds, nanoseconds)
}

// The query parameters of a POST to the address of a key that change a message in the queue. The
// field id is the ID of the message.
const (
	retryQuery = "retry"
	dropQuery  = "drop"
)

// retryQueued queues the dead deliveries of a message again.
func (h *queueActions) retryQueued(w http.ResponseWriter, r *http.Request, key string) error {
	return h.changeQueued(w, r, key, retryMessage)
}

// dropQueued drops the waiting and dead deliveries of a message.
func (h *queueActions) dropQueued(w http.ResponseWriter, r *http.Request, key string) error {
	return h.changeQueued(w, r, key, dropMessage)
}

// changeQueued calls do with a message of a key and redirects a browser to the page.
func (h *queueActions) changeQueued(w http.ResponseWriter, r *http.Request, name string, do changeFunc) error {
	if err := h.readPageForm(w, r); err != nil {
		return err
	}
	q, err := h.App.Open(nil)
	if err != nil {
		return err
	}
	ids := r.PostForm["id"]
	if q == nil || len(ids) == 0 || len(ids) > maxPageQueued {
		return outbox.ErrNoMessage
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), outbox.AdminTimeout)
	defer cancel()
	n, found := 0, false
	for _, text := range ids {
		id, err := uuid.Parse(text)
		if err != nil {
			return outbox.ErrNoMessage
		}
		e, err := q.Outbox.Messages().Get(ctx, h.Site(), id)
		if err == nil && !isOfKey(e, site.KeyID{Site: h.Site(), Key: name}) {
			err = outbox.ErrNoMessage
		}
		if errors.Is(err, outbox.ErrNoMessage) && len(ids) > 1 {
			continue // it was delivered meanwhile
		}
		if err != nil {
			return err
		}
		changed, err := do(ctx, messagesOf(r, q), id)
		if err != nil {
			return err
		}
		n, found = n+changed, true
	}
	if !found {
		return outbox.ErrNoMessage
	}
	if !api.PrefersHTML(r) {
		return httpapi.WriteJSON(w, http.StatusOK, map[string]int{"deliveries": n})
	}
	return httpapi.SeeOther(w, httpapi.ConsoleKey(r, name), tabQuery+"="+string(view.TabMessages)+"#queue")
}

// messagesOf returns the messages in the queue with the client of r as the one who changes them.
func messagesOf(r *http.Request, q *gateway.Rooms) outbox.Messages {
	return q.Outbox.Messages().By(environment.User(r), environment.ClientIP(r))
}

// hurryQuery is the query parameter of a POST that makes waiting deliveries due: for the
// destination in the form or, without one, for all on the page.
const hurryQuery = "hurry"

// hurryKey makes due the waiting and dead deliveries for one destination of a key, or for all of
// them.
func (h *queueActions) hurryKey(w http.ResponseWriter, r *http.Request, name string) error {
	q, ids, err := h.destinationsOfForm(w, r, name)
	if err != nil {
		return err
	}
	n, err := messagesOf(r, q).RetryDestinations(r.Context(), ids, func(ctx context.Context, j *queue.Job) bool {
		return slices.Contains(ids, q.Outbox.Queue.Hash(j.Destination)) && h.mayChange(ctx, j)
	})
	if err != nil {
		return err
	}
	return h.hurried(w, r, httpapi.ConsoleKey(r, name), n)
}

// dropKey drops the deliveries for a destination of a key or, for a form with the field id,
// messages.
func (h *queueActions) dropKey(w http.ResponseWriter, r *http.Request, name string) error {
	q, ids, err := h.destinationsOfForm(w, r, name)
	if err != nil {
		return err
	}
	if r.PostForm.Has("id") {
		return h.dropQueued(w, r, name)
	}
	if len(ids) != 1 || !r.PostForm.Has("destination") {
		return errNoQueuedDestination
	}
	n, err := messagesOf(r, q).DropDestination(r.Context(), ids[0], h.mayChange)
	if err != nil {
		return err
	}
	return h.changedDeliveries(w, r, httpapi.ConsoleKey(r, name)+"#reaches", n)
}

var errNoQueuedDestination = api.Errorf(http.StatusNotFound, "there is no such destination here; load the page again")

// mayChange reports whether managers of the site may drop a delivery or retry a dead one: its
// message came to the site, or its key is shared with the site, like a global key. Managers of any
// site may change messages of a site that is no longer in the configuration, because no other page
// shows them.
func (h *queueActions) mayChange(ctx context.Context, j *queue.Job) bool {
	var state queued.State
	if state.Decode(j.State) != nil || state.Site == h.Site() {
		return true
	}
	others := h.App.Conf.SitesWithID(state.Site)
	if others == nil {
		return true
	}
	own, err := h.Resolved.Key(ctx, state.Key)
	return err == nil && !own.OfSite && slices.ContainsFunc(others, func(s *site.Site) bool {
		k, err := s.Key(ctx, state.Key)
		return err == nil && k.Home(state.Site) == own.Home(state.Site)
	})
}

// destinationsOfForm reads the form of a button. It returns the queue and the destination in the
// form, or all destinations of the key.
func (h *queueActions) destinationsOfForm(w http.ResponseWriter, r *http.Request, name string) (*gateway.Rooms, []queue.Hash, error) {
	if err := h.readPageForm(w, r); err != nil {
		return nil, nil, err
	}
	q, err := h.App.Open(nil)
	if err == nil && q == nil {
		err = errNoQueuedDestination
	}
	if err != nil {
		return nil, nil, err
	}
	k, err := h.Resolved.Key(r.Context(), name)
	if err != nil {
		return nil, nil, err
	}
	wanted := r.PostForm.Get("destination")
	var ids []queue.Hash
	for _, t := range k.Targets {
		id := q.Outbox.DestinationID(t, k.Limits)
		if wanted == "" || wanted == EncodeDestination(id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, nil, errNoQueuedDestination
	}
	return q, slices.Compact(ids), nil
}

// hurried answers a form that has made deliveries due, with the page at an address.
func (h *queueActions) hurried(w http.ResponseWriter, r *http.Request, address string, n queue.Retried) error {
	if !api.PrefersHTML(r) {
		return httpapi.WriteJSON(w, http.StatusOK, map[string]int{"deliveries": n.Queued + n.Dead, "waiting": n.Queued, "dead": n.Dead})
	}
	query := url.Values{"done": {hurryQuery}, "waiting": {strconv.Itoa(n.Queued)}, "dead": {strconv.Itoa(n.Dead)}}
	return httpapi.SeeOther(w, address, query.Encode())
}

// changedDeliveries answers a form that has changed deliveries.
func (h *queueActions) changedDeliveries(w http.ResponseWriter, r *http.Request, address string, n int) error {
	if !api.PrefersHTML(r) {
		return httpapi.WriteJSON(w, http.StatusOK, map[string]int{"deliveries": n})
	}
	return httpapi.SeeOther(w, address, "")
}

// isOfKey reports whether a message has waiting or dead deliveries, all of them for the key.
func isOfKey(e *queue.Entry, key site.KeyID) bool {
	found := false
	for i := range e.Jobs {
		j := &e.Jobs[i]
		if !j.Status.Waits() && j.Status != queue.Dead {
			continue
		}
		if outbox.NewDeadDelivery(j).Key() != key {
			return false
		}
		found = true
	}
	return found
}
