package caddyhttp

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

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// adminQueue is the JSON response about the queue: counts, and one page of
// deliveries.
type adminQueue struct {
	Queued  int        `json:"queued"`
	Sending int        `json:"sending"`
	Dead    int        `json:"dead"`
	Bytes   int64      `json:"bytes"`            // size of the messages that wait
	Oldest  *time.Time `json:"oldest,omitempty"` // when the oldest message that waits came in

	Deliveries []adminDelivery `json:"deliveries"`
	Next       string          `json:"next,omitempty"` // address of the next page
}

// adminDelivery is the JSON of a delivery in the queue.
type adminDelivery struct {
	ID     string `json:"id"` // of the message
	Key    string `json:"key"`
	Source string `json:"source"`
	api.QueuedResult
	Expires time.Time `json:"expires"` // when it is given up
}

// The number of deliveries on a page.
const (
	defaultQueuePage = 100
	maxQueuePage     = 1000
)

// adminTimeout bounds how long the admin API waits for the store.
const adminTimeout = 10 * time.Second

// serveQueue lists the deliveries that wait, in the order of their messages.
func (adminAPI) serveQueue(w http.ResponseWriter, r *http.Request) error {
	return serveDeliveries(w, r, queue.Queued, queue.Sending)
}

// serveDead lists the deliveries that were given up.
func (adminAPI) serveDead(w http.ResponseWriter, r *http.Request) error {
	return serveDeliveries(w, r, queue.Dead)
}

func serveDeliveries(w http.ResponseWriter, r *http.Request, statuses ...queue.Status) error {
	q, err := runningQueue()
	if err != nil {
		return err
	}
	after, limit, err := parsePage(r.URL.Query())
	if err != nil {
		return adminError(http.StatusBadRequest, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	s, err := q.Stats(ctx)
	if err != nil {
		return adminError(http.StatusServiceUnavailable, err)
	}
	out := adminQueue{Queued: s.Queued, Sending: s.Sending, Dead: s.Dead, Bytes: s.Bytes, Deliveries: []adminDelivery{}}
	if !s.Oldest.IsZero() {
		out.Oldest = &s.Oldest
	}
	var jobs []queue.Job
	for _, status := range statuses {
		more, err := q.List(ctx, status, after, limit)
		if err != nil {
			return adminError(http.StatusServiceUnavailable, err)
		}
		jobs = append(jobs, more...)
	}
	queue.SortJobs(jobs)
	if len(jobs) >= limit {
		jobs = jobs[:limit]
		last := jobs[limit-1].JobID
		out.Next = r.URL.Path + "?" + url.Values{"after": {fmt.Sprintf("%s.%d", last.Message, last.Index)}, "limit": {strconv.Itoa(limit)}}.Encode()
	}
	for i := range jobs {
		d := newDeadDelivery(&jobs[i])
		if jobs[i].Status != queue.Dead {
			d.result = jobResult(&jobs[i])
		}
		out.Deliveries = append(out.Deliveries, adminDelivery{d.id, d.state.Key, d.state.Source, d.result, jobs[i].Expires})
	}
	return writeAdminJSON(w, out)
}

// parsePage reads the parameters after and limit.
func parsePage(query url.Values) (after queue.JobID, limit int, err error) {
	limit = defaultQueuePage
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxQueuePage {
			return after, 0, fmt.Errorf("limit must be a number from 1 to %d", maxQueuePage)
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

// serveRetry queues those deliveries of a message again that were given up.
func (adminAPI) serveRetry(w http.ResponseWriter, r *http.Request) error {
	return changeMessage(w, r, (*queue.Queue).Retry)
}

// serveDrop cancels the deliveries of a message that wait or were given up.
func (adminAPI) serveDrop(w http.ResponseWriter, r *http.Request) error {
	return changeMessage(w, r, (*queue.Queue).Drop)
}

// changeMessage calls change for the message in the path of r, and responds
// with the number of changed deliveries.
func changeMessage(w http.ResponseWriter, r *http.Request, change func(*queue.Queue, context.Context, uuid.UUID) (int, error)) error {
	q, err := runningQueue()
	if err != nil {
		return err
	}
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return adminError(http.StatusNotFound, queue.ErrNotFound)
	}
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	n, err := change(q.Queue, ctx, id)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return adminError(http.StatusNotFound, err)
	case err != nil:
		return adminError(http.StatusServiceUnavailable, err)
	}
	return writeAdminJSON(w, map[string]int{"deliveries": n})
}

// runningQueue returns the queue of the running configuration.
func runningQueue() (*openQueue, error) {
	app, err := runningApp()
	if err != nil {
		return nil, err
	}
	if app.queue == nil {
		return nil, adminError(http.StatusNotFound, errors.New("the running configuration has no queue; add queue to the global option notify"))
	}
	return app.queue, nil
}
