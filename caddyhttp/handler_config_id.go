package caddyhttp

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// configIDHeader is the header in which clients of Apprise 2 name the key. The apprise://
// URLs of Apprise 2 post to /notify with it, unless they have ?v=1.
//
// It is a second way to name a key, past every path matcher, of Caddy or of a proxy in
// front. So it is read on Apprise's own routes only, and without config_id on it names a
// key only together with a secret of that key.
const configIDHeader = "X-Apprise-Config-ID"

var (
	errConfigIDMalformed = api.Errorf(http.StatusBadRequest, "the header "+configIDHeader+" must have the name of one key: 1 to 128 letters, digits, _ and -")
	errConfigIDDiffers   = api.Errorf(http.StatusBadRequest, "the header "+configIDHeader+" and the address name different keys; leave out one of them")
	errConfigIDToken     = api.Errorf(http.StatusUnauthorized, "a token of the key is missing or wrong; the header "+configIDHeader+" names a key without one only if the notify block has config_id on; write that, or name the key in the address, with apprise:// by ?v=1")
	errConfigIDOff       = api.Errorf(http.StatusForbidden, "the header "+configIDHeader+" names only keys with a token here; write config_id on into the notify block, or name the key in the address, with apprise:// by ?v=1")
	errConfigIDManage    = api.Errorf(http.StatusForbidden, "with manage open, the header "+configIDHeader+" names no key to read or change; write config_id on into the notify block, or name the key in the address")
)

// configIDRoute is a route of Apprise on which the header can take the place of the key.
type configIDRoute struct {
	path   string // without the key
	keyed  string // the pattern of the route that it stands for
	method string // other methods have no such route
}

// configIDRoutes returns the routes on which the header names a key that the address does
// not have. POST /cfg is what Apprise makes of it, without the other uses of /cfg/{KEY}.
func configIDRoutes() []configIDRoute {
	return []configIDRoute{
		{routeNotify, site.RouteNotifyKey, http.MethodPost},
		{strings.TrimSuffix(routeAdd, "/{KEY}"), routeAdd, http.MethodPost},
		{strings.TrimSuffix(routeGet, "/{KEY}"), routeGet, http.MethodPost},
		{strings.TrimSuffix(routeDel, "/{KEY}"), routeDel, http.MethodPost},
		{routeKeys, routeGet, http.MethodPost},
		{strings.TrimSuffix(routeURLs, "/{KEY}"), routeURLs, http.MethodGet},
	}
}

// hasConfigID reports whether the header may stand beside the key in the address of a
// route: on Apprise's own, and never for sources, devices and messages.
func hasConfigID(pattern string) bool {
	switch pattern {
	case site.RouteNotifyKey, routeAdd, routeGet, routeDel, routeKey, routeURLs:
		return true
	}
	return false
}

// configID returns the key that the header names, or "". An empty header is none. The
// value is not trimmed and there can be only one, so that it is what a matcher compares.
func configID(header http.Header) (string, error) {
	values := header.Values(configIDHeader)
	switch {
	case len(values) == 0 || len(values) == 1 && strings.TrimSpace(values[0]) == "":
		return "", nil
	case len(values) > 1 || !site.IsKeyName(values[0]):
		return "", errConfigIDMalformed
	}
	return values[0], nil
}

// parseRequest returns what a request addresses, like parse, and considers the header.
func (t routeTable) parseRequest(r *http.Request, has *siteRoutes) (at route, ok bool, err error) {
	at, ok = t.parse(r.URL, has)
	if len(r.Header.Values(configIDHeader)) == 0 {
		return at, ok, nil
	}
	id, err := configID(r.Header)
	if ok && hasConfigID(at.pattern) {
		if err == nil && id != "" && id != at.key {
			err = errConfigIDDiffers
		}
		return at, true, err
	}
	keyed := t.withConfigID(r, has)
	if keyed == nil || id == "" && err == nil {
		return at, ok, nil
	}
	return route{routeSpec: keyed, key: id, byHeader: true}, true, err
}

// mayNameKeyAt reports whether the header can name the key of requests for u.
func (t routeTable) mayNameKeyAt(u *url.URL, has *siteRoutes) bool {
	return t.withConfigID(&http.Request{Method: http.MethodPost, URL: u}, has) != nil ||
		t.withConfigID(&http.Request{Method: http.MethodGet, URL: u}, has) != nil
}

// withConfigID returns the route for which the header can name the key of r, or nil.
func (t routeTable) withConfigID(r *http.Request, has *siteRoutes) *routeSpec {
	if hasEncodedSlash(r.URL, false) {
		return nil
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, c := range configIDRoutes() {
		if strings.TrimSuffix(r.URL.Path, "/") != c.path || method != c.method {
			continue
		}
		for i := range t {
			if spec := &t[i].routeSpec; spec.pattern == c.keyed && (spec.on == nil || spec.on(has)) {
				return spec
			}
		}
	}
	return nil
}

// mayNameKey returns an error if the header of r may not name the key of the route.
// Unless config_id is on, the request needs a secret of the key, on every route. The
// answer does not tell whether there is the key, because a matcher may keep the client
// from its address.
func (h *httpAPI) mayNameKey(r *http.Request, at *route) error {
	if !at.byHeader || h.resolved.ConfigID {
		return nil
	}
	openManagement := h.resolved.Managers != nil && h.resolved.Managers.Open
	if at.access == site.AccessManage && openManagement {
		return errConfigIDManage // whoever may send must not be able to read and change the key
	}
	k, _, err := h.resolved.OpenKey(r.Context(), at.key)
	switch {
	case err == nil:
		req := site.NewSourceRequest(r)
		// A token is no right to read what the destinations are.
		if !(at.access == site.AccessReader && openManagement) && source.HasToken(req, k.Tokens.Has) {
			return nil
		}
		if at.access == site.AccessReader && source.HasToken(req, k.Readers.Has) {
			return nil
		}
	case !errors.Is(err, site.ErrNoKey):
		return err
	}
	if h.resolved.Protected(r.Context()) {
		return errConfigIDToken
	}
	return errConfigIDOff
}

// refuseConfigID answers a request whose header is wrong.
func (h *httpAPI) refuseConfigID(r *http.Request, at *route, err error) *api.Response {
	resp := h.errorResponse(err)
	if isChange(r) {
		if at.access == site.AccessSender {
			h.shared.Metrics.NotSent(h.resolved.ConfiguredKey(at.key), resp.Status)
		}
		h.refuse(r, at.key, resp.Status, resp.Error, err)
	}
	return resp
}

// notifyNamed handles a POST to /notify whose header names a key. With URLs in the body it
// is a message without a key, which is known only when the body has been read.
func (h *httpAPI) notifyNamed(w http.ResponseWriter, r *http.Request, at *route) *api.Response {
	name := at.key
	resp, err := h.acceptNamed(w, r, at, &name)
	if err != nil {
		resp = h.errorResponse(err)
		h.shared.Metrics.NotSent(h.resolved.ConfiguredKey(name), resp.Status)
		h.refuse(r, name, resp.Status, resp.Error, err)
	}
	return resp
}

// acceptNamed reads a message whose header names a key, and sends it. It sets name to ""
// if the message has URLs.
func (h *httpAPI) acceptNamed(w http.ResponseWriter, r *http.Request, at *route, name *string) (*api.Response, error) {
	keyErr := h.maySendNamed(r, at)
	if keyErr != nil && !h.resolved.Stateless {
		return nil, keyErr
	}
	room := at.key
	if keyErr != nil {
		room = "" // it can only have URLs
	}
	e, err := h.enter(r, room)
	if err != nil {
		return nil, err
	}
	q, hops, err := h.readRequest(w, r, keyErr != nil)
	if err != nil {
		e.Leave()
		return nil, err
	}
	urls, err := q.HasURLs()
	switch {
	case err != nil:
	case urls && !h.resolved.Stateless:
		err = statelessError(r)
	case !urls:
		err = keyErr
	case keyErr == nil:
		// What counted as a message to the key takes a place among those with URLs.
		if err = e.Distrust(h.resolved.InFlight, clientAddress(r)); err == nil {
			err = q.Distrust()
		}
	}
	if urls {
		*name = ""
	}
	if err != nil {
		q.Close()
		e.Leave()
		return nil, err
	}
	d, err := h.readDelivery(r, q, *name, hops)
	if err != nil {
		e.Leave()
		return nil, err
	}
	return h.answerEntered(w, r, d, e, *name)
}

// maySendNamed returns an error if the client of r may not send to the key that its header
// names. It does not read the body.
func (h *httpAPI) maySendNamed(r *http.Request, at *route) error {
	if err := h.mayNameKey(r, at); err != nil {
		return err
	}
	k, err := h.resolved.KeyToSend(r, at.key)
	if err != nil {
		return err
	}
	return k.CheckSource(site.SourceDirect)
}
