package caddyhttp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// TestConsoleAccess checks who may use the console: without a user or a verified
// certificate, nobody, unless the operator leaves it to the site.
func TestConsoleAccess(t *testing.T) {
	const key = "key ops {\nurl json://host.example\n}\n"
	for _, tt := range []struct {
		site, global                 string
		stranger, ann, bob, verified int
	}{
		{key, "", nextStatus, nextStatus, nextStatus, nextStatus},
		{key + "console", "", 403, 200, 200, 200},
		{key, "console", 403, 200, 200, 200},
		{key + "console {\nmanage\n}", "", 403, 200, 200, 200},
		{key + "console {\nmanage ann\n}", "", 403, 200, 403, 403},
		{key + "console {\nmanage open\n}", "", 200, 200, 200, 200},
		{key + "console {\nmanage ann\n}", "console {\nmanage bob\n}", 403, 200, 403, 403},
		{key + "configs {\nmanage\n}", "", 403, 200, 200, 200},
		{key + "configs {\nmanage bob\n}", "", 403, 403, 200, 403},
		{key + "configs {\nmanage bob\n}\nconsole", "", 403, 403, 200, 403},
		{key + "configs\nconsole", "", 403, 200, 200, 200},
		{key + "configs", "", nextStatus, nextStatus, nextStatus, nextStatus},
		{key + "configs {\nmanage open\n}\npage off", "", nextStatus, nextStatus, nextStatus, nextStatus},
	} {
		h := newGateway(t, tt.site, tt.global)
		get := func(path string) *http.Request {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Accept", browser)
			return r
		}
		for _, path := range []string{
			"/notify/console/keys/ops", "/notify/console/messages",
			"/notify/console/queue", "/notify/console/incidents",
		} {
			certificate := get(path)
			certificate.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}
			unverified := get(path)
			unverified.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}
			for who, c := range map[string]struct {
				r    *http.Request
				want int
			}{
				"a stranger": {get(path), tt.stranger}, "an unverified certificate": {unverified, tt.stranger},
				"a certificate": {certificate, tt.verified},
				"ann":           {asUser(get(path), "ann"), tt.ann}, "bob": {asUser(get(path), "bob"), tt.bob},
			} {
				got := do(t, h, c.r)
				if got.status != c.want {
					t.Errorf("%q, %q: %s of %s gets %d, want %d", tt.site, tt.global, path, who, got.status, c.want)
				}
				if shown := strings.Contains(got.body, `aria-label="Console"`); shown != (got.status == 200) {
					t.Errorf("%q, %q: %s of %s with the status %d: the navigation is there: %t", tt.site, tt.global, path, who, got.status, shown)
				}
			}
		}
	}
}

// TestConsoleHome checks that the address / leads to the console where the operator says so, and only if nothing else
// answers there. The location is relative, because the site may be below a prefix.
func TestConsoleHome(t *testing.T) {
	const key, home = "key ops {\nurl json://host.example\n}\n", "console {\nhome on\n}\n"
	respond := func(status int, body string) caddyhttp.Handler {
		return caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "text/x-next")
			if status != 0 {
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
			}
			return nil
		})
	}
	fail := func(status int) caddyhttp.Handler {
		return caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
			return caddyhttp.Error(status, errors.New("x"))
		})
	}
	for name, tt := range map[string]struct {
		block, global string
		method, path  string // "" for GET of /
		next          caddyhttp.Handler
		leads         bool
	}{
		"respond 404":   {block: home, next: respond(404, "no such page"), leads: true},
		"nothing":       {block: home, next: respond(0, ""), leads: true},
		"error 404":     {block: home, next: fail(404), leads: true},
		"HEAD":          {block: home, method: http.MethodHead, next: respond(404, ""), leads: true},
		"global":        {global: home, next: respond(404, ""), leads: true},
		"with a query":  {block: home, path: "/?x", next: respond(404, ""), leads: true},
		"a page":        {block: home, next: respond(200, "hello")},
		"an empty page": {block: home, next: respond(200, "")},
		"a redirect":    {block: home, next: respond(301, "")},
		"forbidden":     {block: home, next: fail(403)},
		"a fault":       {block: home, next: fail(502)},
		"POST":          {block: home, method: http.MethodPost, next: respond(404, "no")},
		"another path":  {block: home, path: "/x", next: respond(404, "no")},
		"by default":    {block: "console\n", next: respond(404, "no")},
		"off":           {block: "console {\nhome off\n}\n", global: home, next: respond(404, "no")},
	} {
		t.Run(name, func(t *testing.T) {
			h := newGateway(t, key+tt.block, tt.global)
			r := httptest.NewRequest(cmp.Or(tt.method, http.MethodGet), cmp.Or(tt.path, "/"), nil)
			want := httptest.NewRecorder()
			wantErr := tt.next.ServeHTTP(want, r)
			got := httptest.NewRecorder()
			err := h.ServeHTTP(got, r, tt.next)
			if !tt.leads {
				if (err == nil) != (wantErr == nil) || got.Code != want.Code || got.Body.String() != want.Body.String() ||
					got.Header().Get("Location") != "" {
					t.Errorf("%d, %q, %v, want %d, %q, %v", got.Code, got.Body, err, want.Code, want.Body, wantErr)
				}
				return
			}
			if err != nil || got.Code != http.StatusFound || got.Header().Get("Location") != "notify/console" || got.Body.Len() > 0 ||
				got.Header().Get("Content-Type") != "" {
				t.Errorf("%d, %v, %q, %v", got.Code, got.Header(), got.Body, err)
			}
		})
	}
}

// TestConsoleHomeUnreachable checks that home is refused where the matcher of notify never lets / through.
func TestConsoleHomeUnreachable(t *testing.T) {
	for matcher, refused := range map[string]bool{
		"": false, "/*": false, "*": false, "/notify*": true, "@m": true, "@n": false, "@o": false,
	} {
		text := "http://localhost {\n@m path /notify /notify/*\n@n path /notify* /\n@o method GET\n" +
			"notify " + matcher + " {\nkey ops {\nurl json://host.example\n}\nconsole {\nhome on\n}\n}\n}\n"
		_, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), nil)
		if refused != (err != nil) || err != nil &&
			!strings.Contains(err.Error(), "home has no effect, because the matcher excludes the address /") {
			t.Errorf("%q: %v", matcher, err)
		}
	}
}
