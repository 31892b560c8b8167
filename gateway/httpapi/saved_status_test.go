package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
)

// TestStatusOfStorage checks the answers of /status and /status/{KEY}: the fields of Apprise API 2
// in order, what this client may do, and nothing about which keys exist.
func TestStatusOfStorage(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	with := func(manage bool, o site.Options) *gatewaytest.Gateway {
		if manage {
			o.Managers = gatewaytest.Everybody()
		}
		return gatewaytest.New(t, gatewaytest.Options{Saved: &saved.Options{Manage: manage}, Storage: storagetest.New(t.TempDir()), Site: o})
	}
	managed := with(true, site.Options{})
	closed := with(false, site.Options{Stateless: new(false), Keys: []site.KeyOptions{protectedKey("ops", s.NotifyURL("/"))}})
	const fields = `{"config_lock":%,"attach_lock":false,"stateful_enabled":true,"stateless_enabled":%,"degraded":false,` +
		`"max_attachments":6,"attach_size":209715200,"status":{"persistent_storage":true,"can_write_config":%,"can_write_attach":true,` +
		`"details":["OK"]},"privilege":"%"}`
	values := func(v ...string) string {
		out := fields
		for _, x := range v {
			out = strings.Replace(out, "%", x, 1)
		}
		return out + "\n"
	}
	for _, c := range []struct {
		g             *gatewaytest.Gateway
		target, token string
		status        int
		body          string
	}{
		{managed, "/status", "", 200, values("false", "true", "true", "admin")},
		{managed, "/status/none", "", 200, values("false", "true", "true", "admin")},
		{closed, "/status", "", 200, values("true", "false", "false", "user")},
		{closed, "/status/ops", keyToken, 200, values("true", "false", "false", "user")},
		{closed, "/status/ops", "", 401, ""},
		{closed, "/status/none", keyToken, 401, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, c.target, http.NoBody)
		r.Header.Set("Accept", gatewaytest.TypeJSON)
		if c.token != "" {
			r.SetBasicAuth("any", c.token)
		}
		got := c.g.Do(r)
		if got.Status != c.status || c.body != "" && got.Body != c.body {
			t.Errorf("%s: status %d: %s\nwant %s", c.target, got.Status, got.Body, c.body)
		}
	}
}

// TestQR checks the address for Apprise Mobile: where the key is, which login it needs, and no
// secret.
func TestQR(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	keys := []site.KeyOptions{protectedKey("ops", s.NotifyURL("/")), gatewaytest.Key("free", s.NotifyURL("/"))}
	with := func(public string) *gatewaytest.Gateway {
		return gatewaytest.New(t, gatewaytest.Options{
			Saved: &saved.Options{}, Storage: storagetest.New(t.TempDir()),
			Site: site.Options{Keys: keys, PublicURL: public},
		})
	}
	here, public := with(""), with("https://alerts.example.com/base")
	for _, c := range []struct {
		g                *gatewaytest.Gateway
		key, token, user string
		header           bool // that names the key
		status           int
		want             string
		login            bool
	}{
		{here, "ops", keyToken, "", false, 200, "apprise://@example.com/ops", false},
		{here, "ops", keyToken, "", true, 200, "apprise://@example.com/ops", false},
		{here, "ops", keyToken, "ann", false, 200, "apprise://:ann@example.com/ops", true},
		{here, "ops", "", "", false, 401, "", false},
		{here, "none", keyToken, "", false, 401, "", false},
		{public, "ops", keyToken, "", false, 200, "apprises://@alerts.example.com/base/ops", false},
		{here, "free", "", "", false, 200, "apprise://example.com/free", false},
	} {
		target := "/qr/" + c.key
		if c.header {
			target = "/qr"
		}
		r := httptest.NewRequest(http.MethodGet, target+"?token="+c.token, http.NoBody)
		if c.header {
			r.Header.Set("X-Apprise-Config-ID", c.key)
		}
		if c.user != "" {
			r = gatewaytest.As(r, c.user)
		}
		got := c.g.Do(r)
		if got.Status != c.status {
			t.Errorf("%+v: status %d: %s", c, got.Status, got.Body)
			continue
		}
		if c.status != 200 {
			continue
		}
		var body struct {
			URL   string
			Login bool `json:"uses_admin_credentials"`
		}
		if err := json.Unmarshal([]byte(got.Body), &body); err != nil || body.URL != c.want || body.Login != c.login ||
			strings.Contains(got.Body, keyToken) {
			t.Errorf("%+v: %s (%v)", c, got.Body, err)
		}
	}
}

// TestTimesOfConfiguration checks the headers of /add with the times of a configuration's creation
// and last change.
func TestTimesOfConfiguration(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, gatewaytest.Options{
		Saved: &saved.Options{Manage: true}, Storage: storagetest.New(t.TempDir()),
		Site: site.Options{Managers: gatewaytest.Everybody()},
	})
	var created string
	for range 2 {
		got := g.PostForm("/add/ops", "urls=json://h")
		made, changed := got.Header.Get("X-Apprise-Config-Created"), got.Header.Get("X-Apprise-Config-MTime")
		for _, text := range []string{made, changed} {
			if _, err := time.Parse("2006-01-02T15:04:05", text); err != nil {
				t.Errorf("%v: %v", got.Header, err)
			}
		}
		if created != "" && made != created || changed < made || got.Header.Get("X-Apprise-Timezone") != "UTC" {
			t.Errorf("created %s, then %v", created, got.Header)
		}
		created = made
	}
}
