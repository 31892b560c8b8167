package httpapi

import (
	"net/http"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// MayManage returns an error if the client of r may not manage. Without a user or a
// verified certificate nobody may, unless the operator leaves it to the site.
func (h *Base) MayManage(r *http.Request) error {
	m := h.Resolved.Managers
	user := RequestUser(r)
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

// MayManageSaved returns an error if the client of r may not read and change saved
// keys.
func (h *Base) MayManageSaved(r *http.Request) error {
	if h.Saved == nil || !h.Saved.Manage {
		return site.ErrManageOff
	}
	return h.MayManage(r)
}

// keyToRead returns a key if the client of r may read what its destinations are.
func (h *SavedKeys) keyToRead(r *http.Request, key *Lookup) (*site.Key, error) {
	if h.MayManage(r) == nil {
		return key.Key(r.Context())
	}
	k, _, err := key.Open(r.Context())
	if err == nil && len(k.Tokens)+len(k.Readers) > 0 && !source.HasToken(site.NewSourceRequest(r), k.Readers.Has) {
		err = site.ErrNoReader
	}
	return k, err
}
