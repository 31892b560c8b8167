package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/catalogue"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
)

// savedStatus is the answer of /status and /status/{KEY}, in the order of Apprise API.
type savedStatus struct {
	ConfigLock  bool  `json:"config_lock"` // the client may not change saved configurations
	AttachLock  bool  `json:"attach_lock"` // no attachments
	Stateful    bool  `json:"stateful_enabled"`
	Stateless   bool  `json:"stateless_enabled"` // messages with URLs of the request
	Degraded    bool  `json:"degraded"`          // neither stateful nor stateless
	MaxFiles    int   `json:"max_attachments"`
	MaxFileSize int64 `json:"attach_size"`
	Status      struct {
		Storage bool     `json:"persistent_storage"`
		Config  bool     `json:"can_write_config"`
		Attach  bool     `json:"can_write_attach"`
		Details []string `json:"details"`
	} `json:"status"`
	Privilege string `json:"privilege"` // "admin" for managers, else "user"
}

// serveStatus reports whether the storage can be read and written. The answer is the same for every
// key, so that it does not reveal which keys exist.
func (h *SavedKeys) serveStatus(w http.ResponseWriter, r *http.Request, _ string) error {
	limits := &h.Resolved.Limits
	status := savedStatus{
		ConfigLock: h.MayManageSaved(r) != nil, AttachLock: limits.MaxFiles == 0, Stateful: true, Stateless: h.Resolved.Stateless,
		MaxFiles: limits.MaxFiles, MaxFileSize: limits.MaxFileSize, Privilege: "admin",
	}
	if status.ConfigLock {
		status.Privilege = "user"
	}
	code, text := http.StatusOK, "OK"
	err := h.Saved.Shared.Check(r.Context(), h.Saved.Store)
	status.Status.Storage, status.Status.Config = err == nil, err == nil && h.Saved.Manage
	status.Status.Attach = !status.AttachLock
	if status.Status.Details = []string{"OK"}; err != nil {
		h.Log.Error("the storage of saved configurations does not work", zap.Error(err))
		code, text = http.StatusExpectationFailed, "CONFIG_PERMISSION_ISSUE"
		status.Status.Details = []string{text}
	}
	if api.PrefersJSON(r) {
		return WriteJSON(w, code, status)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // it fails only if the client is gone
	return nil
}

// serveQR answers with the address that Apprise Mobile scans.
func (h *SavedKeys) serveQR(w http.ResponseWriter, r *http.Request, at *Route) error {
	k, err := at.Lookup().Key(r.Context())
	if err != nil {
		return err
	}
	address, login := AppriseAddress(r, h.Resolved.PublicURL, k.Name, len(k.Tokens) > 0)
	return WriteJSON(w, http.StatusOK, struct {
		URL   string `json:"url"`
		Login bool   `json:"uses_admin_credentials"` // a login of the site, rather than a token of the key
	}{address, login})
}

// AppriseAddress returns the apprise:// URL of a key as /qr/{KEY} of Apprise API does, for the
// client of r. It has no secret: the user in place of a password means a login of the site, and an
// @ alone a token of the key.
func AppriseAddress(r *http.Request, public, key string, hasToken bool) (address string, login bool) {
	scheme, host := SiteAddress(r)
	path := StrippedPrefix(r)
	if u, err := url.Parse(public); err == nil && public != "" {
		scheme, host, path = u.Scheme, u.Host, strings.TrimSuffix(u.Path, "/")
	}
	user := environment.User(r)
	address = "apprise"
	if scheme == "https" {
		address += "s"
	}
	address += "://"
	switch {
	case user != "":
		address += url.UserPassword("", user).String() + "@"
	case hasToken:
		address += "@"
	}
	return address + host + path + "/" + key, user != ""
}

// allQuery is the query parameter of /details that lists services that the site does not allow,
// too.
const allQuery = "all"

// serveDetails writes the catalogue: the services that the site allows or, with
// ?all=yes, all of them.
func (h *SavedKeys) serveDetails(w http.ResponseWriter, r *http.Request, _ string) error {
	all := r.URL.Query().Get(allQuery)
	// The Apprise API reads only the first letter.
	isYes := all != "" && strings.ContainsAny(all[:1], "aAyY1tTeE+ ")
	return WriteJSON(w, http.StatusOK, catalogue.New(h.Resolved.Services, h.Resolved.Identity, isYes))
}
