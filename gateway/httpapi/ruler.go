package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/ruler"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs"
	"github.com/caddy-notify/caddy-notify/internal/version"
)

// rulers accepts alerts from rulers, such as Prometheus, at the addresses of Alertmanager's API:
// /notify/{KEY}/prometheus.
type rulers struct {
	*Base
	sender  *Sender
	sources *sources
	started time.Time
}

// Errors for rulers.
var (
	errRulerWithoutQueue = api.Errorf(http.StatusForbidden,
		"the alerts of a ruler are kept in the queue, and there is none; the operator can add queue to the global option notify")
	errRulerUnqueued = api.Errorf(http.StatusForbidden,
		"the alerts of a ruler are kept in the queue, which this key does not use; the operator can remove its queue off")
)

// serveAlerts accepts alerts, or shows the open ones.
func (h *rulers) serveAlerts(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodPost {
		if err := h.take(w, r, at); err != nil {
			return h.sender.notSent(r, at, err)
		}
		return h.answer(r, writeOK(w))
	}
	err := at.CheckMethod(w, r)
	if err == nil {
		err = h.list(w, r, at)
	}
	return h.answer(r, err)
}

// answer returns the response to r for an error, or nil if the response is written.
func (h *rulers) answer(r *http.Request, err error) *api.Response {
	if err == nil {
		return nil
	}
	return h.ErrorResponse(r, err)
}

// admit returns the key of a request and its open queue, if the client may send to the key.
func (h *rulers) admit(r *http.Request, at *Route) (*site.Key, *gateway.Rooms, error) {
	s, req := source.WithToken(site.SourceRuler, h.Resolved.Ruler.Token), source.NewRequest(r)
	if _, err := s.AuthenticateHeader(req); err != nil {
		return nil, nil, SourceError(err)
	}
	to := *at
	to.Source = site.SourceRuler
	found, err := newSourceKey(r.Context(), &to, s, req)
	if err == nil {
		err = found.check()
	}
	if err != nil {
		return nil, nil, err
	}
	q, err := h.openQueue(found.Key)
	return found.Key, q, err
}

// openQueue returns the open queue of a key.
func (h *rulers) openQueue(k *site.Key) (*gateway.Rooms, error) {
	q, err := h.App.Open(k)
	switch {
	case err != nil:
		return nil, err
	case q == nil && k.Unqueued && h.Has.Queue:
		return nil, errRulerUnqueued
	case q == nil:
		return nil, errRulerWithoutQueue
	}
	return q, nil
}

// take stores the alerts of a request.
func (h *rulers) take(w http.ResponseWriter, r *http.Request, at *Route) error {
	k, q, err := h.admit(r, at)
	if err != nil {
		return err
	}
	if err := h.CheckOrigin(r); err != nil {
		return err
	}
	e, err := h.sender.Enter(r, true)
	if err != nil {
		return err
	}
	defer e.Leave()
	p, err := api.ReadPayload(w, r, h.sender.Limits(false))
	if err != nil {
		return err
	}
	defer p.Close()
	req := source.NewRequest(r)
	req.Body, _, _ = p.Payload()
	alerts, err := programs.ReadRulerAlerts(req.Text(), q.Outbox.Queue.Now())
	if err != nil {
		return SourceError(err)
	}
	origin := ruler.Origin{Site: h.Site(), Key: k, Ruler: h.Resolved.Ruler}
	if err := q.Rulers.Post(context.WithoutCancel(r.Context()), origin, alerts); err != nil {
		return outbox.QueueError(err)
	}
	return nil
}

// list shows the open alerts of a key.
func (h *rulers) list(w http.ResponseWriter, r *http.Request, at *Route) error {
	k, err := h.toRead(r, at.Lookup())
	if err != nil {
		return err
	}
	q, err := h.openQueue(k)
	if err != nil {
		return err
	}
	open, err := q.Rulers.Open(r.Context(), k.Place(h.Site()))
	if err != nil {
		return Answer(err)
	}
	out := make([]programs.RulerAlert, 0, len(open))
	for i := range open {
		out = append(out, programs.NewRulerAlert(k.Name, &open[i]))
	}
	return WriteJSON(w, http.StatusOK, out)
}

// toRead returns a key if the client of r may read its alerts.
func (h *rulers) toRead(r *http.Request, key *Lookup) (*site.Key, error) {
	if h.MayManage(r) == nil {
		return key.Key(r.Context())
	}
	k, _, err := key.open(r.Context())
	if err == nil && !source.HasToken(source.NewRequest(r), k.Readers.Has) {
		err = errNoReader
	}
	return k, err
}

// serveStatus answers with a status like Alertmanager's.
func (h *rulers) serveStatus(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	return h.serveProbe(w, r, at, func() error {
		return WriteJSON(w, http.StatusOK, programs.NewRulerStatus(version.Agent, h.started))
	})
}

// serveHealthy says that the gateway runs.
func (h *rulers) serveHealthy(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	return h.serveProbe(w, r, at, func() error { return writeOK(w) })
}

// serveReady reports whether the queue can be read. If not, alerts cannot be stored.
func (h *rulers) serveReady(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	return h.serveProbe(w, r, at, func() error {
		k, err := at.Lookup().Key(r.Context())
		if err != nil {
			return err
		}
		q, err := h.openQueue(k)
		if err != nil {
			return err
		}
		if _, err := q.Outbox.Queue.Stats(r.Context()); err != nil {
			return outbox.QueueError(err)
		}
		return writeOK(w)
	})
}

// serveProbe answers a client that may send, with write.
func (h *rulers) serveProbe(w http.ResponseWriter, r *http.Request, at *Route, write func() error) *api.Response {
	w.Header().Set("Cache-Control", "no-store")
	err := at.CheckMethod(w, r)
	if err == nil {
		_, _, err = h.admit(r, at)
	}
	if err == nil {
		err = write()
	}
	return h.answer(r, err)
}

func writeOK(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := w.Write([]byte("OK\n"))
	return err
}
