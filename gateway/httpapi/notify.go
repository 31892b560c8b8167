package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// notify handles a POST with a message for a key or, if name is "", for the
// URLs in the request.
func (h *API) notify(w http.ResponseWriter, r *http.Request, name string) *api.Response {
	resp, err := h.accept(w, r, name)
	if err != nil {
		resp = h.ErrorResponse(err)
		h.Shared.Metrics.NotSent(h.Resolved.ConfiguredName(name), resp.Status)
		h.Refuse(r, name, resp.Status, resp.Error, err)
	}
	if h.Resolved.Page && h.CheckRoute(r, name) == nil {
		resp.FormURL = FormAddress(r)
	}
	return resp
}

// accept reads a message and sends it.
func (h *API) accept(w http.ResponseWriter, r *http.Request, name string) (*api.Response, error) {
	// Who may not send is answered at once and takes no room.
	if err := h.CheckRoute(r, name); err != nil {
		return nil, err
	}
	e, err := h.Enter(r, name)
	if err != nil {
		return nil, err
	}
	d, err := h.read(w, r, name)
	if err != nil {
		e.Leave()
		return nil, err
	}
	return h.answerEntered(w, r, d, e, name)
}

// answerEntered sends a message that has entered, and leaves.
func (h *API) answerEntered(w http.ResponseWriter, r *http.Request, d dispatch.Delivery, e site.Admission, name string) (*api.Response, error) {
	if name == "" {
		// A message with URLs of a client counts until its last delivery has
		// ended, which may be after the response.
		release := d.Release
		d.Release = func() { release(); e.Leave() }
	} else {
		defer e.Leave()
	}
	return h.answer(w, r, d)
}

// read reads a request that checkRoute has accepted. The caller calls release of the
// delivery.
func (h *API) read(w http.ResponseWriter, r *http.Request, name string) (dispatch.Delivery, error) {
	if name != "" {
		k, err := h.Resolved.Key(r.Context(), name)
		if err != nil {
			return dispatch.Delivery{}, err
		}
		if err := k.CheckSource(site.SourceDirect); err != nil {
			return dispatch.Delivery{}, err
		}
	}
	q, hops, err := h.readRequest(w, r, name == "")
	if err != nil {
		return dispatch.Delivery{}, err
	}
	d, err := h.readDelivery(r, q, name, hops)
	if err != nil || name == "" {
		return d, err
	}
	k, err := h.Resolved.Key(r.Context(), name)
	if err != nil {
		d.Release()
		return dispatch.Delivery{}, err
	}
	if d.Idempotency.Key != "" {
		bindKey(&d.Idempotency, tokenSum(k.Tokens, source.NewRequest(r), new(source.Format)))
	}
	return d, nil
}

// readRequest reads a request to send a message, and how many gateways it has passed
// through. client means that it may have URLs.
func (h *API) readRequest(w http.ResponseWriter, r *http.Request, client bool) (q *api.Request, hops int, err error) {
	if err := h.Resolved.CheckOrigin(r); err != nil {
		return nil, 0, err
	}
	if hops, err = api.Hops(r, version.AgentComment); err != nil {
		return nil, 0, err
	}
	q, err = api.Read(w, r, h.Limits(client))
	return q, hops, err
}

// readDelivery returns the message of a request that has been read, and where it
// goes. It closes q if there is an error; otherwise the delivery's release does.
func (h *API) readDelivery(r *http.Request, q *api.Request, name string, hops int) (dispatch.Delivery, error) {
	d, err := h.readMessage(r, q, name, hops)
	if err != nil {
		q.Close()
		return dispatch.Delivery{}, err
	}
	d.Release = q.Close
	return d, nil
}

// readMessage returns the message of a request and where it goes.
func (h *API) readMessage(r *http.Request, q *api.Request, name string, hops int) (d dispatch.Delivery, err error) {
	m, err := q.Message()
	if err != nil {
		return d, h.withSource(r, q, name, err)
	}
	m.Hops = hops
	to, k, err := h.destinations(r, q, name)
	if err != nil {
		return d, err
	}
	if m.Incident.Name != "" {
		m.Incident = m.Incident.For(name, h.sourceOf(r))
	}
	d = dispatch.NewDelivery(h.Resolved, site.SourceHTTP, h.Site(), m, to)
	d.Format = h.sourceOf(r)
	if d.Logger, d.Memory = h.Log, q.Memory(); k != nil {
		d = d.ToKey(k)
	}
	if err := to.Check(m); err != nil {
		return d, err
	}
	if d.Idempotency, err = h.idempotency(r, q, name); err != nil {
		return d, err
	}
	if m.Attachments, err = h.attachments(r, q, name); err != nil {
		return d, err
	}
	missing := q.LinkFiles(m)
	to.Warn(missing...)
	if len(m.Attachments)+len(missing) > 0 {
		return d, to.Check(m)
	}
	return d, nil
}

// withSource returns err, the reason why r is no message, with the address of the source
// whose payload r looks like, if there is one.
func (h *API) withSource(r *http.Request, q *api.Request, name string, err error) error {
	e, ok := errors.AsType[*api.Error](err)
	if !ok || e.Status != http.StatusBadRequest || h.sourceOf(r) != "" {
		return err
	}
	body, form := q.Raw()
	f := source.Guess(&source.Request{Header: r.Header, Body: body, Form: form})
	if f == nil {
		return err
	}
	return api.Errorf(e.Status, "%w; it looks like a payload of %s, so post it to %s%s/%s", e.Err, f.Program, StrippedPrefix(r), site.PathOf(site.RouteNotifyKey, cmp.Or(name, "{KEY}")), f.Name)
}

// idempotency returns the idempotency key of a request, if there is a queue that
// keeps it.
func (h *API) idempotency(r *http.Request, q *api.Request, name string) (i dispatch.Idempotency, err error) {
	if h.App.QueueSettings == nil {
		return i, nil
	}
	text, err := api.IdempotencyKey(r)
	if err != nil || text == "" {
		return i, err
	}
	i.Key = strings.Join([]string{h.Site(), name, h.sourceOf(r), RequestUser(r), text}, "\x00")
	i.Request, err = q.Fingerprint()
	return i, err
}

// bindKey makes the idempotency key one of the clients that have a token of the key, whose
// hash is sum; "" for none. Another client that guesses it has one of its own.
func bindKey(i *dispatch.Idempotency, sum string) {
	if i.Key != "" && sum != "" {
		i.Key += "\x00" + sum
	}
}

// sourceOf returns the name of the source that r is for, or "" for the API itself.
func (h *API) sourceOf(r *http.Request) string {
	at, _ := h.Routes.Parse(r.URL, &h.Has) // the other addresses of a key have no source
	return at.Source
}

// Limits returns the limits of a request. client means that it may have URLs.
func (h *API) Limits(client bool) api.Limits {
	l := h.Resolved.Limits.Limits
	l.Memory = h.Shared.Memory.Allocation(h.Resolved.Limits.Memory, client)
	return l
}

// Enter counts the message of r in. Without a key, it may have URLs.
func (h *API) Enter(r *http.Request, name string) (site.Admission, error) {
	if name == "" {
		return h.Shared.InFlight.EnterClient(h.Resolved.Limits.InFlight, ClientAddress(r))
	}
	return h.Shared.InFlight.Enter(h.Resolved.Limits.InFlight)
}

// attachments returns the attachments of q. While files are fetched from
// addresses of the client, a message for a key counts like one with URLs.
func (h *API) attachments(r *http.Request, q *api.Request, name string) ([]*notifier.Attachment, error) {
	if name != "" && q.FetchesFiles() {
		e, err := h.Shared.InFlight.EnterFetch(h.Resolved.Limits.InFlight, ClientAddress(r))
		if err != nil && !q.SkipFetches(err) {
			return nil, err
		}
		if err == nil {
			defer e.Leave()
		}
	}
	return q.Attachments(r.Context(), h.Shared.Sender.Pool())
}

// CheckRoute returns an error if the key does not exist or cannot be read, if the
// client has no token of it or, for "", if messages without a key are turned off.
func (h *API) CheckRoute(r *http.Request, name string) error {
	switch {
	case name != "":
		_, err := h.Resolved.KeyToSend(r, name)
		return err
	case !h.Resolved.Stateless:
		return statelessError(r)
	}
	return nil
}

// statelessError returns the error for a message without a key where these are turned off.
func statelessError(r *http.Request) *api.Error {
	return api.Errorf(http.StatusForbidden, "%w; post to %s/notify/{KEY}", errStatelessOff, StrippedPrefix(r))
}

var errStatelessOff = errors.New("messages without a key are turned off here")

// destinations returns where the message of q goes, and the key, or nil for a
// message with URLs.
func (h *API) destinations(r *http.Request, q *api.Request, name string) (*api.Selection, *site.Key, error) {
	if name != "" {
		k, err := h.Resolved.Key(r.Context(), name)
		if err != nil {
			return nil, nil, err
		}
		to, err := q.SelectTags(k.Choose)
		return to, k, err
	}
	to, err := q.SelectURLs(h.ParseClientURL, h.Resolved.DefaultTargets)
	return to, nil, err
}

// ParseClientURL returns the destination of a URL in a request.
func (h *API) ParseClientURL(url string) (*notifier.Destination, error) {
	d, err := h.Shared.Sender.ParseOnce(url, h.Resolved.Limits.Egress)
	if err != nil {
		return nil, err
	}
	if err := h.Resolved.Services.Check(d); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// ErrorResponse returns the response for an error. It logs an error that is
// not the client's, since the client cannot correct it.
func (h *API) ErrorResponse(err error) *api.Response {
	if e, ok := errors.AsType[*api.Error](err); ok {
		if e.Fault != nil {
			h.Log.Error("request failed", zap.Int("status", e.Status), zap.Error(e.Fault))
		}
		return e.Response()
	}
	h.Log.Error("request failed", zap.Error(err))
	return api.Errorf(http.StatusInternalServerError, "the gateway could not handle the request; its log has the reason").Response()
}
