package caddyhttp

import (
	"net/http"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// mayManage returns an error if the client of r may not manage. Without a user or a
// verified certificate nobody may, unless the operator leaves it to the site.
func (h *httpAPI) mayManage(r *http.Request) error {
	m := h.resolved.Managers
	user := requestUser(r)
	switch {
	case m == nil:
		return site.ErrManageOff
	case m.Open:
		return nil
	case len(m.Named) > 0 && (user == "" || !slices.Contains(m.Named, user)):
		return site.ErrManageName
	case user != "", r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		return nil
	}
	return site.ErrManageUser
}

// mayManageSaved returns an error if the client of r may not read and change saved
// keys.
func (h *httpAPI) mayManageSaved(r *http.Request) error {
	if h.saved == nil || !h.saved.Manage {
		return site.ErrManageOff
	}
	return h.mayManage(r)
}

// keyToRead returns a key if the client of r may read what its destinations are.
func (h *httpAPI) keyToRead(r *http.Request, name string) (*site.Key, error) {
	if h.mayManage(r) == nil {
		return h.resolved.Key(r.Context(), name)
	}
	k, _, err := h.resolved.OpenKey(r.Context(), name)
	if err == nil && len(k.Tokens)+len(k.Readers) > 0 && !source.HasToken(site.NewSourceRequest(r), k.Readers.Has) {
		err = site.ErrNoReader
	}
	return k, err
}
