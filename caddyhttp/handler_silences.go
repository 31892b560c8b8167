package caddyhttp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Errors for requests about silences.
var (
	errSilencesWithoutQueue = api.Errorf(http.StatusForbidden, "a silence keeps what it holds in the queue, and there is none; the operator can add queue to the global option notify")
	errSilencesUnqueued     = api.Errorf(http.StatusForbidden, "a silence keeps what it holds in the queue, which this key does not use; the operator can remove its queue off")
	errSilencesOff          = api.Errorf(http.StatusForbidden, "silences are for those who may manage, and nobody may here; the operator can add console, or configs with manage")
)

// serveSilences answers a request about the silences of a key, or about one of them.
func (h *httpAPI) serveSilences(w http.ResponseWriter, r *http.Request, at *route) *api.Response {
	err := h.doSilences(w, r, at)
	if err == nil {
		return nil
	}
	resp := h.errorResponse(err)
	if isChange(r) {
		h.refuse(r, at.key, resp.Status, resp.Error, err)
	}
	return resp
}

func (h *httpAPI) doSilences(w http.ResponseWriter, r *http.Request, at *route) error {
	if !slices.Contains(at.methods, r.Method) {
		w.Header().Set("Allow", strings.Join(at.methods, ", "))
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use %s", r.Method, at.methods[0])
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := h.mayManage(r); err != nil {
		if errors.Is(err, site.ErrManageOff) {
			err = errSilencesOff
		}
		return err
	}
	if isChange(r) {
		if err := checkOwnOrigin(r); err != nil {
			return err
		}
	}
	k, q, err := h.silencedKey(r.Context(), at.key)
	if err != nil {
		return err
	}
	switch r.Method {
	case http.MethodPost:
		x, err := readSilenceRequest(w, r)
		if err != nil {
			return err
		}
		made, err := h.makeSilence(r, q, k, x)
		if err != nil {
			return err
		}
		w.Header().Set("Location", messageRoot(r)+site.PathOf(routeSilences, k.Name)+"/"+made.ID.String())
		return writeJSON(w, http.StatusCreated, newSilenceJSON(k.Name, made))
	case http.MethodDelete:
		ended, err := h.endSilence(r, q, k, at.id)
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, newSilenceJSON(k.Name, ended))
	}
	all, err := q.SilencesAt(r.Context(), k.Home(h.site())+"\x00"+k.Name)
	if err != nil {
		return outbox.ErrQueueUnavailable(err)
	}
	if at.id == "" {
		return writeJSON(w, http.StatusOK, newSilencesJSON(k.Name, all))
	}
	found := all.Find(q.Now(), parseSilenceID(at.id))
	if found == nil {
		return silenceError(rules.ErrNoSilence)
	}
	return writeJSON(w, http.StatusOK, newSilenceJSON(k.Name, found))
}

// silencedKey returns a key that can have silences.
func (h *httpAPI) silencedKey(ctx context.Context, name string) (*site.Key, *gateway.Rooms, error) {
	k, err := h.resolved.Key(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	q, err := h.app.Open(k)
	switch {
	case err != nil:
		return nil, nil, err
	case q == nil && k.Unqueued && h.has.queue:
		return nil, nil, errSilencesUnqueued
	case q == nil:
		return nil, nil, errSilencesWithoutQueue
	}
	return k, q, nil
}

// makeSilence makes a silence of a key for the client of r.
func (h *httpAPI) makeSilence(r *http.Request, q *gateway.Rooms, k *site.Key, s silenceRequest) (*rules.Silence, error) {
	x, err := s.silence(requestUser(r), q.Now())
	if err != nil {
		return nil, &api.Error{Status: http.StatusBadRequest, Err: err}
	}
	if err := q.MakeSilence(context.WithoutCancel(r.Context()), k, h.site(), x); err != nil {
		return nil, silenceError(err)
	}
	return &x, nil
}

// endSilence ends a silence of a key for the client of r.
func (h *httpAPI) endSilence(r *http.Request, q *gateway.Rooms, k *site.Key, id string) (*rules.Silence, error) {
	ended, err := q.EndSilence(context.WithoutCancel(r.Context()), k.Home(h.site()), k.Name, parseSilenceID(id), requestUser(r))
	return &ended, silenceError(err)
}

// parseSilenceID returns the ID of a silence, or the zero ID, which none has.
func parseSilenceID(text string) uuid.UUID {
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		return uuid.UUID{}
	}
	return id
}

// silenceError returns the error for the client after err, which may be nil.
func silenceError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rules.ErrNoSilence):
		return &api.Error{Status: http.StatusNotFound, Err: rules.ErrNoSilence}
	case errors.Is(err, rules.ErrTooManySilences):
		return &api.Error{Status: http.StatusConflict, Err: rules.ErrTooManySilences}
	case errors.Is(err, queue.ErrClosed):
		return outbox.ErrQueueUnavailable(err)
	}
	return outbox.QueueError(err)
}
