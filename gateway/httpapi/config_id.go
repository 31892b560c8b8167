package httpapi

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// ConfigIDHeader is the header in which clients of Apprise 2 name the key. The apprise:// URLs of
// Apprise 2 post to /notify with it, unless they have ?v=1.
//
// It names a key without the path, past every path matcher of Caddy or of a proxy in front. So it
// is read only on Apprise's own routes, and without config_id on it works only together with a
// secret of the key.
const ConfigIDHeader = "X-Apprise-Config-ID"

// configIDKey is the header's name as a key of [http.Header].
const configIDKey = "X-Apprise-Config-Id"

var (
	errConfigIDMalformed = api.Errorf(http.StatusBadRequest,
		"the header "+ConfigIDHeader+" must have the name of one key: 1 to 128 letters, digits, _ and -")
	errConfigIDDiffers = api.Errorf(http.StatusBadRequest,
		"the header "+ConfigIDHeader+" and the address name different keys; leave out one of them")
	errConfigIDToken = api.Errorf(http.StatusUnauthorized,
		"a token of the key is missing or wrong; the header "+ConfigIDHeader+
			" names a key without one only if the notify block has config_id on; write that, or name the key in the address, with "+
			"apprise:// by ?v=1")
	errConfigIDOff = api.Errorf(http.StatusForbidden,
		"the header "+ConfigIDHeader+" names only keys with a token here; write config_id on into the notify block, or name the key in the "+
			"address, with apprise:// by ?v=1")
	errConfigIDManage = api.Errorf(http.StatusForbidden,
		"with manage open, the header "+ConfigIDHeader+
			" names no key to read or change; write config_id on into the notify block, or name the key in the address")
)

// ConfigIDRoute is a route of Apprise on which the header can replace the key.
type ConfigIDRoute struct {
	Path   string // without the key
	Keyed  string // the pattern of the corresponding route
	Method string // other methods have no such route
}

// ConfigIDRoutes returns the routes on which the header names the key. POST /cfg saves a key like
// Apprise, without the other uses of /cfg/{KEY}.
func ConfigIDRoutes() []ConfigIDRoute {
	return []ConfigIDRoute{
		{RouteNotify, site.RouteNotifyKey, http.MethodPost},
		{strings.TrimSuffix(RouteAdd, "/{KEY}"), RouteAdd, http.MethodPost},
		{strings.TrimSuffix(RouteGet, "/{KEY}"), RouteGet, http.MethodPost},
		{strings.TrimSuffix(RouteDel, "/{KEY}"), RouteDel, http.MethodPost},
		{strings.TrimSuffix(RouteMove, "/{KEY}"), RouteMove, http.MethodPost},
		{RouteKeys, RouteGet, http.MethodPost},
		{strings.TrimSuffix(RouteURLs, "/{KEY}"), RouteURLs, http.MethodGet},
		{strings.TrimSuffix(RouteQR, "/{KEY}"), RouteQR, http.MethodGet},
	}
}

// hasConfigID reports whether the header may accompany a route with the key in its address: on
// Apprise's own routes, but never for sources, devices and messages.
func hasConfigID(pattern string) bool {
	switch pattern {
	case site.RouteNotifyKey, RouteAdd, RouteGet, RouteDel, RouteMove, RouteKey, RouteURLs, RouteStatusKey, RouteQR:
		return true
	}
	return false
}

// configID returns the key in the header, or "". An empty header means none. The value is not
// trimmed and must be the only one, so that it is what a matcher compares.
func configID(header http.Header) (string, error) {
	values := header[configIDKey]
	switch {
	case len(values) == 0 || len(values) == 1 && strings.TrimSpace(values[0]) == "":
		return "", nil
	case len(values) > 1 || !site.IsKeyName(values[0]):
		return "", errConfigIDMalformed
	}
	return values[0], nil
}

// ParseRequest is like Parse and considers the header.
func (t routeTable) ParseRequest(r *http.Request, has *SiteRoutes) (at Route, ok bool, err error) {
	at, ok = t.Parse(r.URL, has)
	if len(r.Header[configIDKey]) == 0 {
		return at, ok, nil
	}
	id, err := configID(r.Header)
	if ok && hasConfigID(at.Pattern) {
		if err == nil && id != "" && id != at.Key {
			err = errConfigIDDiffers
		}
		return at, true, err
	}
	keyed := t.withConfigID(r, has)
	if keyed == nil || id == "" && err == nil {
		return at, ok, nil
	}
	return Route{route: keyed, Key: id, byHeader: true}, true, err
}

// mayNameKeyAt reports whether the header can name the key of requests for u.
func (t routeTable) mayNameKeyAt(u *url.URL, has *SiteRoutes) bool {
	return t.withConfigID(&http.Request{Method: http.MethodPost, URL: u}, has) != nil ||
		t.withConfigID(&http.Request{Method: http.MethodGet, URL: u}, has) != nil
}

// withConfigID returns the route for which the header can name the key of r, or nil.
func (t routeTable) withConfigID(r *http.Request, has *SiteRoutes) *route {
	if hasEncodedSlash(r.URL, false) {
		return nil
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, c := range ConfigIDRoutes() {
		if strings.TrimSuffix(r.URL.Path, "/") != c.Path || method != c.Method {
			continue
		}
		for i := range t {
			if spec := &t[i]; spec.Pattern == c.Keyed && (spec.On == nil || spec.On(has)) {
				return spec
			}
		}
	}
	return nil
}

// mayNameKey returns an error if the header of r may not name the key of the route. Unless
// config_id is on, the request needs a secret of the key on every route. The answer does not reveal
// whether the key exists, because a matcher may keep the client from its address.
func (h *Sender) mayNameKey(r *http.Request, at *Route) error {
	if !at.byHeader || h.Resolved.ConfigID {
		return nil
	}
	openManagement := h.Resolved.Managers != nil && h.Resolved.Managers.Open
	if at.access == accessSaved && openManagement {
		return errConfigIDManage // a client that may send must not be able to read and change the key
	}
	k, _, err := at.Lookup().open(r.Context())
	switch {
	case err == nil:
		// A token gives no right to read the destinations.
		if !(at.access == accessReader && openManagement) && at.Lookup().Token(r) != "" {
			return nil
		}
		if at.access == accessReader && source.HasToken(source.NewRequest(r), k.Readers.Has) {
			return nil
		}
	case !errors.Is(err, site.ErrNoKey):
		return err
	}
	if h.Resolved.Protected(r.Context()) {
		return errConfigIDToken
	}
	return errConfigIDOff
}

// refuseConfigID answers a request with a wrong header.
func (h *API) refuseConfigID(r *http.Request, at *Route, err error) *api.Response {
	resp := h.ErrorResponse(r, err)
	if IsChange(r) {
		if at.access == accessSender {
			h.Shared.Metrics.NotSent(h.Resolved.ConfiguredName(at.Key), api.Outcome(resp.Status))
		}
		h.Refuse(r, at.Lookup(), resp.Status, resp.Error, err)
	}
	return resp
}

// notifyNamed handles a POST to /notify whose header names a key. With URLs in the body it is a
// message without a key, which is known only after the body has been read.
func (h *notifications) notifyNamed(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	resp, err := h.acceptNamed(w, r, at)
	if err != nil {
		resp = h.sender.notSent(r, at, err)
	}
	return resp
}

// acceptNamed reads a message whose header names a key, and sends it. If the message has URLs, it
// removes the key from at.
func (h *notifications) acceptNamed(w http.ResponseWriter, r *http.Request, at *Route) (*api.Response, error) {
	keyErr := h.maySendNamed(r, at)
	if keyErr != nil && !h.Resolved.Stateless {
		return nil, keyErr
	}
	e, err := h.sender.Enter(r, keyErr == nil) // after a key error, it can only have URLs
	if err != nil {
		return nil, err
	}
	q, hops, err := h.sender.readRequest(w, r, keyErr != nil)
	if err != nil {
		e.Leave()
		return nil, err
	}
	urls, err := q.HasURLs()
	switch {
	case err != nil:
	case urls && !h.Resolved.Stateless:
		err = statelessError(r)
	case !urls:
		err = keyErr
	case keyErr == nil:
		// A message that was counted as one to the key is counted as one with URLs.
		if err = e.Distrust(h.Resolved.Limits.InFlight, ClientAddress(r)); err == nil {
			err = q.Distrust()
		}
	}
	if urls {
		at.Key, at.lookup = "", Lookup{site: h.Resolved}
	}
	if err != nil {
		q.Close()
		e.Leave()
		return nil, err
	}
	d, err := h.sender.readDelivery(r, q, at, hops, at.Lookup().Token(r))
	if err != nil {
		e.Leave()
		return nil, err
	}
	return h.answerEntered(w, r, d, e, at)
}

// maySendNamed returns an error if the client of r may not send to the key that its header names.
// It does not read the body.
func (h *notifications) maySendNamed(r *http.Request, at *Route) error {
	if err := h.sender.mayNameKey(r, at); err != nil {
		return err
	}
	k, err := at.Lookup().toSend(r)
	if err != nil {
		return err
	}
	return k.CheckSource(site.SourceDirect)
}
