package bars

import (
	"encoding/binary"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/tally"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The query parameters of the list of messages to which bars lead.
const (
	halfQuery = "half" // when a half hour begins
	toQuery   = "to"   // the URL of a destination, as pages show it
)

// Queries are the query parameters of the list of messages to which bars lead.
var Queries = []string{halfQuery, toQuery}

// Half selects the messages of a half hour, and those to a destination. Zero fields select all.
type Half struct {
	From time.Time
	To   string // the URL as pages show it
}

// ParseHalf returns what a query selects.
func ParseHalf(query url.Values) (h Half, err error) {
	h.To = query.Get(toQuery)
	if text := query.Get(halfQuery); text != "" {
		if h.From, err = time.Parse(view.HalfFormat, text); err != nil {
			return h, api.Errorf(http.StatusBadRequest, "half must be the time at which a half hour begins, such as 20260301T1230Z")
		}
	}
	return h, nil
}

// Until returns when the half hour ends.
func (h *Half) Until() time.Time { return h.From.Add(tally.Length) }

// Chips returns what is selected, with the address at which it is not. without returns the address of
// the list without a query parameter.
func (h *Half) Chips(without func(name string) string) (out []view.Chip) {
	if !h.From.IsZero() {
		out = append(out, view.Chip{
			From: h.From, Until: h.Until(), Name: halfQuery, Value: h.From.Format(view.HalfFormat), Without: without(halfQuery),
		})
	}
	if h.To != "" {
		scheme, _, _ := strings.Cut(h.To, "://")
		service := scheme
		if s := notifier.FindService(scheme); s != nil {
			service = s.Name
		}
		out = append(out, view.Chip{Text: "to " + notifier.NameOf(service, h.To), Name: toQuery, Value: h.To, Without: without(toQuery)})
	}
	return out
}

// Before returns an ID that is greater than those of the messages which came in before the end of the
// half hour, or the zero ID if it selects all. After the clock was set back, IDs are later than their times.
func (h *Half) Before() (id uuid.UUID) {
	if h.From.IsZero() {
		return id
	}
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(h.Until().UnixMilli(), 0)))
	copy(id[:], ms[2:])
	id[6], id[8] = 0x70, 0x80 // version 7
	return id
}

// Has reports whether a time is selected.
func (h *Half) Has(t time.Time) bool {
	return h.From.IsZero() || !t.Before(h.From) && t.Before(h.Until())
}

// Fits reports whether a message of the queue is selected: it came in then, or one of its deliveries
// arrived, failed or was tried then.
func (h *Half) Fits(e *queue.Entry, results []message.QueuedResult) bool {
	if *h == (Half{}) {
		return true
	}
	came := h.Has(e.Message.Created)
	for i := range min(len(results), len(e.Jobs)) {
		if h.To != "" && results[i].Destination != h.To {
			continue
		}
		if came || h.happened(&e.Jobs[i]) {
			return true
		}
	}
	return came && h.To == ""
}

// happened reports whether a delivery arrived, failed or was tried then.
func (h *Half) happened(j *queue.Job) bool {
	switch j.Status {
	case queue.Delivered, queue.Dead, queue.Failed:
		if h.Has(j.Updated) {
			return true
		}
	}
	return slices.ContainsFunc(queued.Tries(j.Result), func(t queued.Try) bool { return h.Has(t.At) })
}

// FitsHistory reports whether a message of the history is selected.
func (h *Half) FitsHistory(t time.Time, results []message.Result) bool {
	return h.Has(t) && (h.To == "" || slices.ContainsFunc(results, func(r message.Result) bool { return r.Destination == h.To }))
}
