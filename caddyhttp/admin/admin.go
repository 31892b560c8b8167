// Package admin is the part of Caddy's admin API about the gateway. It reads a request,
// calls the gateway that runs, and writes JSON: what the operator may see and do without
// the rights of a key.
package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/process"
	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/similar"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

func init() {
	caddy.RegisterModule(API{})
}

// API is the part of Caddy's admin API about the gateway:
//
//	GET  /notify/keys             the keys of all sites
//	GET  /notify/keys/{key}       one of them
//	POST /notify/keys/{key}/test  sends a test message to it
//	POST   /notify/keys/{key}/invitations   makes an invitation for a device
//	GET    /notify/keys/{key}/devices       the devices that have subscribed to it
//	DELETE /notify/keys/{key}/devices       removes all of them
//	DELETE /notify/keys/{key}/devices/{id}  removes one
//
//	GET  /notify/recent           the outcomes of the last messages
//	GET  /notify/beats            the beats that keys expect, and the calls of the watchdog
//	POST /notify/doctor           the versions, the queue's state, and a token that an address of this gateway answers
//
//	GET    /notify/destinations             the states of the destinations
//	POST   /notify/destinations/{id}/retry  makes due what waits for one, and what was given up
//
//	GET    /notify/keys/{key}/silences       the silences of a key; also of a saved one, whose space ?space= names
//	POST   /notify/keys/{key}/silences       makes one
//	DELETE /notify/keys/{key}/silences/{id}  ends one
//
//	POST   /notify/keys/{key}/questions  asks a question
//	GET    /notify/questions/{id}        one of them; ?wait=60 waits for the answer
//	DELETE /notify/questions/{id}        withdraws it
//
//	GET  /notify/incidents                   the incidents of keys with rules
//	POST /notify/incidents/{id}/acknowledge  acknowledges one; the body may say by whom
//	POST /notify/incidents/{id}/resolve      resolves one
//	DELETE /notify/incidents/{id}            forgets one
//	DELETE /notify/incidents?key=            forgets all of a key
//
//	GET    /notify/queue             the deliveries that wait
//	GET    /notify/queue/dead        the deliveries that were given up
//	GET    /notify/queue/backup      a copy of the queue
//	POST   /notify/queue/retry       makes all deliveries due that wait or are dead
//	GET    /notify/queue/{id}        a message with all its deliveries
//	POST   /notify/queue/{id}/retry  makes the deliveries of a message due that wait or are dead
//	DELETE /notify/queue/{id}        removes the deliveries of a message
//
// It shows no secret. It has no state, because Caddy provisions the admin API
// before the apps of its configuration and never cleans it up.
type API struct{}

// CaddyModule returns the Caddy module information.
func (API) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.notify",
		New: func() caddy.Module { return new(API) },
	}
}

// Routes implements caddy.AdminRouter.
func (API) Routes() []caddy.AdminRoute {
	handle := func(pattern string, h caddy.AdminHandlerFunc) caddy.AdminRoute {
		return caddy.AdminRoute{Pattern: pattern, Handler: h}
	}
	routes := []caddy.AdminRoute{
		// Other methods of these match /notify/queue/{id}.
		handle("GET /notify/queue/dead", serveDead),
		handle("GET /notify/queue/backup", serveBackup),
		handle("POST /notify/queue/retry", serveRetryAll),
		handle("/notify", serveNotFound),
		handle("/notify/", serveNotFound),
	}
	routes = append(routes, loadRoutes()...)
	methods := map[string][]string{} // by path
	for _, r := range []struct {
		method, path string
		handle       caddy.AdminHandlerFunc
	}{
		{http.MethodGet, "/notify/keys", serveKeys},
		{http.MethodGet, "/notify/keys/{key}", serveKey},
		{http.MethodPost, "/notify/keys/{key}/test", serveTest},
		{http.MethodGet, "/notify/keys/{key}/silences", serveSilences},
		{http.MethodPost, "/notify/keys/{key}/silences", serveMakeSilence},
		{http.MethodPost, "/notify/keys/{key}/silences/{id}", serveExtendSilence},
		{http.MethodDelete, "/notify/keys/{key}/silences/{id}", serveEndSilence},
		{http.MethodPost, "/notify/keys/{key}/invitations", serveInvite},
		{http.MethodGet, "/notify/keys/{key}/devices", serveDevices},
		{http.MethodDelete, "/notify/keys/{key}/devices", serveRevokeDevices},
		{http.MethodDelete, "/notify/keys/{key}/devices/{id}", serveRevokeDevice},
		{http.MethodPost, "/notify/keys/{key}/questions", serveAskQuestion},
		{http.MethodGet, "/notify/questions/{id}", serveQuestion},
		{http.MethodDelete, "/notify/questions/{id}", serveWithdraw},
		{http.MethodGet, "/notify/recent", serveRecent},
		{http.MethodGet, "/notify/beats", serveBeats},
		{http.MethodPost, "/notify/doctor", serveDoctor},
		{http.MethodGet, "/notify/destinations", serveDestinations},
		{http.MethodPost, "/notify/destinations/{id}/retry", serveRetryDestination},
		{http.MethodGet, "/notify/incidents", serveIncidents},
		{http.MethodDelete, "/notify/incidents", serveForgetAll},
		{http.MethodDelete, "/notify/incidents/{id}", serveForget},
		{http.MethodPost, "/notify/incidents/{id}/acknowledge", serveAcknowledge},
		{http.MethodPost, "/notify/incidents/{id}/resolve", serveResolve},
		{http.MethodGet, "/notify/queue", serveQueue},
		{http.MethodGet, "/notify/queue/{id}", serveMessage},
		{http.MethodDelete, "/notify/queue/{id}", serveDrop},
		{http.MethodPost, "/notify/queue/{id}/retry", serveRetry},
	} {
		routes = append(routes, handle(r.method+" "+r.path, r.handle))
		methods[r.path] = append(methods[r.path], r.method)
	}
	for path, allowed := range methods {
		routes = append(routes, handle(path, methodNotAllowed(allowed)))
	}
	return routes
}

// methodNotAllowed returns a handler for all methods except the allowed ones.
// Without it, the router would answer in plain text.
func methodNotAllowed(allowed []string) caddy.AdminHandlerFunc {
	allow := strings.ReplaceAll(strings.Join(allowed, ", "), http.MethodGet, "GET, HEAD")
	use := allow
	if len(allowed) == 1 {
		use = allowed[0]
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allow)
		return apiError(http.StatusMethodNotAllowed, fmt.Errorf("the method %s is not allowed here; use %s", r.Method, use))
	}
}

func serveNotFound(http.ResponseWriter, *http.Request) error {
	return apiError(http.StatusNotFound,
		errors.New("there is nothing at this address; try /notify/keys, /notify/recent, "+
			"/notify/beats, /notify/destinations, /notify/incidents or /notify/queue"))
}

func serveKeys(w http.ResponseWriter, _ *http.Request) error {
	app, err := runningGateway()
	if err != nil {
		return err
	}
	all := app.Conf.Definitions()
	out := make([]keyJSON, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, newKeyJSON(name, all[name]))
	}
	return writeJSON(w, out)
}

func serveKey(w http.ResponseWriter, r *http.Request) error {
	app, definitions, err := findDefinitions(r)
	if err != nil {
		return err
	}
	out := newKeyJSON(r.PathValue("key"), definitions)
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	for i, d := range definitions {
		health, err := healthOf(ctx, app, d.Key, d.Key.Targets)
		if err != nil {
			return apiError(http.StatusServiceUnavailable, err)
		}
		for k := range health {
			out.Definitions[i].Destinations[k].Health = &health[k]
		}
	}
	return writeJSON(w, out)
}

func serveRecent(w http.ResponseWriter, _ *http.Request) error {
	app, err := runningGateway()
	if err != nil {
		return err
	}
	return writeJSON(w, app.Conf.Shared.History.List())
}

// testRequest is the body of a request for a test message.
type testRequest struct {
	Title *string `json:"title"`
	Body  string  `json:"body"`
	Type  string  `json:"type"`
	Tag   string  `json:"tag"`
}

// MaxTestRequest bounds the body of a request for a test message, in bytes.
const MaxTestRequest = 64 << 10

// readBody reads the body of r, which may be empty, into x. mistake says what it must be.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, x any, mistake string) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		e := api.BodyError(err)
		return apiError(e.Status, e)
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(x); err != nil || d.More() {
		return apiError(http.StatusBadRequest, errors.New(mistake))
	}
	return nil
}

func serveTest(w http.ResponseWriter, r *http.Request) error {
	app, definitions, err := findDefinitions(r)
	if err != nil {
		return err
	}
	var t testRequest
	if err := readBody(w, r, MaxTestRequest, &t,
		"the body must be empty or one JSON object with the fields title, body, type and tag, all of them strings"); err != nil {
		return err
	}
	typ, err := notifier.ParseType(t.Type)
	if err != nil {
		return apiError(http.StatusBadRequest, errs.Prefix("type", err))
	}
	tag, err := notifier.ParseTags(t.Tag)
	if err != nil {
		return apiError(http.StatusBadRequest, errs.Prefix("tag", err))
	}
	name := r.PathValue("key")
	m := &notifier.Message{Title: "Test", Body: cmp.Or(t.Body, "If you can read this, the key "+name+" works."), Type: typ, Time: time.Now()}
	if t.Title != nil {
		m.Title = markup.OneLine(*t.Title)
	}
	report := app.SendTests(r.Context(), m, definitions, tag)
	if len(report.Results) == 0 {
		var all []notifier.Target
		for _, d := range definitions {
			all = append(all, d.Key.Targets...)
		}
		return apiError(http.StatusFailedDependency,
			fmt.Errorf("no destination of the key %s has the requested tag %s, so nothing was sent%s",
				name, site.TagText(tag), site.SuggestTags(tag, all)))
	}
	resp := api.NewResponse(report)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(resp.Status)
	_, err = w.Write(resp.JSON())
	return err
}

// keyJSON is the JSON of a key.
type keyJSON struct {
	Name         string           `json:"name"`
	Destinations int              `json:"destinations"` // of all definitions together
	Definitions  []definitionJSON `json:"definitions"`
}

// definitionJSON is the JSON of a key's definition at one site or for all
// sites. Sites with the same definition share one.
type definitionJSON struct {
	Scope        string            `json:"scope"` // global or site
	Destinations []destinationJSON `json:"destinations"`
}

type destinationJSON struct {
	Service     string   `json:"service"`
	Destination string   `json:"destination"` // the URL with its secrets masked
	Tags        []string `json:"tags"`
	Optional    bool     `json:"optional"`
	Default     bool     `json:"default"` // it gets messages without a tag

	Health *Health `json:"health,omitempty"` // with a queue
}

func newKeyJSON(name string, definitions []site.Definition) keyJSON {
	out := keyJSON{Name: name}
	for _, d := range definitions {
		a := definitionJSON{Scope: d.Scope, Destinations: make([]destinationJSON, len(d.Key.Targets))}
		for i, t := range d.Key.Targets {
			a.Destinations[i] = destinationJSON{
				Service: t.Service(), Destination: t.String(), Tags: append([]string{}, t.Tags...), Optional: t.Optional(),
				Default: slices.ContainsFunc(d.Key.DefaultTargets, func(o notifier.Target) bool {
					return o.Destination == t.Destination && slices.Equal(o.Tags, t.Tags)
				}),
			}
		}
		out.Destinations += len(a.Destinations)
		out.Definitions = append(out.Definitions, a)
	}
	return out
}

// runningGateway returns the gateway of the running configuration. It does not ask
// Caddy for it, because the admin API already answers while Caddy loads the
// apps.
func runningGateway() (*gateway.Gateway, error) {
	app := process.Running()
	if app == nil {
		return nil, apiError(http.StatusNotFound, errors.New("the running configuration does not use notify"))
	}
	return app, nil
}

// findDefinitions returns the definitions of the key of the configuration in the path of r.
// The gateway is not nil if there is only no such key.
func findDefinitions(r *http.Request) (*gateway.Gateway, []site.Definition, error) {
	app, err := runningGateway()
	if err != nil {
		return nil, nil, err
	}
	definitions := app.Conf.Definitions()[r.PathValue("key")]
	if len(definitions) == 0 {
		return app, nil, apiError(http.StatusNotFound, noKey(app, r.PathValue("key"), ""))
	}
	return app, definitions, nil
}

// noKey returns the error for a key that does not exist, where it was looked for. It suggests
// one of the configuration.
func noKey(app *gateway.Gateway, name, where string) error {
	hint := similar.Hint(name, slices.Collect(maps.Keys(app.Conf.Definitions())), "GET /notify/keys lists the keys of the configuration")
	return fmt.Errorf("there is no such key: %s%s; %s", markup.TruncateBytes(name, 64), where, hint)
}

func apiError(status int, err error) error { return caddy.APIError{HTTPStatus: status, Err: err} }

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}

// Interface guards
var _ caddy.AdminRouter = API{}
