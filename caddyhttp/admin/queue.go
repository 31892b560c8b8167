package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Queue is the JSON response about the queue: counts, and one page of
// deliveries.
type Queue struct {
	Queued  int        `json:"queued"`
	Sending int        `json:"sending"`
	Dead    int        `json:"dead"`
	Bytes   int64      `json:"bytes"`            // size of the messages that wait, and of the records of rules
	Records int64      `json:"record_bytes"`     // size of the records alone
	Oldest  *time.Time `json:"oldest,omitempty"` // when the oldest message that waits came in

	// OldSecrets is "needed" while something is sealed under an old secret, then "not needed". It is
	// empty if the configuration has no old secret, and shortly after the start.
	OldSecrets       string `json:"old_secrets,omitempty"`
	OldSecretRecords int    `json:"old_secret_records,omitempty"` // how many records need one, if the store counts them

	Deliveries []Delivery `json:"deliveries"`
	Next       string     `json:"next,omitempty"` // address of the next page
}

// Delivery is the JSON of a delivery in the queue.
type Delivery struct {
	ID       string `json:"id"` // of the message
	Key      string `json:"key"`
	Source   string `json:"source"`
	Incident string `json:"incident,omitempty"`
	message.QueuedResult
	Expires time.Time `json:"expires"` // when it is given up
}

// defaultQueuePage is the number of deliveries on a page.
const defaultQueuePage = 100

// serveQueue lists the deliveries that wait, in the order of their messages.
func serveQueue(w http.ResponseWriter, r *http.Request) error {
	return serveDeliveries(w, r, queue.Queued, queue.Sending, queue.Held)
}

// serveDead lists the deliveries that were given up.
func serveDead(w http.ResponseWriter, r *http.Request) error {
	return serveDeliveries(w, r, queue.Dead)
}

func serveDeliveries(w http.ResponseWriter, r *http.Request, statuses ...queue.Status) error {
	q, err := runningQueue()
	if err != nil {
		return err
	}
	after, limit, err := parsePage(r.URL.Query())
	if err != nil {
		return apiError(http.StatusBadRequest, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	s, err := q.Outbox.Queue.Stats(ctx)
	if err != nil {
		return apiError(http.StatusServiceUnavailable, err)
	}
	out := Queue{Queued: s.Queued, Sending: s.Sending, Dead: s.Dead, Bytes: s.Bytes, Records: s.Records, Deliveries: []Delivery{}}
	if !s.Oldest.IsZero() {
		out.Oldest = &s.Oldest
	}
	if old, known := q.Outbox.Queue.OldSecrets(); known && old.Set {
		out.OldSecrets, out.OldSecretRecords = "not needed", old.Records
		if old.Needed() {
			out.OldSecrets = "needed"
		}
	}
	jobs, err := q.Outbox.Queue.List(ctx, after, limit, statuses...)
	if err != nil {
		return apiError(http.StatusServiceUnavailable, err)
	}
	if len(jobs) == limit {
		last := jobs[limit-1].JobID
		out.Next = r.URL.Path + "?" +
			url.Values{"after": {fmt.Sprintf("%s.%d", last.Message, last.Index)}, "limit": {strconv.Itoa(limit)}}.Encode()
	}
	for i := range jobs {
		d := outbox.NewDeadDelivery(&jobs[i])
		if jobs[i].Status != queue.Dead {
			d.Result = queued.JobResult(&jobs[i])
		}
		out.Deliveries = append(out.Deliveries, Delivery{d.ID, d.State.Key, d.State.Source, d.State.Incident, d.Result, jobs[i].Expires})
	}
	return writeJSON(w, out)
}

// parsePage reads the parameters after and limit.
func parsePage(query url.Values) (after queue.JobID, limit int, err error) {
	limit = defaultQueuePage
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > outbox.MaxQueuePage {
			return after, 0, fmt.Errorf("limit must be a number from 1 to %d", outbox.MaxQueuePage)
		}
	}
	if text := query.Get("after"); text != "" {
		id, index, _ := strings.Cut(text, ".")
		message, err := uuid.Parse(id)
		n, err2 := strconv.ParseUint(index, 10, 31)
		if err != nil || err2 != nil || n > math.MaxInt32 {
			return after, 0, errors.New("after is malformed; use the address that the field next has")
		}
		after = queue.JobID{Message: message, Index: int(n)}
	}
	return after, limit, nil
}

// changeJSON is the JSON response to a change: the numbers of deliveries.
type changeJSON struct {
	Deliveries int `json:"deliveries"` // that were changed
	Waiting    int `json:"waiting"`    // of them, those that waited
	Dead       int `json:"dead"`       // of them, those that were given up
}

func newChangeJSON(n queue.Retried) changeJSON {
	return changeJSON{Deliveries: n.Dead + n.Queued, Waiting: n.Queued, Dead: n.Dead}
}

// serveRetryAll makes all deliveries due that wait or were given up. Those that a rule holds
// stay held.
func serveRetryAll(w http.ResponseWriter, r *http.Request) error {
	q, err := runningQueue()
	if err != nil {
		return err
	}
	n, err := q.Outbox.Messages().RetryAll(r.Context())
	if err != nil {
		return answerError(w, err)
	}
	return writeJSON(w, newChangeJSON(n))
}

// serveMessage shows a message with all its deliveries.
func serveMessage(w http.ResponseWriter, r *http.Request) error {
	return respondForMessage(w, r, func(ctx context.Context, m outbox.Messages, id uuid.UUID) (any, error) {
		e, err := m.OfAnySite(ctx, id)
		if err != nil {
			return nil, err
		}
		return queued.Message(e), nil
	})
}

// serveRetry makes the deliveries of a message due that wait or were given up.
func serveRetry(w http.ResponseWriter, r *http.Request) error {
	return respondForMessage(w, r, func(ctx context.Context, m outbox.Messages, id uuid.UUID) (any, error) {
		n, err := m.Retry(ctx, id)
		return newChangeJSON(n), err
	})
}

// serveDrop cancels the deliveries of a message that wait or were given up.
func serveDrop(w http.ResponseWriter, r *http.Request) error {
	return respondForMessage(w, r, func(ctx context.Context, m outbox.Messages, id uuid.UUID) (any, error) {
		n, err := m.Drop(ctx, id)
		return map[string]int{"deliveries": n}, err
	})
}

// respondForMessage calls do for the message in the path of r, and responds with what it
// returns.
func respondForMessage(w http.ResponseWriter, r *http.Request, do func(context.Context, outbox.Messages, uuid.UUID) (any, error)) error {
	q, err := runningQueue()
	if err != nil {
		return err
	}
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return answerError(w, outbox.ErrNoMessage)
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	out, err := do(ctx, q.Outbox.Messages(), id)
	if err != nil {
		return answerError(w, err)
	}
	return writeJSON(w, out)
}

// runningQueue returns the queue of the running configuration.
func runningQueue() (*gateway.Rooms, error) {
	app, err := runningGateway()
	if err != nil {
		return nil, err
	}
	if app.Rooms == nil {
		return nil, apiError(http.StatusNotFound, errors.New("the running configuration has no queue; add queue to the global option notify"))
	}
	return app.Rooms, nil
}
