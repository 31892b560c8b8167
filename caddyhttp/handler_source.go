package caddyhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/caddyhttp/source"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// sourceAddress is the address of a source: /notify/{KEY}/{SOURCE}, and the rest of
// the path that clients of an API add.
type sourceAddress struct{ key, source, rest string }

// sourceRoute parses a path as the address of a source and reports whether it is
// one.
func sourceRoute(path string) (a sourceAddress, ok bool) {
	rest, ok := strings.CutPrefix(path, "/notify/")
	if !ok {
		return a, false
	}
	if a.key, rest, ok = strings.Cut(strings.TrimSuffix(rest, "/"), "/"); !ok {
		return a, false
	}
	a.source, a.rest, _ = strings.Cut(rest, "/")
	return a, a.key != messagesName && isKeyName(a.key) && sourceName.MatchString(a.source)
}

// serveSource handles a request to the address of a source. It returns nil if it
// has written the response.
func (h *Handler) serveSource(w http.ResponseWriter, r *http.Request, a sourceAddress) *api.Response {
	s, err := h.resolved.source(a.source)
	if err == nil && (s == nil || !s.Accepts(a.rest)) {
		err, s = errNoSource, nil
	}
	if err == nil && s.Format.Handshake && r.Method == http.MethodOptions && r.Header.Get(originHeader) != "" {
		if err = h.allowSender(r, a, s); err == nil {
			w.Header().Set("Allow", "POST, PUT")
			w.Header().Set("WebHook-Allowed-Origin", r.Header.Get(originHeader))
			w.Header().Set("WebHook-Allowed-Rate", "*")
			w.WriteHeader(http.StatusOK)
			return nil
		}
	} else if err == nil && r.Method != http.MethodPost && r.Method != http.MethodPut {
		w.Header().Set("Allow", "POST, PUT")
		err = api.Errorf(http.StatusMethodNotAllowed, "messages are sent with POST")
	}
	var resp *api.Response
	o := source.Outcome{Time: time.Now()}
	if err == nil {
		if s.Format.IsAPI() {
			// Clients of an API expect one answer in a fixed form, so Accept cannot ask
			// for a stream.
			r = r.WithContext(r.Context())
			r.Header = r.Header.Clone()
			r.Header.Del("Accept")
		}
		resp, err = h.deliverSource(w, r, a, s, &o)
	}
	if err != nil {
		resp = h.errorResponse(err)
		if resp.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		h.shared.metrics.notSent(resp.Status)
		h.refuse(r, a.key, resp.Status, resp.Error, err)
	}
	if s == nil || o.Request == nil {
		return resp
	}
	o.Status, o.Error, o.ID = resp.Status, resp.Error, resp.ID
	reply := s.Reply(o)
	if reply == nil {
		return resp
	}
	resp.WriteAs(w, reply.Status, reply.ContentType, reply.Body)
	return nil
}

// originHeader is the header in which a sender of webhooks names itself when it asks
// for permission. See
// https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md, section 4.
const originHeader = "WebHook-Request-Origin"

// allowSender returns an error if the sender of r, which asks for permission, may not
// post to the address of a source.
func (h *Handler) allowSender(r *http.Request, a sourceAddress, s *source.Source) error {
	e, err := h.enter(r, a.key)
	if err != nil {
		return err
	}
	defer e.leave()
	k, err := h.resolved.key(r.Context(), a.key)
	if err != nil {
		return err
	}
	if err := k.checkSource(a.source); err != nil {
		return err
	}
	req := &source.Request{Header: r.Header, Query: r.URL.Query(), Path: a.rest, Time: time.Now()}
	return sourceError(s.Authenticate(r.Context(), req, h.fetchSource))
}

// deliverSource reads a request in the format of s and sends its message. It sets
// o.Request and o.Message.
func (h *Handler) deliverSource(w http.ResponseWriter, r *http.Request, a sourceAddress, s *source.Source, o *source.Outcome) (*api.Response, error) {
	e, err := h.enter(r, a.key)
	if err != nil {
		return nil, err
	}
	defer e.leave()
	k, err := h.resolved.key(r.Context(), a.key)
	if err != nil {
		return nil, err
	}
	if err := k.checkSource(a.source); err != nil {
		return nil, err
	}
	if err := h.resolved.checkOrigin(r); err != nil {
		return nil, err
	}
	hops, err := api.Hops(r, agentComment)
	if err != nil {
		return nil, err
	}
	q, err := api.ReadPayload(w, r, h.limits(false))
	if err != nil {
		return nil, err
	}
	if o.Message, err = h.readSource(r, q, a, s, o); err != nil {
		q.Close()
		return nil, err
	}
	if o.Message.Skip {
		q.Close()
		text := fmt.Sprintf("The source %s has nothing to send.", a.source)
		return &api.Response{Status: http.StatusOK, Records: []notifier.Record{{Time: time.Now(), Level: notifier.LevelInfo, Text: text}}}, nil
	}
	d, err := h.readDelivery(r, q, a.key, hops)
	if err != nil {
		return nil, err
	}
	return h.answer(w, r, d)
}

// readSource authenticates the request, reads its message and sets it as the content
// of q. If the request asks to confirm a subscription, readSource confirms it and
// returns a message to skip.
func (h *Handler) readSource(r *http.Request, q *api.Request, a sourceAddress, s *source.Source, o *source.Outcome) (*source.Message, error) {
	body, form, files := q.Payload()
	req := &source.Request{Header: r.Header, Query: r.URL.Query(), Path: a.rest, Body: body, Form: form, Files: files, Time: o.Time}
	o.Request = req
	if err := s.Authenticate(r.Context(), req, h.fetchSource); err != nil {
		return nil, sourceError(err)
	}
	if address := s.Confirmation(req); address != "" {
		if _, err := h.fetchSource(r.Context(), address); err != nil {
			return nil, api.Errorf(http.StatusFailedDependency, "the subscription could not be confirmed: %w", err)
		}
		h.log.Info("confirmed a subscription", zap.String("key", a.key), zap.String("source", a.source))
		return &source.Message{Skip: true}, nil
	}
	m, err := s.Read(req)
	if err != nil {
		return nil, sourceError(err)
	}
	if m.Skip {
		return m, nil
	}
	return m, q.SetContent(api.Content{
		Title: m.Title, Body: m.Body, Type: m.Type, Format: m.Format, Attach: m.Attach, Images: m.Images, Preferred: m.Tags, Warnings: m.Warnings,
		File: m.File, ContentType: r.Header.Get("Content-Type"), DropFiles: !s.TakesFiles(),
	})
}

// sourceError returns an error of package source as an [*api.Error]. It returns any
// other error as it is.
func sourceError(err error) error {
	if e, ok := errors.AsType[*source.Error](err); ok {
		return api.Errorf(e.Status, "%w", err)
	}
	return err
}

// The limits of a fetch for a source: of a certificate or a confirmation.
const (
	maxSourceFetch     = 64 << 10 // bytes
	sourceFetchTimeout = 10 * time.Second
)

// fetchSource returns the content at an address that a request names. The egress
// rules apply.
func (h *Handler) fetchSource(ctx context.Context, address string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address is malformed")
	}
	ctx, cancel := context.WithTimeout(ctx, sourceFetchTimeout)
	defer cancel()
	resp, err := h.shared.sender.Pool().Get(ctx, u, egress.Options{Policy: h.resolved.limits.Egress})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers with status %d", resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxSourceFetch))
}

// checkSource returns an error if the key does not accept messages of the source.
func (k *key) checkSource(name string) error {
	if len(k.accept) == 0 || slices.Contains(k.accept, name) {
		return nil
	}
	if name == sourceDirect {
		return errNotDirect
	}
	return errNotAccepted
}

var (
	errNoSource    = api.Errorf(http.StatusNotFound, "there is no such source; the address of a source is /notify/{KEY}/{SOURCE}, such as /notify/ops/grafana")
	errNoKey       = api.Errorf(http.StatusNotFound, "there is no such key")
	errNotAccepted = api.Errorf(http.StatusForbidden, "the key does not accept messages from this source; add the source to accept of the key")
	errNotDirect   = api.Errorf(http.StatusForbidden, "the key accepts messages from its sources only; post to /notify/{KEY}/{SOURCE}, or add direct to accept of the key")
)
