package caddyhttp

import (
	"net/http"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// Errors for who may not manage.
var (
	errManageOff  = api.Errorf(http.StatusForbidden, "saved configurations cannot be read or changed here; the operator can allow it with configs { manage }")
	errManageUser = api.Errorf(http.StatusForbidden, "managing keys here needs a user or a client certificate; the operator can put basic_auth or another authentication in front of notify")
	errManageName = api.Errorf(http.StatusForbidden, "only the users that the operator names in manage may manage keys here; log in as one of them")
)

// mayManage returns an error if the client of r may not manage. Without a user or a
// verified certificate nobody may, unless the operator leaves it to the site.
func (h *httpAPI) mayManage(r *http.Request) error {
	m := h.resolved.managers
	user := requestUser(r)
	switch {
	case m == nil:
		return errManageOff
	case m.open:
		return nil
	case len(m.named) > 0 && (user == "" || !slices.Contains(m.named, user)):
		return errManageName
	case user != "", r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		return nil
	}
	return errManageUser
}

// mayManageSaved returns an error if the client of r may not read and change saved
// keys.
func (h *httpAPI) mayManageSaved(r *http.Request) error {
	if h.saved == nil || !h.saved.Manage {
		return errManageOff
	}
	return h.mayManage(r)
}

// keyToRead returns a key if the client of r may read what its destinations are.
func (h *httpAPI) keyToRead(r *http.Request, name string) (*key, error) {
	if h.mayManage(r) == nil {
		return h.resolved.key(r.Context(), name)
	}
	k, _, err := h.resolved.openKey(r.Context(), name)
	if err == nil && len(k.tokens)+len(k.readers) > 0 && !source.HasToken(newSourceRequest(r), k.readers.has) {
		err = errNoReader
	}
	return k, err
}
