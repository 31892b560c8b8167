package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/openapi"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// SavedKeys reads and changes saved keys: /cfg, /add, /get, /del, /json/urls, and the rest of the
// Apprise API.
type SavedKeys struct {
	*Base
	sender *Sender
}

// actionSpecs returns the actions of the routes for saved keys.
func (h *SavedKeys) actionSpecs() []Action {
	t := &tokens{h.Base}
	return []Action{
		{Pattern: RouteStatus, Do: OfKey(h.serveStatus)},
		{Pattern: RouteStatusKey, Do: OfKey(h.serveStatus)},
		{Pattern: RouteQR, Do: h.serveQR},
		{Pattern: RouteDetails, Do: OfKey(h.serveDetails)},
		{Pattern: RouteURLs, Do: h.serveURLs},
		{Pattern: RouteKeys, Do: h.serveKeys},
		{Pattern: RouteKey, Do: h.leadToPage},
		{Pattern: routeToken, Change: true, Saved: true, Do: OfKey(t.changeTokens)},
		{Pattern: RouteKey, Change: true, Saved: true, Do: OfKey(h.getConfig)},
		{Pattern: RouteGet, Change: true, Saved: true, Do: OfKey(h.getConfig)},
		{Pattern: RouteAdd, Change: true, Query: checkQuery, Saved: true, Do: OfKey(h.checkConfig), About: openapi.CheckQuery()},
		{Pattern: RouteAdd, Change: true, Saved: true, Do: OfKey(h.addConfig)},
		{Pattern: RouteDel, Change: true, Saved: true, Do: OfKey(h.deleteConfig)},
		{Pattern: RouteMove, Change: true, Saved: true, Do: OfKey(h.moveConfig)},
	}
}

// ErrKeyPage is returned to a program that asks for the page of a key.
var ErrKeyPage = api.Errorf(http.StatusNotAcceptable,
	"there is only a page for browsers here (Accept: text/html); the configuration of a key is read with POST /get/{KEY}")

// leadToPage redirects a browser to the page of a key.
func (h *SavedKeys) leadToPage(w http.ResponseWriter, r *http.Request, at *Route) error {
	if !h.Has.Console {
		w.Header().Set("Allow", http.MethodPost)
		return api.Errorf(http.StatusMethodNotAllowed, "the method %s is not allowed here; use POST", r.Method)
	}
	if !api.PrefersHTML(r) {
		return ErrKeyPage
	}
	return SeeOther(w, ConsoleKey(r, at.Key), r.URL.RawQuery)
}

// Changes returns the changes of saved keys for the client of r.
func (h *Base) Changes(r *http.Request) saved.Changes {
	return h.Saved.By(environment.User(r), environment.ClientIP(r))
}

func (h *SavedKeys) deleteConfig(w http.ResponseWriter, r *http.Request, name string) error {
	if err := h.Changes(r).Delete(r.Context(), name); err != nil {
		return err
	}
	writeChanged(w, r, name, "Deleted", "Successfully removed configuration", nil)
	return nil
}

// getConfig writes the configuration of a key as it was saved.
func (h *SavedKeys) getConfig(w http.ResponseWriter, r *http.Request, name string) error {
	c, err := h.Saved.Get(r.Context(), name)
	if err != nil {
		return err
	}
	if api.PrefersJSON(r) {
		return WriteJSON(w, http.StatusOK, struct {
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

// serveKeys lists the saved keys, or redirects a browser to the page with all keys.
func (h *SavedKeys) serveKeys(w http.ResponseWriter, r *http.Request, _ *Route) error {
	if h.Has.Console && api.PrefersHTML(r) {
		return SeeOther(w, AddressOf(r, RouteConsoleKeys), r.URL.RawQuery)
	}
	keys, err := h.Saved.List(r.Context())
	if err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, keys)
}

// savedURL is an item of the response of /json/urls.
type savedURL struct {
	ID      *string `json:"id"` // the same for the same URL; null while the storage cannot be read
	Service string  `json:"service_name"`
	Enabled bool    `json:"enabled"`
	URL     string  `json:"url"` // with its secrets masked
	// Template has the names of the variables in the URL that messages can set. The values are
	// null, because defaults may be secrets.
	Template   map[string]*string `json:"template"`
	Retry      int                `json:"retry"`
	Optional   bool               `json:"optional"`
	Tags       []string           `json:"tags"` // in lower case, without numbers
	TagDetails []savedTag         `json:"tag_details"`
}

// savedTag is a tag of a URL with its number.
type savedTag struct {
	Name   string `json:"name"`
	Number int    `json:"priority"`
	Token  string `json:"token"` // as in the configuration, such as 2:ops
	Exact  string `json:"exact"` // tag expression for this number only
}

// newSavedTags returns the tags of a URL, sorted, and their names without repetition.
func newSavedTags(tags []string) (details []savedTag, names []string) {
	details, names = make([]savedTag, 0, len(tags)), make([]string, 0, len(tags))
	for _, tag := range tags {
		tag = strings.ToLower(tag)
		number, name := notifier.SplitTag(tag)
		details = append(details, savedTag{name, number, tag, fmt.Sprintf("%d:%s", number, name)})
		names = append(names, name)
	}
	slices.SortFunc(details, func(a, b savedTag) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Number, b.Number))
	})
	slices.Sort(names)
	return details, slices.Compact(names)
}

// serveURLs lists the destinations of a key and their tags.
func (h *SavedKeys) serveURLs(w http.ResponseWriter, r *http.Request, at *Route) error {
	k, err := h.keyToRead(r, at.Lookup())
	if err != nil {
		return err
	}
	targets := k.Targets
	if text := r.URL.Query().Get("tag"); text != "" && !strings.EqualFold(text, "all") {
		e, err := notifier.ParseTags(text)
		if err != nil {
			return api.Errorf(http.StatusBadRequest, "tag: %w", err)
		}
		targets = k.Select(e)
	}
	out := struct {
		Tags []string   `json:"tags"`
		URLs []savedURL `json:"urls"`
	}{[]string{}, []savedURL{}}
	id := h.Saved.IDOf(r.Context())
	for _, t := range targets {
		details, names := newSavedTags(t.Tags)
		out.Tags = append(out.Tags, names...)
		url, template := t.String(), map[string]*string{}
		if t.Variable != nil {
			url = t.Variable.String()
			for _, v := range t.Variable.Variables {
				template[v.Name] = nil
			}
		}
		out.URLs = append(out.URLs, savedURL{
			ID: id(t), Service: t.Service(), Enabled: true, URL: url, Template: template, Retry: t.Retry(), Optional: t.Optional(), Tags: names,
			TagDetails: details,
		})
	}
	slices.Sort(out.Tags)
	out.Tags = slices.Compact(out.Tags)
	return WriteJSON(w, http.StatusOK, out)
}

// WriteJSON writes a value as JSON in one line.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
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
