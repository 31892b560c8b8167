package httpapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// withID returns a POST of a form whose header names a key, once for each of ids.
func withID(target, body string, ids ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	r.Header["X-Apprise-Config-Id"] = ids
	r.Header.Set("Content-Type", gatewaytest.TypeForm)
	r.Header.Set("Accept", gatewaytest.TypeJSON)
	return r
}

// TestConfigID checks which key X-Apprise-Config-ID names for messages: a key whose token the
// request has, any key with config_id on, and none if the request has URLs.
func TestConfigID(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	hooks := gatewaytest.Key("hooks", s.NotifyURL("/hooks"))
	hooks.Accept = []string{"grafana"}
	free := gatewaytest.Key("free", s.NotifyURL("/free"))
	with := func(o site.Options, configIDOfAll *bool) *gatewaytest.Gateway {
		if o.Keys == nil {
			o.Keys, o.Egress = []site.KeyOptions{protectedKey("ops", s.NotifyURL("/ops")), free, hooks}, gatewaytest.Loopback()
		}
		return gatewaytest.New(t, gatewaytest.Options{Global: site.Options{ConfigID: configIDOfAll}, Site: o})
	}
	defaults := gatewaytest.URLs(s.NotifyURL("/default"))
	sites := map[string]*gatewaytest.Gateway{
		"off":           with(site.Options{Stateless: new(false)}, nil),
		"on":            with(site.Options{Stateless: new(false), ConfigID: new(true)}, nil),
		"on in all":     with(site.Options{Stateless: new(false)}, new(true)),
		"off, with URL": with(site.Options{ConfigID: new(false), DefaultURLs: defaults}, new(true)),
		"on, with URL":  with(site.Options{ConfigID: new(true), DefaultURLs: defaults}, nil),
		"no tokens":     with(site.Options{Keys: []site.KeyOptions{free}, Stateless: new(false)}, nil),
	}
	urls := "body=x&urls=" + s.NotifyURL("/mine")
	const twice, none = "free,ops", ""
	for _, tt := range []struct {
		site, path, id, token, body string
		status                      int
		want                        string // where the message arrives, or a part of the error
	}{
		{"off", "/notify", "ops", keyToken, "body=x", 200, "ops"},
		{"off", "/notify/", "ops", keyToken, "body=x", 200, "ops"},
		{"off", "/notify", "ops", "wrong", "body=x", 401, "config_id on"},
		{"off", "/notify", "ops", none, "body=x", 401, "config_id on"},
		{"off", "/notify", "free", none, "body=x", 401, "config_id on"},
		{"off", "/notify", "free", keyToken, "body=x", 401, "config_id on"},
		{"off", "/notify", "nothing", none, "body=x", 401, "config_id on"},
		{"off", "/notify", "status", none, "body=x", 401, "config_id on"},
		{"off", "/notify", "ops", keyToken, urls, 403, "messages without a key are turned off here"},
		{"no tokens", "/notify", "free", none, "body=x", 403, "config_id on"},
		{"no tokens", "/notify", "nothing", none, "body=x", 403, "config_id on"},
		{"on", "/notify", "free", none, "body=x", 200, "free"},
		{"on in all", "/notify", "free", none, "body=x", 200, "free"},
		{"on", "/notify", "ops", keyToken, "body=x", 200, "ops"},
		{"on", "/notify", "ops", none, "body=x", 401, "token of the key"},
		{"on", "/notify", "nothing", none, "body=x", 401, "token of the key"},
		{"on", "/notify", "hooks", none, "body=x", 403, "accepts messages from its sources only"},
		{"on", "/notify", "free", none, urls, 403, "messages without a key are turned off here"},

		{"off, with URL", "/notify", "free", none, "body=x", 401, "config_id on"},
		{"off, with URL", "/notify", "free", none, "body=x&urls=", 401, "config_id on"},
		{"off, with URL", "/notify", "free", none, urls, 200, "mine"},
		{"off, with URL", "/notify", "ops", keyToken, urls, 200, "mine"},
		{"off, with URL", "/notify", "ops", keyToken, "body=x&urls=,", 200, "ops"},
		{"off, with URL", "/notify?:link=urls", "ops", keyToken, "body=x&link=" + s.NotifyURL("/mapped"), 200, "mapped"},
		{"off, with URL", "/notify", "nothing", none, urls, 200, "mine"},
		{"on, with URL", "/notify", "free", none, "body=x", 200, "free"},
		{"on, with URL", "/notify", "free", none, urls, 200, "mine"},
		{"on, with URL", "/notify", "hooks", none, "body=x", 403, "accepts messages from its sources only"},
		{"on, with URL", "/notify", "", none, "body=x", 200, "default"},
		{"on, with URL", "/notify", "  ", none, "body=x", 200, "default"},

		{"on, with URL", "/notify", "a.b", none, urls, 400, "1 to 128 letters"},
		{"on, with URL", "/notify", " free", none, "body=x", 400, "1 to 128 letters"},
		{"on, with URL", "/notify", strings.Repeat("x", 129), none, "body=x", 400, "1 to 128 letters"},
		{"on, with URL", "/notify", twice, none, "body=x", 400, "1 to 128 letters"},
		{"on, with URL", "/notify", "free,free", none, "body=x", 400, "1 to 128 letters"},
		{"on, with URL", "/notify", ",free", none, "body=x", 400, "1 to 128 letters"},

		{"off", "/notify/free", "free", none, "body=x", 200, "free"},
		{"off", "/notify/free/", "", none, "body=x", 200, "free"},
		{"off", "/notify/free", "Free", none, "body=x", 400, "different keys"},
		{"on", "/notify/free", "ops", keyToken, "body=x", 400, "different keys"},
		{"on", "/notify/free", "a.b", none, "body=x", 400, "1 to 128 letters"},
		{"on", "/notify/free/proxmox", "ops", none, "title=x&message=x", 200, "free"},
		{"on", "/notify/free/proxmox", "a.b", none, "title=x&message=x", 200, "free"},
	} {
		r := withID(tt.path, tt.body, strings.Split(tt.id, ",")...)
		if tt.token != "" {
			r.Header.Set("Authorization", bearerToken(tt.token))
		}
		if !strings.Contains(tt.site, "URL") && tt.status == 401 {
			r.Body = io.NopCloser(unreadBody{t})
		}
		got := sites[tt.site].Do(r)
		arrived := s.Paths()
		if ok := got.Status == tt.status && (tt.status == 200 && arrived == tt.want || tt.status != 200 && arrived == "" &&
			strings.Contains(got.Body, tt.want)); !ok {
			t.Errorf("%s: %s with %q and %q, %s: %d at %q, want %d and %q\n%s", tt.site, tt.path, tt.id, tt.token, tt.body, got.Status, arrived,
				tt.status, tt.want, got.Body)
		}
	}
}

// TestConfigIDOfForeignRoutes checks that the header does not name a key on addresses that are not
// Apprise's, and that handlers after the gateway keep their addresses.
func TestConfigIDOfForeignRoutes(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSite(t, site.Options{ConfigID: new(true), Keys: []site.KeyOptions{gatewaytest.Key("free", s.NotifyURL("/free"))}})
	for method, want := range map[string]int{
		http.MethodGet: http.StatusNotAcceptable, http.MethodHead: http.StatusNotAcceptable, http.MethodPut: http.StatusMethodNotAllowed,
	} {
		r := withID("/notify", "", "free")
		r.Method = method
		if got := g.Do(r); got.Status != want {
			t.Errorf("%s /notify: %d", method, got.Status)
		}
	}
	for _, target := range []string{"/notifyx", "/add", "/get", "/notify%2F", "/notify/./"} {
		if got := g.Do(withID(target, "body=x", "free")); got.Status != gatewaytest.NotServed {
			t.Errorf("%s without saved keys: %d %s", target, got.Status, got.Body)
		}
	}
	if got := g.Do(withID("/notify?preview", "body=x", "free")); got.Status != 200 ||
		!strings.HasPrefix(got.Header.Get("Content-Type"), "text/html") {
		t.Errorf("a preview: %d %s", got.Status, got.Body)
	}
	if paths := s.Paths(); paths != "" {
		t.Errorf("messages at %q", paths)
	}
}

// TestConfigIDLimits checks that a message with URLs counts as a client's message even if it began
// as one to a key, and that a stranger's message takes no room from messages to keys.
func TestConfigIDLimits(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	process := gatewaytest.NewProcess(t)
	limited := func(configID *bool) *gatewaytest.Gateway {
		return gatewaytest.New(t, gatewaytest.Options{
			Site: site.Options{
				Egress: gatewaytest.Loopback(), MaxBody: 1 << 10, Clients: &site.ClientOptions{InFlight: 1, Memory: 128 << 10},
				Keys: []site.KeyOptions{gatewaytest.Key("free", s.NotifyURL("/free"))}, ConfigID: configID,
			},
			Process: process,
		})
	}
	on, off := limited(new(true)), limited(nil)
	e, err := on.Process.InFlight.EnterClient(on.Resolved.Limits.InFlight, httpapi.ClientAddress(withID("/notify", "", "free")))
	if err != nil {
		t.Fatal(err)
	}
	urls := "body=x&urls=" + s.NotifyURL("/mine")
	if got := on.Do(withID("/notify", "body=x", "free")); got.Status != 200 {
		t.Errorf("to the key: %d %s", got.Status, got.Body)
	}
	if got := on.Do(withID("/notify", urls, "free")); got.Status != 503 || !strings.Contains(got.Body, "client_limits in_flight") {
		t.Errorf("to a URL: %d %s", got.Status, got.Body)
	}
	r := withID("/notify", urls, "free")
	r.Body = io.NopCloser(unreadBody{t})
	if got := off.Do(r); got.Status != 503 {
		t.Errorf("of a stranger: %d %s", got.Status, got.Body)
	}
	e.Leave()
	if got := on.Do(withID("/notify", urls, "free")); got.Status != 200 {
		t.Errorf("to a URL, with room: %d %s", got.Status, got.Body)
	}
	for g, what := range map[*gatewaytest.Gateway]string{on: "with config_id", off: "without"} {
		e, err := g.Process.InFlight.EnterClient(site.InFlightLimits{Total: 1, Clients: 1, PerAddress: 1}, netip.Addr{})
		if err != nil || g.Process.Memory.Held() != 0 {
			t.Errorf("%s: %v: something is under way afterwards", what, err)
			continue
		}
		e.Leave()
	}
}

// TestConfigIDBeat checks that the header can name the key of a beat, as of a message.
func TestConfigIDBeat(t *testing.T) {
	t.Parallel()
	for setting, status := range map[bool]int{true: 200, false: 403} {
		g := gatewaytest.New(t, gatewaytest.Options{
			Global: site.Options{ConfigID: &setting, Keys: []site.KeyOptions{{
				Name: "free", URLs: gatewaytest.URLs("json://127.0.0.1:1"),
				Expects: []site.BeatOptions{{Expect: rules.Expect{Name: "nightly", Every: 24 * time.Hour, Grace: rules.DefaultGrace(24 * time.Hour)}}},
			}}},
			Queue: &outbox.Settings{},
		})
		if got := g.Do(withID("/notify?beat=nightly", "", "free")); got.Status != status {
			t.Errorf("config_id %v: %d %s", setting, got.Status, got.Body)
		}
	}
}

// TestConfigIDOfSavedKeys checks which key the header names on the routes for saved keys, and that
// the header gives no more rights than the address: a client that may only send to a key cannot
// read or change it.
func TestConfigIDOfSavedKeys(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	ops := protectedKey("ops", s.NotifyURL("/ops"))
	ops.Readers = []string{keyReader}
	type setting struct {
		configID bool
		manage   string
	}
	const on, off, users, everybody, ann = true, false, "manage", "manage open", "ann"
	managers := map[string]*site.Managers{users: {}, everybody: gatewaytest.Everybody()}
	sites := map[setting]*gatewaytest.Gateway{}
	for _, configID := range []bool{on, off} {
		for manage, m := range managers {
			sites[setting{configID, manage}] = gatewaytest.New(t, gatewaytest.Options{
				Global: site.Options{Keys: []site.KeyOptions{ops}, ConfigID: &configID},
				Site:   site.Options{Egress: gatewaytest.Loopback(), Managers: m},
				Saved:  &saved.Options{Manage: true},
			})
		}
	}
	get := func(target, id string) *http.Request {
		r := withID(target, "", id)
		r.Method = http.MethodGet
		return r
	}
	add := "urls=" + s.NotifyURL("/saved")
	for _, tt := range []struct {
		configID             bool
		manage, user, secret string
		r                    *http.Request
		status               int
		want                 string
	}{
		{on, users, "", "", withID("/add", add, "home"), 403, ""},
		{on, users, ann, "", withID("/add", add, "home"), 200, "Successfully"},
		{on, users, ann, "", withID("/get/", "", "home"), 200, "/saved"},
		{on, users, ann, "", withID("/cfg", "", "home"), 200, "/saved"},
		{on, users, ann, "", withID("/cfg?test", "destination=1", "home"), 200, "/saved"}, // as in Apprise; it is no test
		{on, users, ann, "", withID("/get/home", "", "other"), 400, "different keys"},
		{on, users, ann, "", withID("/cfg/home", "", "other"), 400, "different keys"},
		{on, users, ann, "", withID("/get", "", "a.b"), 400, "1 to 128"},
		{on, users, "", "", withID("/get", "", "home"), 403, ""},
		{on, users, "", "", get("/json/urls", "home"), 200, "/saved"},
		{on, users, "", "", get("/json/urls", "ops"), 401, "reader"},
		{on, users, "", keyReader, get("/json/urls/", "ops"), 200, "/ops"},
		{on, users, ann, "", get("/cfg", "home"), 200, `["home"]`}, // the header does not count
		{on, users, ann, "", withID("/cfg/home/token", "", "other"), 200, ""},
		{on, users, ann, "", withID("/del", "", "home"), 200, "Successfully"},
		{on, users, ann, "", withID("/del", "", "home"), 404, ""},
		{on, users, ann, "", withID("/get", "", ""), gatewaytest.NotServed, ""},
		{on, everybody, "", "", withID("/add", add, "home"), 200, "Successfully"},

		{off, users, ann, "", withID("/add", add, "home"), 401, "config_id on"},
		{off, users, ann, "", withID("/add/home", add, "home"), 200, "Successfully"},
		{off, users, ann, "", withID("/get", "", "home"), 401, "config_id on"},
		{off, users, ann, keyToken, withID("/get", "", "home"), 401, "config_id on"},
		{off, users, ann, keyToken, withID("/get", "", "ops"), 403, "in the configuration of the gateway"},
		{off, users, "", keyToken, withID("/get", "", "ops"), 403, ""},
		{off, users, "", "", get("/json/urls", "home"), 401, "config_id on"},
		{off, users, "", "", get("/json/urls", "ops"), 401, "config_id on"},
		{off, users, "", keyToken, get("/json/urls", "ops"), 401, "reader"},
		{off, users, "", keyReader, get("/json/urls", "ops"), 200, "/ops"},
		{off, users, ann, keyToken, get("/json/urls", "ops"), 200, "/ops"},
		{off, everybody, "", "", withID("/add", add, "home"), 403, "config_id on"},
		{off, everybody, "", keyToken, withID("/get", "", "ops"), 403, "config_id on"},
		{off, everybody, "", keyToken, get("/json/urls", "ops"), 401, "config_id on"},
		{off, everybody, "", keyReader, get("/json/urls", "ops"), 200, "/ops"},
	} {
		r := tt.r
		if tt.user != "" {
			r = gatewaytest.As(r, tt.user)
		}
		r.Header.Set("X-Gotify-Key", tt.secret)
		got := sites[setting{tt.configID, tt.manage}].Do(r)
		if got.Status != tt.status || !strings.Contains(got.Body, tt.want) {
			t.Errorf("config_id %v, %s: %s %s of %s as %q with %q: %d, want %d and %q\n%s", tt.configID, tt.manage, r.Method, r.URL,
				r.Header.Get(httpapi.ConfigIDHeader), tt.user, tt.secret, got.Status, tt.status, tt.want, got.Body)
		}
	}
}

// TestConfigIDIsLogged checks that a request with a wrong header is counted and listed as
// refused.
func TestConfigIDIsLogged(t *testing.T) {
	t.Parallel()
	g := newSite(t, site.Options{Keys: []site.KeyOptions{gatewaytest.Key("free", "json://127.0.0.1:1")}})
	g.Do(withID("/notify/free", "body=x", "other"))
	g.Do(withID("/notify", "body=x", "a.b"))
	listed := g.Process.History.List()
	for _, x := range listed {
		if x.Status != 400 || !strings.Contains(x.Error, httpapi.ConfigIDHeader) {
			t.Errorf("%d %s", x.Status, x.Error)
		}
	}
	if n := len(listed); n != 2 { // with the key free, and without a key
		t.Errorf("%d refusals are listed", n)
	}
}
