package httpapi

import (
	"net/http"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
)

// Errors for clients that may not manage, read or change something.
var (
	errManageOff = api.Errorf(http.StatusForbidden,
		"saved configurations cannot be read or changed here; the operator can allow it with configs { manage }")
	errManageUser = api.Errorf(http.StatusForbidden,
		"managing keys here needs a user or a client certificate; the operator can put basic_auth or another authentication in front of notify")
	errManageName = api.Errorf(http.StatusForbidden,
		"only the users that the operator names in manage may manage keys here; log in as one of them")
	errNoReader = api.Errorf(http.StatusUnauthorized,
		"this needs a reader of the key; send it as Authorization: Bearer, as the password of Basic authentication, in X-Gotify-Key or "+
			"in ?token=")
	errForeignChange = api.Errorf(http.StatusForbidden,
		"a page of another site sent this request; only the site's own pages may change something here")
)

// askForSecret tells the client of a 401 how it can send a secret. The script of a device already
// has its secret, and Basic would make the browser ask for a password.
func askForSecret(w http.ResponseWriter, a access) {
	if a != accessDevice {
		w.Header().Set("WWW-Authenticate", `Basic realm="notify", charset="UTF-8"`)
	}
	w.Header().Add("WWW-Authenticate", "Bearer")
}

// MayManage returns an error if the client of r may not manage. A client without a user or a
// verified certificate may not, unless the operator lets everybody manage.
func (h *Base) MayManage(r *http.Request) error {
	m := h.Resolved.Managers
	user := environment.User(r)
	switch {
	case m == nil:
		return errManageOff
	case m.Open:
		return nil
	case len(m.Named) > 0 && (user == "" || !slices.Contains(m.Named, user)):
		return errManageName
	case user != "", r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		return nil
	}
	return errManageUser
}

// MayManageSaved returns an error if the client of r may not read and change saved
// keys.
func (h *Base) MayManageSaved(r *http.Request) error {
	if h.Saved == nil || !h.Saved.Manage {
		return errManageOff
	}
	return h.MayManage(r)
}

// Answer returns the error for a client after an error of a use case, whose kind decides the
// status. An error without a kind is a fault of the queue's store.
func Answer(err error) error {
	if _, ok := api.ErrorOf(err); ok || err == nil {
		return err
	}
	return outbox.ErrQueueUnavailable(err)
}

// keyToRead returns a key if the client of r may read its destinations.
func (h *SavedKeys) keyToRead(r *http.Request, key *Lookup) (*site.Key, error) {
	if h.MayManage(r) == nil {
		return key.Key(r.Context())
	}
	k, _, err := key.open(r.Context())
	if err == nil && len(k.Tokens)+len(k.Readers) > 0 && !source.HasToken(source.NewRequest(r), k.Readers.Has) {
		err = errNoReader
	}
	return k, err
}
