package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
)

// recordTime matches the time of a line in an answer.
var recordTime = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(,\d{3}|Z)|\d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC`)

// TestTokenPlaces checks where a client may put the token of a key, in each way to send
// to it, and that a request without it is refused before its body is read.
func TestTokenPlaces(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	ops := gatewaytest.Key("ops", s.NotifyURL("/ops"))
	ops.Tokens = []string{keyToken, secondToken + "\n"} // as a file has it
	g := newSite(t, site.Options{Keys: []site.KeyOptions{ops, gatewaytest.Key("free", s.NotifyURL("/free"))}})
	const direct, backup = `{"body":"x","content":"x","title":"x"}`, "/notify/ops/ntfy/topic"
	for name, tt := range map[string]struct {
		path, header, value string
		status              int
	}{
		"bearer":                     {"/notify/ops", "Authorization", bearerToken(keyToken), 200},
		"second token":               {"/notify/ops/", "Authorization", "bearer " + secondToken, 200},
		"basic":                      {"/notify/ops", "Authorization", basicPassword(keyToken), 200},
		"query":                      {"/notify/ops?token=" + keyToken, "", "", 200},
		"header":                     {"/notify/ops", "X-Gotify-Key", keyToken, 200},
		"none":                       {"/notify/ops", "", "", 401},
		"wrong":                      {"/notify/ops", "Authorization", bearerToken(keyToken + "x"), 401},
		"half":                       {"/notify/ops", "Authorization", bearerToken(keyToken[:16]), 401},
		"empty":                      {"/notify/ops?token=", "Authorization", "Bearer ", 401},
		"user name":                  {"/notify/ops", "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(keyToken+":x")), 401},
		"user name, no password":     {"/notify/ops", "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(keyToken+":")), 200},
		"unknown key":                {"/notify/nothing", "", "", 401},
		"unknown key, with a token":  {"/notify/nothing", "Authorization", bearerToken(keyToken), 401},
		"malformed key":              {"/notify/a.b", "", "", 401},
		"key without a token":        {"/notify/free", "", "", 200},
		"source":                     {"/notify/ops/grafana", "Authorization", bearerToken(keyToken), 200},
		"source, none":               {"/notify/ops/grafana", "", "", 401},
		"source, unknown key":        {"/notify/nothing/grafana", "", "", 401},
		"source, without a token":    {"/notify/free/grafana", "", "", 200},
		"ntfy, where its clients do": {backup + "?auth=" + base64.RawURLEncoding.EncodeToString([]byte(bearerToken(keyToken))), "", "", 200},
		"ntfy, none":                 {backup, "", "", 401},
		"discord, in the path":       {"/notify/ops/discord/123/" + keyToken, "", "", 204},
		"discord, wrong":             {"/notify/ops/discord/123/" + secondToken + "x", "", "", 401},
		"preview":                    {"/notify/ops?preview", "Authorization", bearerToken(keyToken), 200},
		"preview, token in query":    {"/notify/ops?token=" + keyToken + "&preview", "", "", 200},
		"preview, none":              {"/notify/ops?preview", "", "", 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := direct
			if strings.HasSuffix(tt.path, "/grafana") {
				body = firingGrafana(t)
			}
			r := httptest.NewRequest(http.MethodPost, tt.path, strings.NewReader(body))
			if tt.status == 401 {
				r = httptest.NewRequest(http.MethodPost, tt.path, unreadBody{t})
			}
			r.Header.Set("Content-Type", gatewaytest.TypeJSON)
			if tt.header != "" {
				r.Header.Set(tt.header, tt.value)
			}
			got := g.Do(r)
			if got.Status != tt.status {
				t.Errorf("%d %s", got.Status, got.Body)
			}
			if want := []string{`Basic realm="notify", charset="UTF-8"`, "Bearer"}; got.Status == 401 &&
				!slices.Equal(got.Header["Www-Authenticate"], want) {
				t.Errorf("WWW-Authenticate %q", got.Header["Www-Authenticate"])
			}
			if strings.Contains(got.Body, keyToken) {
				t.Errorf("the answer has the token: %s", got.Body)
			}
		})
	}
}

// TestSlackTokenInBody checks that the token of a key may be in the body, where the program's
// clients put it, and that nothing reveals before it is read which keys exist.
func TestSlackTokenInBody(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	ops, other := protectedKey("ops", s.NotifyURL("/ops")), protectedKey("other", s.NotifyURL("/other"))
	ops.Accept, other.Accept = []string{"slack"}, []string{"direct"}
	g := newSite(t, site.Options{Keys: []site.KeyOptions{ops, other}})
	for _, tt := range []struct {
		path, token string
		status      int
	}{
		{"/notify/ops/slack", keyToken, 200},
		{"/notify/ops/slack", "wrong", 401},
		{"/notify/nothing/slack", keyToken, 401},
		{"/notify/other/slack", "wrong", 401},
		{"/notify/other/slack", keyToken, 403},
	} {
		got := g.Post(tt.path, gatewaytest.TypeJSON, `{"text":"x","token":"`+tt.token+`"}`)
		if got.Status != tt.status {
			t.Errorf("%s %s: %d %s", tt.path, tt.token, got.Status, got.Body)
		}
	}
	if got := s.Paths(); got != "ops" {
		t.Errorf("messages at %q", got)
	}
}

// TestSourceInPlaceOfToken checks that the token or the signature of a source takes the
// place of the key's token. The signature of Amazon SNS, which has no secret, does not.
func TestSourceInPlaceOfToken(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	sources := source.Set{}
	for _, c := range []source.Config{{Name: "grafana", Token: "of-grafana"}, {Name: "sns", Scheme: "sns"}} {
		var err error
		if sources[c.Name], err = source.New(c); err != nil {
			t.Fatal(err)
		}
	}
	g := gatewaytest.New(t, gatewaytest.Options{
		Site:    site.Options{Keys: []site.KeyOptions{protectedKey("ops", s.NotifyURL("/ops"))}},
		Sources: sources,
	})
	for path, status := range map[string]int{
		"/notify/ops/grafana?token=of-grafana":     200,
		"/notify/ops/grafana?token=" + keyToken:    401,
		"/notify/nothing/grafana?token=of-grafana": 401,
	} {
		if got := g.Post(path, gatewaytest.TypeJSON, firingGrafana(t)); got.Status != status {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/notify/ops/sns", unreadBody{t})
	if got := g.Do(r); got.Status != 401 {
		t.Errorf("SNS: %d %s", got.Status, got.Body)
	}
}

// TestSameAnswerForUnknownKeys checks that all answers to a client without a token are
// the same for a key with a token and for one that does not exist.
func TestSameAnswerForUnknownKeys(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	qqknown := protectedKey("qqknown", s.NotifyURL("/x"))
	qqknown.Readers, qqknown.Accept = []string{keyReader}, []string{"grafana"}
	g := newSavedKeys(t, nil, &site.Managers{}, saved.Options{}, qqknown)
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		for _, path := range []string{
			"/notify/KEY", "/notify/KEY/", "/notify/KEY?preview", "/notify/KEY/grafana", "/notify/KEY/slack",
			"/notify/KEY/nothing", "/notify/KEY/cloudevents", "/json/urls/KEY", "/json/urls/KEY?tag=x", "/cfg/KEY", "/cfg/KEY/token", "/get/KEY",
		} {
			for _, accept := range []string{"", "text/html", "application/json"} {
				ask := func(key string) gatewaytest.Reply {
					r := httptest.NewRequest(method, strings.Replace(path, "KEY", key, 1), strings.NewReader("text=x"))
					r.Header.Set("Content-Type", gatewaytest.TypeForm)
					r.Header.Set("WebHook-Request-Origin", "example.com")
					r.Header.Set("Accept", accept)
					got := g.Do(r)
					got.Body = recordTime.ReplaceAllString(strings.ReplaceAll(got.Body, key, "KEY"), "TIME")
					return got
				}
				known, unknown := ask("qqknown"), ask("qqwhich")
				if known.Status != unknown.Status || known.Body != unknown.Body || len(known.Header) != len(unknown.Header) {
					t.Errorf("%s %s, Accept %q: %d %v, but for an unknown key %d %v\n%.500s\n%.500s", method, path, accept, known.Status, known.Header,
						unknown.Status, unknown.Header, known.Body, unknown.Body)
				}
			}
		}
	}
}

// TestReader checks who may read the destinations of a key, and that a reader cannot
// send.
func TestReader(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	key := func(name string, tokens, readers []string) site.KeyOptions {
		k := gatewaytest.Key(name, s.NotifyURL("/"+name))
		k.Tokens, k.Readers = tokens, readers
		return k
	}
	token, reader := []string{keyToken}, []string{keyReader}
	g := newSavedKeys(t, nil, nil, saved.Options{}, key("both", token, reader), key("token", token, nil), key("reader", nil, reader),
		key("free", nil, nil))
	for _, tt := range []struct {
		method, path, secret string
		status               int
	}{
		{"GET", "/json/urls/both", "", 401},
		{"GET", "/json/urls/both", keyReader, 200},
		{"GET", "/json/urls/both", keyToken, 401},
		{"GET", "/json/urls/token", keyToken, 401},
		{"GET", "/json/urls/reader", "", 401},
		{"GET", "/json/urls/reader", keyReader, 200},
		{"GET", "/json/urls/free", "", 200},
		{"GET", "/json/urls/absent", keyReader, 401},
		{"POST", "/notify/both", keyReader, 401},
		{"POST", "/notify/reader", "", 200},
	} {
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader("body=x"))
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
		if tt.secret != "" {
			r.Header.Set("Authorization", bearerToken(tt.secret))
		}
		if got := g.Do(r); got.Status != tt.status {
			t.Errorf("%s %s with %q: %d %s", tt.method, tt.path, tt.secret, got.Status, got.Body)
		}
	}
	managed := newSavedKeys(t, nil, gatewaytest.Everybody(), saved.Options{}, key("token", token, nil))
	if got := getAccepting(managed, "/json/urls/token", ""); got.Status != 200 {
		t.Errorf("for who may manage: %d %s", got.Status, got.Body)
	}
}

// TestPageWithToken checks that the page of a key needs its token, and that its forms
// and its preview can be used when the token is in the address.
func TestPageWithToken(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSite(t, site.Options{Keys: []site.KeyOptions{protectedKey("ops", s.NotifyURL("/ops"))}})
	if got := getAccepting(g, "/notify/ops", "text/html"); got.Status != 401 || got.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("without a token: %d %v", got.Status, got.Header)
	}
	got := getAccepting(g, "/notify/ops?token="+keyToken, "text/html")
	for _, want := range []string{`action="./ops?token=` + keyToken + `"`, `data-preview="./ops?token=` + keyToken + `&amp;preview"`} {
		if got.Status != 200 || !strings.Contains(got.Body, want) {
			t.Errorf("%d, no %s in the page", got.Status, want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/notify/ops", nil)
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Authorization", basicPassword(keyToken))
	if got := g.Do(r); got.Status != 200 || strings.Contains(got.Body, keyToken) {
		t.Errorf("with Basic: %d, or the page has the token", got.Status)
	}
}

// TestSavedTokens checks the tokens of a saved key: who can make them, that they are shown once and
// stored hashed, that saving the key keeps them, that several work, and which stay.
func TestSavedTokens(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	dir := t.TempDir()
	g := newSavedKeys(t, storagetest.New(dir), gatewaytest.Everybody(), saved.Options{})
	save := func(key string) {
		t.Helper()
		if got := g.Post("/add/"+key, gatewaytest.TypeForm, "urls="+s.NotifyURL("/"+key)); got.Status != 200 {
			t.Fatal(got.Body)
		}
	}
	change := func(method, key, accept string) gatewaytest.Reply {
		t.Helper()
		r := httptest.NewRequest(method, "/cfg/"+key+"/token", nil)
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		return g.Do(r)
	}
	send := func(key, token string) int {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "/notify/"+key, strings.NewReader("x"))
		r.Header.Set("Content-Type", "text/plain")
		if token != "" {
			r.Header.Set("Authorization", bearerToken(token))
		}
		return g.Do(r).Status
	}
	expect := func(what, key, token string, want int) {
		t.Helper()
		if got := send(key, token); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	save("home")
	save("free")
	expect("before the first token", "home", "", 200)
	expect("unknown key before the first token", "absent", "", 404)
	first := change(http.MethodPost, "home", "")
	token := strings.TrimSpace(first.Body)
	if first.Status != 200 || len(token) < 26 || first.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %q %v", first.Status, first.Body, first.Header)
	}
	expect("without the token", "home", "", 401)
	expect("with the token", "home", token, 200)
	expect("key without a token", "free", "", 200)
	expect("unknown key", "absent", "", 401)
	save("home")
	expect("saved again, without the token", "home", "", 401)
	expect("saved again, with the token", "home", token, 200)
	second := change(http.MethodPost, "home", "application/json")
	var made httpapi.NewToken
	if err := json.Unmarshal([]byte(second.Body), &made); err != nil || made.Count != 2 {
		t.Fatalf("%s %v", second.Body, err)
	}
	expect("the first of two", "home", token, 200)
	expect("the second of two", "home", made.Token, 200)
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), token) || strings.Contains(string(text), made.Token) {
			t.Errorf("%s has a token: %s", path, text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if got := change(http.MethodDelete, "home", ""); got.Status != 200 || !strings.Contains(got.Body, "Removed 1 token") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	expect("a removed token", "home", token, 401)
	expect("the newest token", "home", made.Token, 200)
	if got := change(http.MethodPost, "absent", ""); got.Status != 404 {
		t.Errorf("a token of an unknown key: %d %s", got.Status, got.Body)
	}
	if got := g.Post("/del/home", gatewaytest.TypeForm, ""); got.Status != 200 {
		t.Fatal(got.Body)
	}
	expect("unknown key when no key has a token", "absent", "", 404)
	save("home")
	expect("saved anew", "home", "", 200)
	for range 10 {
		if got := change(http.MethodPost, "free", "text/html"); got.Status != 200 || !strings.Contains(got.Body, "is not shown again") {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
	}
	if got := change(http.MethodPost, "free", ""); got.Status != 400 {
		t.Errorf("an eleventh token: %d %s", got.Status, got.Body)
	}
	// The page posts a form.
	if got := g.Post("/cfg/free/token?old", gatewaytest.TypeForm, ""); got.Status != 200 || !strings.Contains(got.Body, "Removed 9 tokens") {
		t.Errorf("with ?old: %d %s", got.Status, got.Body)
	}
	r := httptest.NewRequest(http.MethodDelete, "/cfg/free/token", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if got := g.Do(r); got.Status != 403 {
		t.Errorf("a page of another site: %d %s", got.Status, got.Body)
	}
}

// TestMessagesByKey checks that messages are counted by key only for keys of the configuration, so
// that clients cannot create series.
func TestMessagesByKey(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSavedKeys(t, nil, gatewaytest.Everybody(), saved.Options{}, protectedKey("counted-token", s.NotifyURL("/x")))
	if got := g.Post("/add/counted-saved", gatewaytest.TypeForm, "urls="+s.NotifyURL("/saved")); got.Status != 200 {
		t.Fatal(got.Body)
	}
	for _, path := range []string{
		"/notify/counted-token", "/notify/counted-token?token=" + keyToken, "/notify/counted-saved",
		"/notify/counted-absent", "/notify/counted-token/grafana",
	} {
		g.Post(path, gatewaytest.TypeForm, "body=x")
	}
	families, err := g.Process.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "caddy_notify_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			if strings.Contains(name, "counted-") {
				got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	if len(got) != 2 || got["key_messages_total key=counted-token outcome=delivered"] != 1 ||
		got["key_messages_total key=counted-token outcome=refused"] != 2 {
		t.Errorf("%v", got)
	}
}

// firingGrafana returns a payload of Grafana from the test data of package programs.
func firingGrafana(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../source/programs/testdata/grafana/firing.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
