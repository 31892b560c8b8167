package routing_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"golang.org/x/crypto/bcrypt"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/console"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// guardedSite is a running site that asks for a password where a matcher says so.
type guardedSite struct {
	t       *testing.T
	station *gatewaytest.Station
	phones  *gatewaytest.PushService
}

// The one user of a [guardedSite].
const (
	guardUser     = "ann"
	guardPassword = "hiccup-hiccup"
)

// newGuardedSite runs a site with a matcher and with keys of each sort that has no token: inb
// is read, plain expects a beat, oncall escalates, and saved is a saved key.
func newGuardedSite(t *testing.T, matcher string) *guardedSite {
	t.Helper()
	s := &guardedSite{t, gatewaytest.NewStation(t), gatewaytest.NewPushService(t)}
	hash, err := bcrypt.GenerateFromPassword([]byte(guardPassword), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	caddyhttptest.StartCaddy(t, "storage file_system "+t.TempDir()+"\nnotify {\nqueue {\npath "+t.TempDir()+"\n}\n"+
		"public_url https://alerts.example.com\negress {\nallow 127.0.0.0/8\n}\n"+
		"push {\ncontact mailto:ops@example.com\nservices 127.0.0.1\n}\n}",
		caddyhttptest.Server+` {
	@login `+matcher+`
	basic_auth @login {
		`+guardUser+` `+string(hash)+`
	}
	notify {
		egress {
			allow 127.0.0.1
		}
		configs {
			manage `+guardUser+`
		}
		console {
			manage `+guardUser+`
		}
		key inb {
			inbox 7d
			reader `+testReader+`
		}
		key plain {
			url `+s.station.NotifyURL("/plain")+`
			inbox 7d
			expect nightly every 24h
		}
		key oncall {
			url `+s.station.NotifyURL("/oncall")+` 1:x
			inbox 7d
			escalate after 1h
		}
	}
	respond 404
}
`)
	if got := s.ask(http.MethodPost, "/add/saved", "urls="+url.QueryEscape(s.station.NotifyURL("/saved")), true); got.Status != http.StatusOK {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	return s
}

// ask sends a request, with a form or JSON as its body. known means that it has the password.
func (s *guardedSite) ask(method, target, body string, known bool, header ...string) gatewaytest.Reply {
	s.t.Helper()
	media := gatewaytest.TypeForm
	if strings.HasPrefix(body, "{") {
		media = gatewaytest.TypeJSON
	}
	header = append([]string{"Content-Type", media}, header...)
	if known {
		header = append(header, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(guardUser+":"+guardPassword)))
	}
	return caddyhttptest.Do(s.t, method, caddyhttptest.Server+target, body, header...)
}

// alert opens an incident of the key oncall and returns the path of its page.
func (s *guardedSite) alert() string {
	s.t.Helper()
	s.station.Take()
	if got := s.ask(http.MethodPost, "/notify/oncall", "type=failure&incident=disk&title=alert&body=x", true); got.Status != http.StatusOK {
		s.t.Fatalf("%d %s", got.Status, got.Body)
	}
	_, path, ok := strings.Cut(s.station.Arrives(s.t, "alert").AcknowledgeURL, "https://alerts.example.com")
	if s.station.Take(); !ok {
		s.t.Fatal("the alert has no link")
	}
	return path
}

// attack is a request without the password.
type attack struct{ method, target, accept string }

// attacks are requests for each address of the gateway, and for addresses of sources and of
// ntfy, in the spellings that a matcher and the gateway may take differently.
func attacks() (out []attack) {
	var paths []string
	for _, spec := range httpapi.RouteSpecs() {
		for _, key := range []string{"inb", "plain", "saved"} {
			path := strings.NewReplacer("{KEY}", key, "{ID}", "01a2095c-3f0b-7108-9a2f-cb5b73dfc72d", "/{REST...}", "").Replace(spec.Pattern)
			for _, source := range []string{"grafana", "ntfy", "gotify", "slack"} {
				for _, rest := range append([]string{"publish", "send", "trigger"}, httpapi.NtfyVerbs...) {
					paths = append(paths, strings.NewReplacer("{SOURCE}", source, "{TOPICS}", "t", "{VERB}", rest).Replace(path))
				}
			}
			paths = append(paths, site.PathOf("/notify/{KEY}/ntfy/t", key), site.PathOf("/notify/{KEY}/gotify/message", key))
		}
	}
	paths = append(paths, "/notify/console/devices", "/notify/console/stream", "/notify/incidents/silences/1", "/notify/messages/stream")
	slices.Sort(paths)
	paths = slices.Compact(paths)
	spellings := []func(string) string{
		func(p string) string { return p },
		func(p string) string { return p + "/" },
		func(p string) string { return p + "//" },
		func(p string) string { return strings.ReplaceAll(p, "/", "//")[1:] },
		func(p string) string { i := strings.LastIndexByte(p, '/'); return p[:i] + "/" + p[i:] },
		func(p string) string { i := strings.LastIndexByte(p, '/'); return p[:i] + strings.ToUpper(p[i:]) },
		func(p string) string { i := max(strings.LastIndexByte(p, '/'), 1); return p[:i] + "%2F" + p[i+1:] },
		func(p string) string {
			i := strings.LastIndexByte(p, '/') + 1
			return p[:i] + fmt.Sprintf("%%%02X", p[i]) + p[i+1:]
		},
		func(p string) string { return "/NOTIFY" + strings.TrimPrefix(p, "/notify") },
		func(p string) string { return p + "/." },
		func(p string) string { return p + "/../json" },
		func(p string) string { return "/notify/inb/messages/.." + strings.TrimPrefix(p, "/notify/inb") },
	}
	queries := []string{
		"", "?message=stranger&title=stranger&body=stranger", "?beat=nightly", "?invite=x",
		"?invite=x&beat=nightly&message=stranger", "?%69nvite=x&beat=nightly", "?device&beat=nightly&invite",
	}
	methods := []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete,
		http.MethodHead, http.MethodPatch, http.MethodOptions,
	}
	n := 0
	for _, path := range paths {
		for i, spell := range spellings {
			for j, query := range queries {
				for _, method := range methods {
					n++
					if i+j > 0 && n%racetest.Amount(7, 37) != 0 {
						continue // a part is enough; it differs between paths
					}
					out = append(out, attack{method, spell(path) + query, []string{gatewaytest.TypeJSON, browser}[(n/3)%2]})
				}
			}
		}
	}
	return out
}

// succeeded returns the attacks to which a site does not answer with an error, and checks
// that they have changed nothing. The pages and files that an invited phone needs are none.
func (s *guardedSite) succeeded(all []attack) (out []string) {
	s.t.Helper()
	link := s.alert()
	const form, object = "body=stranger&title=stranger&message=stranger&do=silence&for=1h",
		`{"title":"stranger","body":"stranger","message":"stranger","text":"stranger",` +
			`"for":"1h","state":"alerting","status":"firing","alerts":[]}`
	for i, a := range all {
		body := ""
		if a.method != http.MethodGet && a.method != http.MethodHead {
			body = []string{form, object}[i%2]
		}
		got := s.ask(a.method, a.target, body, false, "Accept", a.accept)
		path, query, _ := strings.Cut(a.target, "?")
		path, _ = url.PathUnescape(path)
		_, isFile := console.AppFiles()[strings.TrimSuffix(path, "/")]
		isFile = isFile || strings.TrimSuffix(path, "/") == httpapi.RouteManifest
		isPage := strings.Contains(query, "nvite") && strings.Contains(got.Body, "This device cannot be added")
		reads := a.method == http.MethodGet || a.method == http.MethodHead
		if got.Status < 400 &&
			!(reads && (isFile || isPage || a.method == http.MethodHead && got.Header.Get("Referrer-Policy") == "no-referrer")) {
			out = append(out, fmt.Sprintf("%s %s: %d", a.method, a.target, got.Status))
		}
	}
	if paths := s.station.Paths(); paths != "" {
		out = append(out, "messages arrived at "+paths)
	}
	for target, want := range map[string]string{
		"/notify/plain/silences": "[]", "/notify/oncall/silences": "[]", "/cfg": `["saved"]`,
		"/notify/incidents": `"state":"open"`, link: `"state":"open"`,
	} {
		if got := s.ask(http.MethodGet, target, "", true, "Accept", gatewaytest.TypeJSON); got.Status != http.StatusOK ||
			!strings.Contains(strings.ReplaceAll(got.Body, " ", ""), want) {
			out = append(out, fmt.Sprintf("%s is %d %s", target, got.Status, got.Body))
		}
	}
	for _, key := range []string{"inb", "plain", "oncall"} {
		got := s.ask(http.MethodGet, "/notify/"+key+"/messages", "", true, "Accept", gatewaytest.TypeJSON, "X-Gotify-Key", testReader)
		if strings.Contains(got.Body, "stranger") {
			out = append(out, "the inbox of "+key+" has "+got.Body)
		}
	}
	return out
}

// TestDocumentedMatchersHold attacks a site behind each matcher of the documentation, which it
// takes word for word: nothing is sent, listed, resolved or silenced without the password. The
// attacks succeed behind a matcher that docs/inbox.md had once, which shows that they can.
func TestDocumentedMatchersHold(t *testing.T) {
	racetest.SkipIfSlow(t)
	all := attacks()
	if got := newGuardedSite(t, "not path /notify/*/messages /notify/*/stream /notify/*/ntfy/*/*").succeeded(all); len(got) == 0 {
		t.Error("no attack succeeds behind a matcher that lets strangers send")
	}
	matchers := documentedMatchers(t)
	matchers["inbox.md and phone.md"] = strings.TrimSuffix(strings.TrimSpace(matchers["inbox.md"]), "}") +
		strings.TrimPrefix(matchers["phone.md"], "{")
	for page, matcher := range matchers {
		if page == "modules.md" && matcher == matchers["phone.md"] {
			continue
		}
		for i, got := range newGuardedSite(t, matcher).succeeded(all) {
			if t.Errorf("the matcher of %s: %s", page, got); i == 20 {
				break
			}
		}
	}
}

// TestDocumentedMatcherOfReaders checks that readers read behind the matcher of
// docs/inbox.md, also with ntfy's clients, and that the password sends.
func TestDocumentedMatcherOfReaders(t *testing.T) {
	s := newGuardedSite(t, documentedMatchers(t)["inbox.md"])
	if got := s.ask(http.MethodPost, "/notify/inb", "body=hello", true); got.Status != http.StatusOK {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	for _, target := range []string{
		"/notify/inb/messages", "/notify/inb/ntfy/t/json?poll=1",
		"/notify/inb/ntfy/t/sse?poll=1", "/notify/inb/ntfy/t/auth",
	} {
		got := s.ask(http.MethodGet, target, "", false, "Authorization", "Bearer "+testReader)
		if got.Status != http.StatusOK || !strings.Contains(got.Body, "hello") && !strings.HasSuffix(target, "auth") {
			t.Errorf("%s: %d %s", target, got.Status, got.Body)
		}
		if got := s.ask(http.MethodGet, target, "", false); got.Status != http.StatusUnauthorized ||
			strings.Contains(got.Header.Get("Www-Authenticate"), "restricted") {
			t.Errorf("%s without a reader: %d %v", target, got.Status, got.Header)
		}
	}
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(),
		"ws://"+caddyhttptest.Site+"/notify/inb/ntfy/t/ws?since=all",
		http.Header{"Authorization": {"Bearer " + testReader}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer conn.Close()
	for seen := false; !seen; {
		_, message, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		seen = strings.Contains(string(message), "hello")
	}
	// The user of the site reaches what the matcher once took from the console.
	if got := s.ask(http.MethodGet, "/notify/console/messages", "", true, "Accept", browser); got.Status != http.StatusOK {
		t.Errorf("the console: %d", got.Status)
	}
}

// TestDocumentedMatcherOfLinks checks that whoever has the link of an incident acknowledges
// it behind each matcher that leaves links out.
func TestDocumentedMatcherOfLinks(t *testing.T) {
	matchers := documentedMatchers(t)
	for _, page := range []string{"on-call.md", "phone.md"} {
		s := newGuardedSite(t, matchers[page])
		link := s.alert()
		if got := s.ask(http.MethodGet, link, "", false, "Accept", browser); got.Status != http.StatusOK ||
			!strings.Contains(got.Body, "Acknowledge") {
			t.Errorf("%s: the page: %d %s", page, got.Status, got.Body)
		}
		if got := s.ask(http.MethodPost, link, "do=silence&for=1h", false); got.Status != http.StatusForbidden {
			t.Errorf("%s: a silence: %d %s", page, got.Status, got.Body)
		}
		if got := s.ask(http.MethodPost, link, "by=Eve", false); got.Status != http.StatusOK || !strings.Contains(got.Body, "Eve") {
			t.Errorf("%s: an acknowledgement: %d %s", page, got.Status, got.Body)
		}
	}
}

// TestDocumentedMatcherOfPhones checks that a phone that was invited subscribes, gets a
// message, confirms it, and changes and removes itself without the password, behind each
// matcher that leaves phones out.
func TestDocumentedMatcherOfPhones(t *testing.T) {
	matchers := documentedMatchers(t)
	for _, page := range []string{"phone.md", "modules.md"} {
		s := newGuardedSite(t, matchers[page])
		made := s.ask(http.MethodPost, "/notify/console/keys/inb?invite", "tags=", true, "Accept", browser)
		m := regexp.MustCompile(`<output>https://alerts\.example\.com([^<]+)</output>`).FindStringSubmatch(made.Body)
		if m == nil {
			t.Fatalf("%s: %d %s", page, made.Status, made.Body)
		}
		link, err := url.Parse(m[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, method := range []string{http.MethodHead, http.MethodGet} {
			got := s.ask(method, m[1], "", false, "Accept", browser)
			if got.Status != http.StatusOK || method == http.MethodGet && !strings.Contains(got.Body, "data-server-key") {
				t.Errorf("%s: %s of the invitation: %d %s", page, method, got.Status, got.Body)
			}
		}
		for _, path := range []string{
			httpapi.RouteWorker, httpapi.RouteManifest + "?key=inb&" + link.RawQuery,
			httpapi.RouteIcon, httpapi.RouteIconSmall, httpapi.RouteIconLarge, httpapi.RouteBadge,
		} {
			if got := s.ask(http.MethodGet, path, "", false); got.Status != http.StatusOK {
				t.Errorf("%s: %s: %d %s", page, path, got.Status, got.Body)
			}
		}
		body, err := json.Marshal(map[string]any{
			"name": "phone", "subscription": s.phones.Subscription("/phone"),
			"invite": link.Query().Get(httpapi.InviteQuery),
		})
		if err != nil {
			t.Fatal(err)
		}
		added := s.ask(http.MethodPost, "/notify/inb/devices", string(body), false)
		var phone gatewaytest.Phone
		if err := json.Unmarshal([]byte(added.Body), &phone); err != nil || added.Status != http.StatusCreated {
			t.Fatalf("%s: %d %s", page, added.Status, added.Body)
		}
		if got := s.ask(http.MethodPost, "/notify/inb", "body=hello", true); got.Status != http.StatusOK {
			t.Errorf("%s: a message: %d %s", page, got.Status, got.Body)
		}
		pushes := s.phones.Got()
		receipt := ""
		for _, p := range pushes {
			if p.Payload.Receipt != "" {
				receipt = p.Payload.Receipt
			}
		}
		own := []string{"Authorization", "Bearer " + phone.Secret}
		device := "/notify/inb/devices/" + phone.ID
		for _, tt := range []struct{ method, target, body string }{
			{http.MethodPost, device + "/receipts", `{"receipt":"` + receipt + `"}`},
			{http.MethodGet, device, ""},
			{http.MethodPut, device, `{"name":"other"}`},
			{http.MethodPost, device + "/test", ""},
			{http.MethodGet, m[1], ""}, // it is used up, and the page still opens
			{http.MethodDelete, device, ""},
		} {
			accept := gatewaytest.TypeJSON
			if tt.target == m[1] {
				accept = browser
			}
			if got := s.ask(tt.method, tt.target, tt.body, false, append([]string{"Accept", accept}, own...)...); got.Status != http.StatusOK {
				t.Errorf("%s: %s %s: %d %s", page, tt.method, tt.target, got.Status, got.Body)
			}
		}
		// The page of the key is not the page of an invitation.
		if got := s.ask(http.MethodGet, "/notify/inb", "", false, "Accept", browser); got.Status != http.StatusUnauthorized {
			t.Errorf("%s: the page of the key: %d", page, got.Status)
		}
	}
}
