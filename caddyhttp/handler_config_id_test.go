package caddyhttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// withID returns a POST of a form whose header names a key, once for each of ids.
func withID(target, body string, ids ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	r.Header["X-Apprise-Config-Id"] = ids
	r.Header.Set("Content-Type", typeForm)
	r.Header.Set("Accept", typeJSON)
	return r
}

// TestConfigID checks what X-Apprise-Config-ID names for messages: a key whose token the
// request has, any key with config_id on, and none where the request has URLs.
func TestConfigID(t *testing.T) {
	s := gatewaytest.NewStation(t)
	keys := open + "key ops {\nurl " + s.NotifyURL("/ops") + "\ntoken " + opsToken + "\n}\nkey free {\nurl " + s.NotifyURL("/free") + "\n}\nkey hooks {\nurl " + s.NotifyURL("/hooks") + "\naccept grafana\n}\n"
	sites := map[string]*Handler{
		"off":           newGateway(t, keys+"stateless off", ""),
		"on":            newGateway(t, keys+"stateless off\nconfig_id on", ""),
		"on in all":     newGateway(t, keys+"stateless off", "config_id on"),
		"off, with URL": newGateway(t, keys+"config_id off\ndefault_urls "+s.NotifyURL("/default"), "config_id on"),
		"on, with URL":  newGateway(t, keys+"config_id on\ndefault_urls "+s.NotifyURL("/default"), ""),
		"no tokens":     newGateway(t, "key free {\nurl "+s.NotifyURL("/free")+"\n}\nstateless off", ""),
	}
	urls := "body=x&urls=" + s.NotifyURL("/mine")
	const twice, none = "free,ops", ""
	for _, tt := range []struct {
		site, path, id, token, body string
		status                      int
		want                        string // where the message arrives, or a part of the error
	}{
		{"off", "/notify", "ops", opsToken, "body=x", 200, "ops"},
		{"off", "/notify/", "ops", opsToken, "body=x", 200, "ops"},
		{"off", "/notify", "ops", "wrong", "body=x", 401, "config_id on"},
		{"off", "/notify", "ops", none, "body=x", 401, "config_id on"},
		{"off", "/notify", "free", none, "body=x", 401, "config_id on"},
		{"off", "/notify", "free", opsToken, "body=x", 401, "config_id on"},
		{"off", "/notify", "nothing", none, "body=x", 401, "config_id on"},
		{"off", "/notify", "status", none, "body=x", 401, "config_id on"},
		{"off", "/notify", "ops", opsToken, urls, 403, "messages without a key are turned off here"},
		{"no tokens", "/notify", "free", none, "body=x", 403, "config_id on"},
		{"no tokens", "/notify", "nothing", none, "body=x", 403, "config_id on"},
		{"on", "/notify", "free", none, "body=x", 200, "free"},
		{"on in all", "/notify", "free", none, "body=x", 200, "free"},
		{"on", "/notify", "ops", opsToken, "body=x", 200, "ops"},
		{"on", "/notify", "ops", none, "body=x", 401, "token of the key"},
		{"on", "/notify", "nothing", none, "body=x", 401, "token of the key"},
		{"on", "/notify", "hooks", none, "body=x", 403, "accepts messages from its sources only"},
		{"on", "/notify", "free", none, urls, 403, "messages without a key are turned off here"},

		{"off, with URL", "/notify", "free", none, "body=x", 401, "config_id on"},
		{"off, with URL", "/notify", "free", none, "body=x&urls=", 401, "config_id on"},
		{"off, with URL", "/notify", "free", none, urls, 200, "mine"},
		{"off, with URL", "/notify", "ops", opsToken, urls, 200, "mine"},
		{"off, with URL", "/notify", "ops", opsToken, "body=x&urls=,", 200, "ops"},
		{"off, with URL", "/notify?:link=urls", "ops", opsToken, "body=x&link=" + s.NotifyURL("/mapped"), 200, "mapped"},
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
		{"on", "/notify/free", "ops", opsToken, "body=x", 400, "different keys"},
		{"on", "/notify/free", "a.b", none, "body=x", 400, "1 to 128 letters"},
		{"on", "/notify/free/proxmox", "ops", none, "title=x&message=x", 200, "free"},
		{"on", "/notify/free/proxmox", "a.b", none, "title=x&message=x", 200, "free"},
	} {
		r := withID(tt.path, tt.body, strings.Split(tt.id, ",")...)
		if tt.token != "" {
			r.Header.Set("Authorization", bearer(tt.token))
		}
		if !strings.Contains(tt.site, "URL") && tt.status == 401 {
			r.Body = io.NopCloser(unread{t})
		}
		got := do(t, sites[tt.site], r)
		arrived := s.Paths()
		if ok := got.status == tt.status && (tt.status == 200 && arrived == tt.want || tt.status != 200 && arrived == "" && strings.Contains(got.body, tt.want)); !ok {
			t.Errorf("%s: %s with %q and %q, %s: %d at %q, want %d and %q\n%s", tt.site, tt.path, tt.id, tt.token, tt.body, got.status, arrived, tt.status, tt.want, got.body)
		}
	}
}

// TestConfigIDOfForeignRoutes checks that the header does not name a key on addresses
// that are not Apprise's, and that what follows the gateway keeps its addresses.
func TestConfigIDOfForeignRoutes(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "config_id on\nkey free {\nurl "+s.NotifyURL("/free")+"\n}", "")
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut} {
		r := withID("/notify", "", "free")
		r.Method = method
		if got := do(t, h, r); got.status != http.StatusMethodNotAllowed {
			t.Errorf("%s /notify: %d", method, got.status)
		}
	}
	for _, target := range []string{"/notifyx", "/add", "/get", "/notify%2F", "/notify/./"} {
		if got := do(t, h, withID(target, "body=x", "free")); got.status != nextStatus {
			t.Errorf("%s without saved keys: %d %s", target, got.status, got.body)
		}
	}
	if got := do(t, h, withID("/notify?preview", "body=x", "free")); got.status != 200 || !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
		t.Errorf("a preview: %d %s", got.status, got.body)
	}
	if paths := s.Paths(); paths != "" {
		t.Errorf("messages at %q", paths)
	}
}

// TestConfigIDLimits checks that a message with URLs counts among those of clients even if
// it began as one to a key, and that a stranger's takes no room of those to keys.
func TestConfigIDLimits(t *testing.T) {
	s := gatewaytest.NewStation(t)
	block := open + "max_body 1KiB\nclient_limits {\nin_flight 1\nmemory 128KiB\n}\nkey free {\nurl " + s.NotifyURL("/free") + "\n}\n"
	on, off := newGateway(t, block+"config_id on", ""), newGateway(t, block, "")
	e, err := on.shared.InFlight.EnterClient(on.api.Resolved.Limits.InFlight, httpapi.ClientAddress(withID("/notify", "", "free")))
	if err != nil {
		t.Fatal(err)
	}
	urls := "body=x&urls=" + s.NotifyURL("/mine")
	if got := do(t, on, withID("/notify", "body=x", "free")); got.status != 200 {
		t.Errorf("to the key: %d %s", got.status, got.body)
	}
	if got := do(t, on, withID("/notify", urls, "free")); got.status != 503 || !strings.Contains(got.body, "client_limits in_flight") {
		t.Errorf("to a URL: %d %s", got.status, got.body)
	}
	r := withID("/notify", urls, "free")
	r.Body = io.NopCloser(unread{t})
	if got := do(t, off, r); got.status != 503 {
		t.Errorf("of a stranger: %d %s", got.status, got.body)
	}
	e.Leave()
	if got := do(t, on, withID("/notify", urls, "free")); got.status != 200 {
		t.Errorf("to a URL, with room: %d %s", got.status, got.body)
	}
	for h, what := range map[*Handler]string{on: "with config_id", off: "without"} {
		e, err := h.shared.InFlight.EnterClient(site.InFlightLimits{Total: 1, Clients: 1, PerAddress: 1}, netip.Addr{})
		if err != nil || h.shared.Memory.Held() != 0 {
			t.Errorf("%s: %v: something is under way afterwards", what, err)
			continue
		}
		e.Leave()
	}
}

// TestConfigIDBeat checks that the header names the key of a beat like that of a message.
func TestConfigIDBeat(t *testing.T) {
	key := "key free {\nurl json://127.0.0.1:1\nexpect nightly every 1d\n}\n"
	for setting, status := range map[string]int{"config_id on": 200, "config_id off": 403} {
		h := newQueueGateway(t, t.TempDir(), "", key+setting)
		if got := do(t, h, withID("/notify?beat=nightly", "", "free")); got.status != status {
			t.Errorf("%s: %d %s", setting, got.status, got.body)
		}
	}
}

// TestConfigIDOfSavedKeys checks what the header names on the routes for saved keys, and
// that it gives nobody more rights than the address: whoever may send to a key can neither
// read nor change it.
func TestConfigIDOfSavedKeys(t *testing.T) {
	s := gatewaytest.NewStation(t)
	keys := "key ops {\nurl " + s.NotifyURL("/ops") + "\ntoken " + opsToken + "\nreader " + opsReader + "\n}\n"
	type site struct{ setting, manage string }
	sites := map[site]*Handler{}
	for _, setting := range []string{"config_id on", "config_id off"} {
		for _, manage := range []string{"manage", "manage open"} {
			h, _ := newConfigGateway(t, t.TempDir(), manage, keys+setting)
			sites[site{setting, manage}] = h
		}
	}
	const on, off, users, everybody, ann = "config_id on", "config_id off", "manage", "manage open", "ann"
	get := func(target, id string) *http.Request {
		r := withID(target, "", id)
		r.Method = http.MethodGet
		return r
	}
	add := "urls=" + s.NotifyURL("/saved")
	for _, tt := range []struct {
		setting, manage, user, secret string
		r                             *http.Request
		status                        int
		want                          string
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
		{on, users, "", opsReader, get("/json/urls/", "ops"), 200, "/ops"},
		{on, users, ann, "", get("/cfg", "home"), 200, `["home"]`}, // the header does not count
		{on, users, ann, "", withID("/cfg/home/token", "", "other"), 200, ""},
		{on, users, ann, "", withID("/del", "", "home"), 200, "Successfully"},
		{on, users, ann, "", withID("/del", "", "home"), 404, ""},
		{on, users, ann, "", withID("/get", "", ""), nextStatus, ""},
		{on, everybody, "", "", withID("/add", add, "home"), 200, "Successfully"},

		{off, users, ann, "", withID("/add", add, "home"), 401, "config_id on"},
		{off, users, ann, "", withID("/add/home", add, "home"), 200, "Successfully"},
		{off, users, ann, "", withID("/get", "", "home"), 401, "config_id on"},
		{off, users, ann, opsToken, withID("/get", "", "home"), 401, "config_id on"},
		{off, users, ann, opsToken, withID("/get", "", "ops"), 403, "in the configuration of the gateway"},
		{off, users, "", opsToken, withID("/get", "", "ops"), 403, ""},
		{off, users, "", "", get("/json/urls", "home"), 401, "config_id on"},
		{off, users, "", "", get("/json/urls", "ops"), 401, "config_id on"},
		{off, users, "", opsToken, get("/json/urls", "ops"), 401, "reader"},
		{off, users, "", opsReader, get("/json/urls", "ops"), 200, "/ops"},
		{off, users, ann, opsToken, get("/json/urls", "ops"), 200, "/ops"},
		{off, everybody, "", "", withID("/add", add, "home"), 403, "config_id on"},
		{off, everybody, "", opsToken, withID("/get", "", "ops"), 403, "config_id on"},
		{off, everybody, "", opsToken, get("/json/urls", "ops"), 401, "config_id on"},
		{off, everybody, "", opsReader, get("/json/urls", "ops"), 200, "/ops"},
	} {
		r := tt.r
		if tt.user != "" {
			r = asUser(r, tt.user)
		}
		r.Header.Set("X-Gotify-Key", tt.secret)
		got := do(t, sites[site{tt.setting, tt.manage}], r)
		if got.status != tt.status || !strings.Contains(got.body, tt.want) {
			t.Errorf("%s, %s: %s %s of %s as %q with %q: %d, want %d and %q\n%s", tt.setting, tt.manage, r.Method, r.URL, r.Header.Get(httpapi.ConfigIDHeader), tt.user, tt.secret, got.status, tt.status, tt.want, got.body)
		}
	}
}

// TestConfigIDIsLogged checks that a request with a wrong header is counted and listed as
// refused.
func TestConfigIDIsLogged(t *testing.T) {
	ownShared(t)
	h := newGateway(t, "key free {\nurl json://127.0.0.1:1\n}", "")
	do(t, h, withID("/notify/free", "body=x", "other"))
	do(t, h, withID("/notify", "body=x", "a.b"))
	n := 0
	for _, l := range h.api.Refusals.ByID {
		if n++; l.Last.Status != 400 || !strings.Contains(l.Last.Text, httpapi.ConfigIDHeader) {
			t.Errorf("%d %s", l.Last.Status, l.Last.Text)
		}
	}
	if n != 2 { // with the key free, and without a key
		t.Errorf("%d refusals are listed", n)
	}
}

// TestWarnConfigID checks that a site gets a warning if what protects the address of a key
// does not apply to the header that names it.
func TestWarnConfigID(t *testing.T) {
	const free = "key free {\nurl json://127.0.0.1:1\n}\n"
	notify := func(settings string) string { return "notify {\nstateless off\n" + free + settings + "\n}\n" }
	on := notify("config_id on")
	saved := func(manage string) string { return notify("config_id on\nconfigs {\n" + manage + "\n}") }
	header := "@header header X-Apprise-Config-ID *\nbasic_auth @header" + account
	outside := "@outside {\npath /notify/free*\nnot remote_ip private_ranges\n}\nerror @outside no 403\n"
	tests := map[string]siteWarning{
		"a login for the key":              {"basic_auth /notify/free*" + account + on, "/notify/free does not apply to /notify with the header X-Apprise-Config-ID: free"},
		"a loopback address":               {"bind 127.0.0.1\nbasic_auth /notify/free*" + account + on, "/notify/free does"},
		"a prefix":                         {"basic_auth /a/notify/free*" + account + "handle_path /a/* {\n" + on + "}\n", "/a/notify/free does not apply to /a/notify with"},
		"only your network":                {outside + on, "/notify/free does"},
		"another header":                   {"@header header X-Apprise-Config-ID other\nbasic_auth @header" + account + "basic_auth /notify/free*" + account + on, "/notify/free does"},
		"off":                              {"basic_auth /notify/free*" + account + notify("config_id off"), ""},
		"a token":                          {"basic_auth /notify/free*" + account + strings.Replace(on, "key free {", "key free {\ntoken "+opsToken, 1), ""},
		"a login for all":                  {"basic_auth" + account + on, ""},
		"a login for /notify":              {"basic_auth /notify*" + account + on, ""},
		"a login for the header":           {header + "basic_auth /notify/free*" + account + on, ""},
		"a login for the key's header":     {strings.Replace(header, "*", "free", 1) + "basic_auth /notify/free*" + account + on, ""},
		"the header is removed":            {"request_header -X-Apprise-Config-ID\nbasic_auth /notify/free*" + account + on, ""},
		"nothing":                          {on, ""},
		"only the header":                  {"handle /notify {\n" + on + "}\n", ""},
		"saved keys, a login for keys":     {"@k path_regexp ^/notify/.\nbasic_auth @k" + account + saved(""), "/notify/KEY does not apply to /notify with the header X-Apprise-Config-ID: KEY"},
		"saved keys, a login to save":      {"@m path /add/* /get/* /del/* /cfg /cfg/* /notify/console*\nbasic_auth @m" + account + saved("manage open"), "/add/KEY does not apply to /add with"},
		"saved keys, the same for a user":  {"@m path /add/* /get/* /del/* /cfg /cfg/* /notify/console*\nbasic_auth @m" + account + saved("manage ops"), ""},
		"saved keys, a login to list URLs": {"basic_auth /json/urls/*" + account + saved(""), "/json/urls/KEY does not apply to /json/urls with"},
		"saved keys, a login for all":      {"basic_auth" + account + saved("manage open"), ""},
	}
	for name, tt := range tests {
		tests[name] = siteWarning{":9470 {\n" + tt.text + "\n}", tt.want}
	}
	checkWarnings(t, "%s", tests)
}
