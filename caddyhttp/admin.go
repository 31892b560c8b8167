package caddyhttp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
)

func init() {
	caddy.RegisterModule(adminAPI{})
}

// adminAPI is what Caddy's admin API tells about the gateway:
//
//	GET  /notify/keys             the keys of all sites
//	GET  /notify/keys/{key}       one of them
//	POST /notify/keys/{key}/test  sends a test message to it
//	GET  /notify/recent           what became of the last messages
//
// It shows no secret. It holds nothing, since the admin API comes before the
// apps of its configuration and is never cleaned up.
type adminAPI struct{}

// CaddyModule returns the Caddy module information.
func (adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.notify",
		New: func() caddy.Module { return new(adminAPI) },
	}
}

// Routes implements caddy.AdminRouter.
func (a adminAPI) Routes() []caddy.AdminRoute {
	var routes []caddy.AdminRoute
	for _, r := range []struct {
		method, path string
		handle       caddy.AdminHandlerFunc
	}{
		{http.MethodGet, "/notify/keys", a.keys},
		{http.MethodGet, "/notify/keys/{key}", a.key},
		{http.MethodPost, "/notify/keys/{key}/test", a.test},
		{http.MethodGet, "/notify/recent", a.recent},
	} {
		routes = append(routes,
			caddy.AdminRoute{Pattern: r.method + " " + r.path, Handler: r.handle},
			caddy.AdminRoute{Pattern: r.path, Handler: otherMethod(r.method)})
	}
	return append(routes,
		caddy.AdminRoute{Pattern: "/notify", Handler: caddy.AdminHandlerFunc(a.none)},
		caddy.AdminRoute{Pattern: "/notify/", Handler: caddy.AdminHandlerFunc(a.none)})
}

// otherMethod answers requests with any method but the one that is possible.
// The router itself would answer in plain text.
func otherMethod(possible string) caddy.AdminHandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		allow := possible
		if possible == http.MethodGet {
			allow += ", HEAD"
		}
		w.Header().Set("Allow", allow)
		return apiError(http.StatusMethodNotAllowed, fmt.Errorf("only %s is possible here", possible))
	}
}

// none answers requests for everything else.
func (adminAPI) none(http.ResponseWriter, *http.Request) error {
	return apiError(http.StatusNotFound, errors.New("there is nothing here; see /notify/keys and /notify/recent"))
}

func (adminAPI) keys(w http.ResponseWriter, _ *http.Request) error {
	app, err := current()
	if err != nil {
		return err
	}
	all := app.definitions()
	out := make([]adminKey, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, showKey(name, all[name]))
	}
	return show(w, out)
}

func (adminAPI) key(w http.ResponseWriter, r *http.Request) error {
	_, defined, err := find(r)
	if err != nil {
		return err
	}
	return show(w, showKey(r.PathValue("key"), defined))
}

// testMessage is the body of a request for a test. It may be empty.
type testMessage struct {
	Title *string `json:"title"`
	Body  string  `json:"body"`
	Type  string  `json:"type"`
	Tag   string  `json:"tag"`
}

// maxTest is how long the JSON of a test message may be.
const maxTest = 64 << 10

func (adminAPI) test(w http.ResponseWriter, r *http.Request) error {
	app, defined, err := find(r)
	if err != nil {
		return err
	}
	var text testMessage
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTest))
	if err != nil {
		return apiError(api.BodyError(err).Status, api.BodyError(err))
	}
	if len(bytes.TrimSpace(body)) > 0 {
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&text); err != nil || d.More() {
			return apiError(http.StatusBadRequest, errors.New("the body must be one JSON object, with the fields title, body, type and tag, texts all of them, or empty"))
		}
	}
	kind, err := notifier.ParseType(text.Type)
	if err != nil {
		return apiError(http.StatusBadRequest, fmt.Errorf("type: %w", err))
	}
	tag, err := notifier.ParseTags(text.Tag)
	if err != nil {
		return apiError(http.StatusBadRequest, fmt.Errorf("tag: %w", err))
	}
	name := r.PathValue("key")
	m := &notifier.Message{Title: "Test", Body: cmp.Or(text.Body, "If you can read this, the key "+name+" works."), Type: kind, Time: time.Now()}
	if text.Title != nil {
		m.Title = joinTitle(*text.Title)
	}
	report := app.shared.sendTest(r, m, name, defined, tag)
	if len(report.Results) == 0 {
		return apiError(http.StatusFailedDependency, fmt.Errorf("no destination of the key %s has the tag, so nothing was sent", name))
	}
	resp := api.NewResponse(report)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(resp.Status)
	_, err = w.Write(resp.JSON())
	return err
}

// sendTest sends a message to what the key is at each site that has one of
// the name, under the site's settings.
func (s *shared) sendTest(r *http.Request, m *notifier.Message, name string, defined []definition, tag notifier.TagExpr) *notifier.Report {
	reports := make([]*notifier.Report, len(defined))
	var wg sync.WaitGroup
	for i, d := range defined {
		targets := d.key.match(tag)
		if len(targets) == 0 {
			continue
		}
		c := *m
		c.Identity = d.settings.identity
		wg.Go(func() {
			reports[i] = s.send(r.Context(), delivery{
				message: &c, to: &api.Selection{Targets: targets}, settings: d.settings, logger: d.key.log, source: sourceTest, key: name,
			})
		})
	}
	wg.Wait()
	all := new(notifier.Report)
	for _, one := range reports {
		if one != nil {
			all.Results, all.Records = append(all.Results, one.Results...), append(all.Records, one.Records...)
		}
	}
	return all
}

func (adminAPI) recent(w http.ResponseWriter, _ *http.Request) error {
	app, err := current()
	if err != nil {
		return err
	}
	return show(w, app.shared.history.list())
}

// adminKey is a key as the admin API shows it.
type adminKey struct {
	Name         string            `json:"name"`
	Destinations int               `json:"destinations"` // in all definitions together
	Definitions  []adminDefinition `json:"definitions"`
}

// adminDefinition is what a key is at one site or, if the global block has
// it, at all sites. Sites that define it alike share one.
type adminDefinition struct {
	Scope        string             `json:"scope"` // global or site
	Destinations []adminDestination `json:"destinations"`
}

type adminDestination struct {
	Service     string   `json:"service"`
	Destination string   `json:"destination"` // without secrets
	Tags        []string `json:"tags"`
	Optional    bool     `json:"optional"`
	Default     bool     `json:"default"` // it gets messages that name no tag
}

func showKey(name string, defined []definition) adminKey {
	out := adminKey{Name: name}
	for _, d := range defined {
		shown := adminDefinition{Scope: d.scope, Destinations: make([]adminDestination, len(d.key.targets))}
		for i, t := range d.key.targets {
			shown.Destinations[i] = adminDestination{
				Service: t.Service(), Destination: t.String(), Tags: append([]string{}, t.Tags...), Optional: t.Optional(),
				Default: slices.ContainsFunc(d.key.fallback, func(f notifier.Target) bool { return same(f, t) }),
			}
		}
		out.Destinations += len(shown.Destinations)
		out.Definitions = append(out.Definitions, shown)
	}
	return out
}

// definition is a key with the settings of the place where it is defined.
type definition struct {
	key      *key
	settings *resolved
	scope    string
}

// definitions lists by name the keys of the app and those of the sites. A key
// that several sites define alike, as with an imported snippet, is there once.
func (a *App) definitions() map[string][]definition {
	out := map[string][]definition{}
	add := func(r *resolved, scope string) {
		for name, k := range r.keys {
			if !slices.ContainsFunc(out[name], func(d definition) bool { return d.key == k || d.key.like(k) }) {
				out[name] = append(out[name], definition{k, r, scope})
			}
		}
	}
	add(a.resolved, "global")
	for _, site := range a.sites {
		add(site, "site")
	}
	return out
}

// like says whether two keys are the same but for their place. The engine has
// one destination for each URL.
func (k *key) like(o *key) bool {
	return slices.EqualFunc(k.targets, o.targets, same) && slices.EqualFunc(k.fallback, o.fallback, same)
}

func same(a, b notifier.Target) bool {
	return a.Destination == b.Destination && slices.Equal(a.Tags, b.Tags)
}

// current is the app of the configuration that is running. It is not asked of
// Caddy, since the admin API answers already while Caddy loads the apps.
func current() (*App, error) {
	var app *App
	sharedPool.Range(func(_, e any) bool {
		app = e.(*shared).apps.newest()
		return false
	})
	if app == nil {
		return nil, apiError(http.StatusNotFound, errors.New("the running configuration has no notify"))
	}
	return app, nil
}

func find(r *http.Request) (*App, []definition, error) {
	app, err := current()
	if err != nil {
		return nil, nil, err
	}
	defined := app.definitions()[r.PathValue("key")]
	if len(defined) == 0 {
		return nil, nil, apiError(http.StatusNotFound, errors.New("there is no such key; GET /notify/keys lists them"))
	}
	return app, defined, nil
}

func apiError(status int, err error) error { return caddy.APIError{HTTPStatus: status, Err: err} }

func show(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}

// Interface guards
var _ caddy.AdminRouter = adminAPI{}
