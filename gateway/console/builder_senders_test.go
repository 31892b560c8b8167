package console_test

import (
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/docs"
	"github.com/caddy-notify/caddy-notify/gateway/console/sending"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestBuilderFindsSenders checks that each program that sends to keys, and each source, is found by
// its name, with the address of the key and without an error.
func TestBuilderFindsSenders(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, openConfigs())
	if n := len(docs.Programs()); n < 50 {
		t.Fatalf("the documentation has %d programs", n)
	}
	for _, p := range docs.Programs() {
		for name := range strings.SplitSeq(p.Name, ", ") {
			for _, text := range []string{strings.ToLower(name), strings.ReplaceAll(name, " ", "")} {
				if found := docs.FindPrograms(text); !slices.ContainsFunc(found, func(x docs.Program) bool { return x.Name == p.Name }) {
					t.Errorf("%q finds %v", text, found)
				}
			}
			got := submit(g, "/notify/console/keys/ops?build", url.Values{"text": {name}})
			_, body, _ := strings.Cut(got.Body, "</style>")
			if got.Status != http.StatusOK || !strings.Contains(html.UnescapeString(body), "<h2>"+p.Name+" sends to ops</h2>") ||
				strings.Contains(body, `id="text-problem"`) || strings.Contains(body, "alerts.example.com") {
				t.Errorf("%q: %d %s", name, got.Status, plain(body))
			}
		}
	}
	var none source.Set
	for _, name := range none.Names() {
		f, err := source.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		if f.Format.API == nil && len(docs.FindPrograms(name)) == 0 && len(docs.FindPrograms(f.Format.Program)) == 0 {
			t.Errorf("the source %s of %s is not found", name, f.Format.Program)
		}
	}
}

// TestBuilderAddressOfSender checks the addresses for programs, with a token and without one.
func TestBuilderAddressOfSender(t *testing.T) {
	t.Parallel()
	locked := gatewaytest.Key("locked", "json://127.0.0.1:1")
	locked.Tokens = []string{"token-of-the-key"}
	g := gatewaytest.New(t, openConfigs(locked))
	for _, tt := range []struct{ key, text, want string }{
		{"ops", "grafana", "http://example.com/notify/ops/grafana"},
		{"ops", "scrutiny", "http://example.com/notify/ops?:message=body&amp;:subject=title&amp;:type=failure"},
		{"locked", "grafana", "http://example.com/notify/locked/grafana"},
		{"locked", "grafana", "$TOKEN"},
		{"locked", "gatus", "http://example.com/notify/locked/gatus"},
		{"locked", "gatus", "Authorization: Bearer $TOKEN"},
		{"locked", "scrutiny", "http://any:$TOKEN@example.com/notify/locked?:message=body&amp;:subject=title&amp;:type=failure"},
		{"ops", "changedetection", "apprise://example.com/ops"},
		{"locked", "prometheus", "path_prefix: /notify/locked/prometheus"},
		{"ops", "opnsense", "ops@example.com"},
		{"ops", "what's up docker", "http://example.com"},
	} {
		body := get(g, "/notify/console/keys/"+tt.key+"?build=&search="+url.QueryEscape(tt.text), browser).Body
		if want := "<code>" + tt.want + "</code>"; !strings.Contains(body, want) {
			t.Errorf("%s for %s: the page lacks %s: %s", tt.text, tt.key, want, plain(body))
		}
	}
}

// TestTokenOfSender checks that the token is in an address that access logs keep only for programs that
// can set no header, with the page that keeps it out.
func TestTokenOfSender(t *testing.T) {
	t.Parallel()
	known := map[docs.Token]int{}
	for _, p := range docs.Programs() {
		known[p.Token]++
		for _, login := range []bool{false, true} {
			k := sending.Key{Name: "locked", Tokens: true, Login: login}
			for _, s := range k.Programs(gatewaytest.NewRequest(http.MethodGet, "/", ""), p.Name) {
				for _, l := range s.Lines {
					logged := strings.Contains(l.Text+l.Note, "token=$TOKEN") || strings.Contains(l.Text, "X-Gotify-Key")
					if logged != (l.Log != "") || strings.Contains(l.Text, "token=$TOKEN") && (!login || p.Token == docs.TokenInHeader) {
						t.Errorf("%s, login %t: %s %s %s", p.Name, login, l.Text, l.Note, l.Log)
					}
				}
			}
		}
	}
	if known[docs.TokenInHeader] < 20 || known[docs.TokenAsPassword] < 8 || known[docs.TokenInAddress] == 0 {
		t.Errorf("programs by the place of their token: %v", known)
	}
}

// TestBuilderInNetwork checks that an address of a private network is recognised as one, and that the
// page has the lines that allow it, unless it is allowed.
func TestBuilderInNetwork(t *testing.T) {
	t.Parallel()
	closed := openConfigs()
	closed.Site.Egress = nil
	blocks, allows := gatewaytest.New(t, closed), gatewaytest.New(t, openConfigs())
	for text, local := range map[string]bool{
		"192.168.1.20": true, "192.168.1.20:8080": true, "http://192.168.1.20": true, "https://10.0.0.5:8443/hook": true, "172.16.3.4/x": true,
		"nas.lan": true, "http://homeassistant.local:8123": true, "nas:8080": true, "http://nas": true, "fd00::1": true, "[fd00::1]:80": true,
		"gitea.home.arpa": true, "fritz.box": true, "100.64.1.2": true,
		"203.0.113.5": false, "https://hooks.example.com/x": false, "example.com": false,
	} {
		body := submit(blocks, "/notify/console/keys/new?build", url.Values{"text": {text}, "do": {"live"}}).Body
		if got := strings.Contains(body, "egress {\n\tallow private_ranges\n}"); got != local {
			t.Errorf("%s: the page has the lines: %t: %s", text, got, plain(body))
		}
		named := strings.Contains(body, "in your network</small>") || strings.Contains(text, "homeassistant")
		if strings.Contains(body, `id="text-problem"`) || local != named {
			t.Errorf("%s: %s", text, plain(body))
		}
	}
	allowed := url.Values{"text": {"127.0.0.1:80"}, "do": {"live"}}
	if body := submit(allows, "/notify/console/keys/new?build", allowed).Body; strings.Contains(body, "private_ranges") {
		t.Errorf("an address that is allowed: %s", plain(body))
	}
	form := url.Values{"form": {"1"}, "p.host": {"192.168.1.20"}, "do": {"save"}}
	if body := submit(blocks, "/notify/console/keys/new?build=json", form).Body; !strings.Contains(body, "192.168.1.20 is private") ||
		!strings.Contains(body, "egress {\n\tallow private_ranges\n}") {
		t.Errorf("saving it: %s", plain(body))
	}
}

// TestBuilderAsksForTokens checks that the form of a service has each token, and the key file that its
// help asks for, where it can be seen.
func TestBuilderAsksForTokens(t *testing.T) {
	t.Parallel()
	g := gatewaytest.New(t, openConfigs())
	for _, s := range notifier.Services() {
		for i, f := range notifier.URLForms(s.Schemes[0]) {
			body := get(g, "/notify/console/keys/ops?build="+s.Schemes[0]+"&form="+string(rune('1'+i)), browser).Body
			_, body, _ = strings.Cut(body, `<form id="destination"`)
			shown, _, _ := strings.Cut(body, `<details class="more"`)
			for _, field := range f.Fields {
				token := field.Secret && !field.Common && !field.InAddress && !field.Elsewhere && field.Kind == notifier.KindString
				if keyFile := field.Kind == notifier.KindFile && s.Schemes[0] == "fcm"; (token || keyFile) &&
					!strings.Contains(shown, `name="p.`+field.Name+`"`) {
					t.Errorf("%s, form %d: %s is hidden", s.Name, i+1, field.Name)
				}
			}
		}
	}
	body := get(g, "/notify/console/keys/ops?build=ntfy", browser).Body
	form := formOf(t, body, "?build=ntfy")
	form.Set("p.topic", "alerts-x7f3")
	form.Set("p.token", "tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2")
	if line := urlLine(t, g, "ntfy", form); !strings.Contains(line, "token=tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2") {
		t.Error(line)
	}
}
