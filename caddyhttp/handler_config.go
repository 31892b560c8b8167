package caddyhttp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/caddyhttp/configstore"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// configAddress is an address of the routes for saved configurations.
type configAddress struct {
	route string // one of the constants below
	key   string // "" for a route without a key
}

// The routes for saved configurations, each with or without a slash at the end.
const (
	routeAdd     = "/add/"
	routeGet     = "/get/"
	routeDel     = "/del/"
	routeKey     = "/cfg/"
	routeURLs    = "/json/urls/"
	routeKeys    = "/cfg"
	routeStatus  = "/status"
	routeDetails = "/details"
)

// configRoute reports whether a path is one of the routes for saved
// configurations.
func configRoute(path string) (a configAddress, ok bool) {
	trimmed := strings.TrimSuffix(path, "/")
	if slices.Contains([]string{routeKeys, routeStatus, routeDetails}, trimmed) {
		return configAddress{route: trimmed}, true
	}
	for _, route := range []string{routeAdd, routeGet, routeDel, routeKey, routeURLs} {
		if key, ok := strings.CutPrefix(trimmed, route); ok && key != "" && !strings.Contains(key, "/") {
			return configAddress{route, key}, true
		}
	}
	return a, false
}

// configMethods are the methods of the routes.
var configMethods = map[string][]string{
	routeAdd:     {http.MethodPost},
	routeGet:     {http.MethodPost},
	routeDel:     {http.MethodPost},
	routeKey:     {http.MethodGet, http.MethodHead, http.MethodPost},
	routeURLs:    {http.MethodGet, http.MethodHead},
	routeKeys:    {http.MethodGet, http.MethodHead},
	routeStatus:  {http.MethodGet, http.MethodHead},
	routeDetails: {http.MethodGet, http.MethodHead},
}

// serveConfig handles a request to one of the routes for saved configurations.
func (h *Handler) serveConfig(w http.ResponseWriter, r *http.Request, a configAddress) {
	err := h.doConfig(w, r, a)
	if err == nil {
		return
	}
	resp := h.errorResponse(err)
	switch {
	case a.route == routeAdd || a.route == routeDel:
		resp.Title, resp.BackURL = "Not changed", configPage(r)
	case a.route == routeKey && r.Method == http.MethodPost:
		resp.BackURL = configPage(r)
	}
	if r.Method == http.MethodPost {
		h.refuse(r, a.key, resp.Status, resp.Error, err)
	}
	resp.Write(w, r)
}

func (h *Handler) doConfig(w http.ResponseWriter, r *http.Request, a configAddress) error {
	if methods := configMethods[a.route]; !slices.Contains(methods, r.Method) {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use %s", r.Method, methods[0])
	}
	w.Header().Set("Cache-Control", "no-store")
	switch a.route {
	case routeStatus:
		return h.serveStatus(w, r)
	case routeDetails:
		return writeJSON(w, http.StatusOK, newDetails())
	case routeURLs:
		return h.serveURLs(w, r, a.key)
	}
	if err := h.mayManage(r); err != nil {
		return err
	}
	switch {
	case a.route == routeKeys:
		return h.serveKeys(w, r)
	case a.route == routeKey && r.Method != http.MethodPost:
		return h.serveKeyPage(w, r, a.key)
	}
	if err := h.resolved.checkOrigin(r); err != nil {
		return err
	}
	if err := checkKeyName(a.key); err != nil {
		return api.Errorf(http.StatusNotFound, "%w", err)
	}
	if a.route == routeKey {
		switch query := r.URL.Query(); {
		case query.Has(testQuery):
			return h.serveTest(w, r, a.key)
		case query.Has(retryQuery):
			return h.changeQueued(w, r, a.key, retryQuery)
		case query.Has(dropQuery):
			return h.changeQueued(w, r, a.key, dropQuery)
		}
	}
	if h.resolved.keys[a.key] != nil {
		return errKeyFixed(a.key)
	}
	switch a.route {
	case routeAdd:
		if check := r.URL.Query(); check.Has(checkQuery) {
			return h.checkConfig(w, r, a.key, check.Get(checkQuery) != checkLocal)
		}
		return h.addConfig(w, r, a.key)
	case routeDel:
		return h.deleteConfig(w, r, a.key)
	case routeKey:
		switch query := r.URL.Query(); {
		case query.Has(buildQuery):
			return h.postBuilder(w, r, a.key)
		case query.Has(draftQuery):
			return h.serveDraft(w, r, a.key)
		}
	}
	return h.getConfig(w, r, a.key)
}

// errKeyFixed returns the error for a request to read or change a key of the
// Caddyfile.
func errKeyFixed(key string) error {
	return api.Errorf(http.StatusForbidden, "the key %s is in the configuration of the gateway; it can be neither read nor changed here", key)
}

// Errors of mayManage.
var (
	errManageOff  = api.Errorf(http.StatusForbidden, "saved configurations cannot be read or changed here; the operator can allow it with configs { manage }")
	errManageUser = api.Errorf(http.StatusForbidden, "reading and changing saved configurations needs a user or a client certificate; the operator can put basic_auth or another authentication in front of notify")
)

// mayManage returns an error if the client of r may not read and change saved
// configurations.
func (h *Handler) mayManage(r *http.Request) error {
	switch {
	case h.resolved.saved.Manage == manageOpen:
		return nil
	case h.resolved.saved.Manage == "":
		return errManageOff
	case requestUser(r) != "", r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		return nil
	}
	return errManageUser
}

// requestUser returns the user that Caddy's authentication found, or "".
func requestUser(r *http.Request) (user string) {
	if values, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		user, _ = values.GetString("http.auth.user.id")
	}
	return user
}

func (h *Handler) deleteConfig(w http.ResponseWriter, r *http.Request, name string) error {
	err := h.resolved.saved.store.Delete(r.Context(), name)
	if errors.Is(err, configstore.ErrNotFound) {
		return errNoKey
	}
	if err != nil {
		return errSavedUnavailable(err)
	}
	h.configChanged(r, name, changeDeleted, 0)
	writeChanged(w, r, "Deleted", "Successfully removed configuration", nil)
	return nil
}

// loadConfig returns the saved configuration of a key. Errors are for the client.
func (h *Handler) loadConfig(ctx context.Context, name string) (*configstore.Config, error) {
	c, err := h.resolved.saved.store.Load(ctx, name)
	if errors.Is(err, configstore.ErrNotFound) {
		return nil, errNoKey
	}
	if err != nil {
		return nil, errSavedUnavailable(err)
	}
	return c, nil
}

// getConfig writes the configuration of a key as it was saved.
func (h *Handler) getConfig(w http.ResponseWriter, r *http.Request, name string) error {
	c, err := h.loadConfig(r.Context(), name)
	if err != nil {
		return err
	}
	if api.PrefersJSON(r) {
		return writeJSON(w, http.StatusOK, struct {
			Format string `json:"format"`
			Config string `json:"config"`
		}{c.Format, c.Text})
	}
	media := "text/plain; charset=utf-8"
	if c.Format == configstore.FormatYAML {
		media = "text/yaml; charset=utf-8"
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(c.Text)) // it fails only if the client is gone
	return nil
}

// serveKeys lists the saved keys.
func (h *Handler) serveKeys(w http.ResponseWriter, r *http.Request) error {
	keys, err := h.resolved.saved.store.Keys(r.Context())
	if err != nil {
		return errSavedUnavailable(err)
	}
	if keys == nil {
		keys = []string{}
	}
	slices.Sort(keys)
	if api.PrefersHTML(r) && h.resolved.page {
		return h.serveKeysPage(w, r, keys)
	}
	return writeJSON(w, http.StatusOK, keys)
}

// savedURL is an item of the response of /json/urls.
type savedURL struct {
	ID       *string  `json:"id"` // the same for the same URL; null while the storage cannot be read
	Service  string   `json:"service_name"`
	Enabled  bool     `json:"enabled"`
	URL      string   `json:"url"` // with its secrets masked
	Retry    int      `json:"retry"`
	Optional bool     `json:"optional"`
	Tags     []string `json:"tags"`
}

// serveURLs lists the destinations of a key and their tags.
func (h *Handler) serveURLs(w http.ResponseWriter, r *http.Request, name string) error {
	k, err := h.resolved.key(r.Context(), name)
	if err != nil {
		return err
	}
	targets := k.targets
	if text := r.URL.Query().Get("tag"); text != "" && !strings.EqualFold(text, "all") {
		e, err := notifier.ParseTags(text)
		if err != nil {
			return api.Errorf(http.StatusBadRequest, "tag: %w", err)
		}
		targets = k.match(e)
	}
	out := struct {
		Tags []string   `json:"tags"`
		URLs []savedURL `json:"urls"`
	}{[]string{}, []savedURL{}}
	id := h.resolved.saved.idOf(r.Context())
	for _, t := range targets {
		tags := make([]string, 0, len(t.Tags))
		for _, tag := range t.Tags {
			tags = append(tags, strings.ToLower(tag))
		}
		out.Tags = append(out.Tags, tags...)
		out.URLs = append(out.URLs, savedURL{ID: id(t), Service: t.Service(), Enabled: true, URL: t.String(), Retry: t.Retry(), Optional: t.Optional(), Tags: tags})
	}
	slices.Sort(out.Tags)
	out.Tags = slices.Compact(out.Tags)
	return writeJSON(w, http.StatusOK, out)
}

// idOf returns a function that returns the ID of a URL. The ID is a keyed hash,
// so that nobody can guess the URL from it.
func (s *savedKeys) idOf(ctx context.Context) func(notifier.Target) *string {
	key, err := s.store.IDKey(ctx)
	if err != nil {
		s.log.Error("URLs are listed without IDs", zap.Error(err))
		return func(notifier.Target) *string { return nil }
	}
	return func(t notifier.Target) *string {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(t.URL()))
		id := hex.EncodeToString(mac.Sum(nil)[:16])
		return &id
	}
}

// Changes of a saved configuration, for the log and the event.
const (
	changeSaved   = "saved"
	changeDeleted = "deleted"
)

// configChanged writes the audit line and emits the event of a change. Neither
// contains a URL.
func (h *Handler) configChanged(r *http.Request, name, change string, destinations int) {
	client, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	h.log.Info("saved configuration changed", zap.String("key", name), zap.String("change", change),
		zap.Int("destinations", destinations), zap.String("user", requestUser(r)), zap.String("client_ip", client))
	h.app.emitter.emit(eventConfigChanged, func() map[string]any {
		return map[string]any{"key": name, "change": change, "destinations": destinations, "user": requestUser(r)}
	})
}

// serveStatus reports whether the storage can be read and written.
func (h *Handler) serveStatus(w http.ResponseWriter, r *http.Request) error {
	status := struct {
		ConfigLock  bool  `json:"config_lock"` // nobody may change saved configurations
		AttachLock  bool  `json:"attach_lock"` // no attachments
		Stateful    bool  `json:"stateful_enabled"`
		MaxFiles    int   `json:"max_attachments"`
		MaxFileSize int64 `json:"attach_size"`
		Status      struct {
			Storage bool     `json:"persistent_storage"`
			Config  bool     `json:"can_write_config"`
			Attach  bool     `json:"can_write_attach"`
			Details []string `json:"details"`
		} `json:"status"`
	}{
		ConfigLock: h.resolved.saved.Manage == "", AttachLock: h.resolved.limits.MaxFiles == 0, Stateful: true,
		MaxFiles: h.resolved.limits.MaxFiles, MaxFileSize: h.resolved.limits.MaxFileSize,
	}
	code, text := http.StatusOK, "OK"
	err := h.app.saved.check(r.Context(), h.resolved.saved.store)
	status.Status.Storage, status.Status.Config = err == nil, err == nil && !status.ConfigLock
	status.Status.Attach = !status.AttachLock
	if status.Status.Details = []string{"OK"}; err != nil {
		h.log.Error("the storage of saved configurations does not work", zap.Error(err))
		code, text = http.StatusExpectationFailed, "CONFIG_PERMISSION_ISSUE"
		status.Status.Details = []string{text}
	}
	if api.PrefersJSON(r) {
		return writeJSON(w, code, status)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // it fails only if the client is gone
	return nil
}

// details is the response of /details: the catalogue, with the names of the
// Apprise API.
type details struct {
	Version string          `json:"version"`
	Schemas []serviceDetail `json:"schemas"`
}

type serviceDetail struct {
	Name            string   `json:"service_name"`
	Site            *string  `json:"service_url"`
	Attachments     bool     `json:"attachment_support"`
	Protocols       []string `json:"protocols"`
	SecureProtocols []string `json:"secure_protocols"`
	Details         struct {
		Templates []string             `json:"templates"`
		Params    []notifier.ParamInfo `json:"params"`
	} `json:"details"`
}

func newDetails() *details {
	out := &details{Version: version}
	for _, s := range notifier.Services() {
		d := serviceDetail{Name: s.Name, Attachments: s.Attachments}
		if s.Site != "" {
			d.Site = &s.Site
		}
		for _, scheme := range s.Schemes {
			if plain, ok := strings.CutSuffix(scheme, "s"); ok && slices.Contains(s.Schemes, plain) {
				d.SecureProtocols = append(d.SecureProtocols, scheme)
			} else {
				d.Protocols = append(d.Protocols, scheme)
			}
		}
		d.Details.Templates, d.Details.Params = s.URLs, s.Params
		out.Schemas = append(out.Schemas, d)
	}
	return out
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // it fails only if the client is gone
	return nil
}
