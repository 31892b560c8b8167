package caddyhttp

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

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
)

// The secrets of the tests.
const (
	opsToken  = "0psT0ken-0psT0ken"
	opsToken2 = "0psT0ken2-0psT0ken2"
	opsReader = "0psReader-0psReader"
)

// timeOfRecord matches the time of a line in an answer.
var timeOfRecord = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}`)

// bearer returns the value of Authorization with a token.
func bearer(token string) string { return "Bearer " + token }

// basic returns the value of Authorization with a password.
func basic(password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte("anyone:"+password))
}

// TestTokenPlaces checks where a client may put the token of a key, in each way to send
// to it, and that a request without it is refused before its body is read.
func TestTokenPlaces(t *testing.T) {
	s := gatewaytest.NewStation(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(opsToken2+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_TEST_TOKEN", opsToken)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\ntoken {env.NOTIFY_TEST_TOKEN} {file."+file+"}\n}\nkey free {\nurl "+s.NotifyURL("/free")+"\n}", "")
	const direct, backup = `{"body":"x","content":"x","title":"x"}`, "/notify/ops/ntfy/topic"
	for name, tt := range map[string]struct {
		path, header, value string
		status              int
	}{
		"bearer":                     {"/notify/ops", "Authorization", bearer(opsToken), 200},
		"second token":               {"/notify/ops/", "Authorization", "bearer " + opsToken2, 200},
		"basic":                      {"/notify/ops", "Authorization", basic(opsToken), 200},
		"query":                      {"/notify/ops?token=" + opsToken, "", "", 200},
		"header":                     {"/notify/ops", "X-Gotify-Key", opsToken, 200},
		"none":                       {"/notify/ops", "", "", 401},
		"wrong":                      {"/notify/ops", "Authorization", bearer(opsToken + "x"), 401},
		"half":                       {"/notify/ops", "Authorization", bearer(opsToken[:16]), 401},
		"empty":                      {"/notify/ops?token=", "Authorization", "Bearer ", 401},
		"user name":                  {"/notify/ops", "Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(opsToken+":x")), 401},
		"unknown key":                {"/notify/nothing", "", "", 401},
		"unknown key, with a token":  {"/notify/nothing", "Authorization", bearer(opsToken), 401},
		"malformed key":              {"/notify/a.b", "", "", 401},
		"key without a token":        {"/notify/free", "", "", 200},
		"source":                     {"/notify/ops/grafana", "Authorization", bearer(opsToken), 200},
		"source, none":               {"/notify/ops/grafana", "", "", 401},
		"source, unknown key":        {"/notify/nothing/grafana", "", "", 401},
		"source, without a token":    {"/notify/free/grafana", "", "", 200},
		"ntfy, where its clients do": {backup + "?auth=" + base64.RawURLEncoding.EncodeToString([]byte(bearer(opsToken))), "", "", 200},
		"ntfy, none":                 {backup, "", "", 401},
		"discord, in the path":       {"/notify/ops/discord/123/" + opsToken, "", "", 204},
		"discord, wrong":             {"/notify/ops/discord/123/" + opsToken2 + "x", "", "", 401},
		"preview":                    {"/notify/ops?preview", "Authorization", bearer(opsToken), 200},
		"preview, token in query":    {"/notify/ops?token=" + opsToken + "&preview", "", "", 200},
		"preview, none":              {"/notify/ops?preview", "", "", 401},
	} {
		t.Run(name, func(t *testing.T) {
			body := direct
			if strings.HasSuffix(tt.path, "/grafana") {
				body = sample(t, "grafana/firing")
			}
			r := httptest.NewRequest(http.MethodPost, tt.path, strings.NewReader(body))
			if tt.status == 401 {
				r = httptest.NewRequest(http.MethodPost, tt.path, unread{t})
			}
			r.Header.Set("Content-Type", typeJSON)
			if tt.header != "" {
				r.Header.Set(tt.header, tt.value)
			}
			got := do(t, h, r)
			if got.status != tt.status {
				t.Errorf("%d %s", got.status, got.body)
			}
			if want := []string{`Basic realm="notify", charset="UTF-8"`, "Bearer"}; got.status == 401 && !slices.Equal(got.header["Www-Authenticate"], want) {
				t.Errorf("WWW-Authenticate %q", got.header["Www-Authenticate"])
			}
			if strings.Contains(got.body, opsToken) {
				t.Errorf("the answer has the token: %s", got.body)
			}
		})
	}
}

// TestSlackTokenInBody checks that the token of a key may be in the body where the
// program's clients put it, and that it is not known before which keys exist.
func TestSlackTokenInBody(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\ntoken "+opsToken+"\naccept slack\n}\nkey other {\nurl "+s.NotifyURL("/other")+"\ntoken "+opsToken+"\naccept direct\n}", "")
	for _, tt := range []struct {
		path, token string
		status      int
	}{
		{"/notify/ops/slack", opsToken, 200},
		{"/notify/ops/slack", "wrong", 401},
		{"/notify/nothing/slack", opsToken, 401},
		{"/notify/other/slack", "wrong", 401},
		{"/notify/other/slack", opsToken, 403},
	} {
		got := post(t, h, tt.path, typeJSON, `{"text":"x","token":"`+tt.token+`"}`)
		if got.status != tt.status {
			t.Errorf("%s %s: %d %s", tt.path, tt.token, got.status, got.body)
		}
	}
	if got := s.Paths(); got != "ops" {
		t.Errorf("messages at %q", got)
	}
}

// TestSourceInPlaceOfToken checks that the token or the signature of a source takes the
// place of the key's token. The signature of Amazon SNS, which has no secret, does not.
func TestSourceInPlaceOfToken(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\ntoken "+opsToken+"\n}\nfrom grafana {\ntoken of-grafana\n}\nfrom sns {\nsign sns\n}", "")
	for path, status := range map[string]int{
		"/notify/ops/grafana?token=of-grafana":     200,
		"/notify/ops/grafana?token=" + opsToken:    401,
		"/notify/nothing/grafana?token=of-grafana": 401,
	} {
		if got := post(t, h, path, typeJSON, sample(t, "grafana/firing")); got.status != status {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/notify/ops/sns", unread{t})
	if got := do(t, h, r); got.status != 401 {
		t.Errorf("SNS: %d %s", got.status, got.body)
	}
}

// TestSameAnswerForUnknownKeys checks that all answers to a client without a token are
// the same for a key with a token and for one that does not exist.
func TestSameAnswerForUnknownKeys(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h, _ := newConfigGateway(t, t.TempDir(), "manage", "key qqknown {\nurl "+s.NotifyURL("/x")+"\ntoken "+opsToken+"\nreader "+opsReader+"\naccept grafana\n}")
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		for _, path := range []string{"/notify/KEY", "/notify/KEY/", "/notify/KEY?preview", "/notify/KEY/grafana", "/notify/KEY/slack", "/notify/KEY/nothing", "/notify/KEY/cloudevents", "/json/urls/KEY", "/json/urls/KEY?tag=x", "/cfg/KEY", "/cfg/KEY/token", "/get/KEY"} {
			for _, accept := range []string{"", "text/html", "application/json"} {
				ask := func(key string) reply {
					r := httptest.NewRequest(method, strings.Replace(path, "KEY", key, 1), strings.NewReader("text=x"))
					r.Header.Set("Content-Type", typeForm)
					r.Header.Set("WebHook-Request-Origin", "example.com")
					r.Header.Set("Accept", accept)
					got := do(t, h, r)
					got.body = timeOfRecord.ReplaceAllString(strings.ReplaceAll(got.body, key, "KEY"), "TIME")
					return got
				}
				known, unknown := ask("qqknown"), ask("qqwhich")
				if known.status != unknown.status || known.body != unknown.body || len(known.header) != len(unknown.header) {
					t.Errorf("%s %s, Accept %q: %d %v, but for an unknown key %d %v\n%.500s\n%.500s", method, path, accept, known.status, known.header, unknown.status, unknown.header, known.body, unknown.body)
				}
			}
		}
	}
}

// TestReader checks who may read the destinations of a key, and that a reader cannot
// send.
func TestReader(t *testing.T) {
	s := gatewaytest.NewStation(t)
	key := func(name, lines string) string {
		return "key " + name + " {\nurl " + s.NotifyURL("/"+name) + "\n" + lines + "\n}\n"
	}
	h, _ := newConfigGateway(t, t.TempDir(), "", key("both", "token "+opsToken+"\nreader "+opsReader)+key("token", "token "+opsToken)+key("reader", "reader "+opsReader)+key("free", ""))
	for _, tt := range []struct {
		method, path, secret string
		status               int
	}{
		{"GET", "/json/urls/both", "", 401},
		{"GET", "/json/urls/both", opsReader, 200},
		{"GET", "/json/urls/both", opsToken, 401},
		{"GET", "/json/urls/token", opsToken, 401},
		{"GET", "/json/urls/reader", "", 401},
		{"GET", "/json/urls/reader", opsReader, 200},
		{"GET", "/json/urls/free", "", 200},
		{"GET", "/json/urls/absent", opsReader, 401},
		{"POST", "/notify/both", opsReader, 401},
		{"POST", "/notify/reader", "", 200},
	} {
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader("body=x"))
		r.Header.Set("Content-Type", typeForm)
		if tt.secret != "" {
			r.Header.Set("Authorization", bearer(tt.secret))
		}
		if got := do(t, h, r); got.status != tt.status {
			t.Errorf("%s %s with %q: %d %s", tt.method, tt.path, tt.secret, got.status, got.body)
		}
	}
	managed, _ := newConfigGateway(t, t.TempDir(), "manage open", key("token", "token "+opsToken))
	if got := get(t, managed, "/json/urls/token", ""); got.status != 200 {
		t.Errorf("for who may manage: %d %s", got.status, got.body)
	}
}

// TestPageWithToken checks that the page of a key needs its token, and that its forms
// and its preview can be used when the token is in the address.
func TestPageWithToken(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\ntoken "+opsToken+"\n}", "")
	if got := get(t, h, "/notify/ops", "text/html"); got.status != 401 || got.header.Get("WWW-Authenticate") == "" {
		t.Errorf("without a token: %d %v", got.status, got.header)
	}
	got := get(t, h, "/notify/ops?token="+opsToken, "text/html")
	for _, want := range []string{`action="./ops?token=` + opsToken + `"`, `data-preview="./ops?token=` + opsToken + `&amp;preview"`} {
		if got.status != 200 || !strings.Contains(got.body, want) {
			t.Errorf("%d, no %s in the page", got.status, want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/notify/ops", nil)
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Authorization", basic(opsToken))
	if got := do(t, h, r); got.status != 200 || strings.Contains(got.body, opsToken) {
		t.Errorf("with Basic: %d, or the page has the token", got.status)
	}
}

// TestAccessMistakes checks which secrets are refused when the configuration loads, and
// that no error shows one.
func TestAccessMistakes(t *testing.T) {
	t.Setenv("NOTIFY_TEST_SHORT", "short-s3cret")
	t.Setenv("NOTIFY_TEST_EMPTY", "")
	t.Setenv("NOTIFY_TEST_LINES", "s3cret-of-two\ns3cret-of-lines")
	for lines, want := range map[string]string{
		"token short-s3cret":                              "openssl rand -hex 16",
		"reader short-s3cret":                             "openssl rand -hex 16",
		"token {env.NOTIFY_TEST_SHORT}":                   "key ops: token: a secret has fewer than 16 characters",
		"token {env.NOTIFY_TEST_LINES}":                   "a space, a line break",
		"token {env.NOTIFY_TEST_EMPTY}":                   "{env.NOTIFY_TEST_EMPTY} is empty",
		"token {env.NOTIFY_TEST_UNSET}":                   "{env.NOTIFY_TEST_UNSET} has no value",
		`token "s3cret with some spaces"`:                 "a space, a line break",
		"token s3cret-s3cret-s3 s3cret-s3cret-s3":         "occurs twice",
		"token s3cret-s3cret-s3\nreader s3cret-s3cret-s3": "both a token and a reader",
		"reader s3cret-s3cret-s3":                         "reader: it has no effect",
		"token":                                           "token <secret...>",
	} {
		_, err := provision(t, "key ops {\nurl json://h\n"+lines+"\n}", "")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret-") || strings.Contains(err.Error(), "-s3cret") {
			t.Errorf("%s: %v, want %q", lines, err, want)
		}
	}
}

// TestReaderOfGlobalKey checks that a reader of a key of the app is refused where no
// site can ask for it.
func TestReaderOfGlobalKey(t *testing.T) {
	const key = "key ops {\nurl json://h\nreader " + opsReader + "\n}"
	if err := newGateway(t, "", key).app.checkReaders(); err == nil || !strings.Contains(err.Error(), "no site has configs") {
		t.Errorf("without configs: %v", err)
	}
	h, _ := newConfigGateway(t, t.TempDir(), "", key)
	if err := h.app.checkReaders(); err != nil {
		t.Errorf("with configs: %v", err)
	}
}

// TestAccessIsNotLogged checks that Caddy's debug log, which prints whole modules, and
// the JSON form of keys treat secrets as they should.
func TestAccessIsNotLogged(t *testing.T) {
	k := &Key{URLs: []KeyURL{{URL: "json://h"}}, Tokens: []string{opsToken}, Readers: []string{opsReader}}
	line, err := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()).EncodeEntry(zapcore.Entry{}, []zap.Field{zap.Any("key", k), zap.Object("settings", &Settings{Keys: map[string]*Key{"ops": k}})})
	if err != nil || strings.Contains(line.String(), opsToken) || strings.Contains(line.String(), opsReader) || !strings.Contains(line.String(), `"tokens":1`) {
		t.Errorf("%s %v", line.String(), err)
	}
	var back Key
	if err := back.UnmarshalJSON(caddyconfig.JSON(k, nil)); err != nil || !slices.Equal(back.Tokens, k.Tokens) || !slices.Equal(back.Readers, k.Readers) {
		t.Errorf("%+v %v", back, err)
	}
}

// TestAccessFingerprint checks that a changed file of a token makes a reload load the
// configuration.
func TestAccessFingerprint(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	s := &Settings{Keys: map[string]*Key{"ops": {Tokens: []string{"{file." + file + "}"}}}}
	before := s.fingerprint(nil)
	if err := os.WriteFile(file, []byte(opsToken), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := s.fingerprint(nil); before == after || before == "" {
		t.Errorf("%q, then %q", before, after)
	}
}

// TestSavedTokens checks the tokens of a saved key: who can make them, that they are
// shown once and stored hashed, that saving the key keeps them, that several count, and
// which stay.
func TestSavedTokens(t *testing.T) {
	s := gatewaytest.NewStation(t)
	dir := t.TempDir()
	h, _ := newConfigGateway(t, dir, "manage open", "")
	save := func(key string) {
		t.Helper()
		if got := post(t, h, "/add/"+key, typeForm, "urls="+s.NotifyURL("/"+key)); got.status != 200 {
			t.Fatal(got.body)
		}
	}
	change := func(method, key, accept string) reply {
		t.Helper()
		r := httptest.NewRequest(method, "/cfg/"+key+"/token", nil)
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		return do(t, h, r)
	}
	send := func(key, token string) int {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, "/notify/"+key, strings.NewReader("x"))
		r.Header.Set("Content-Type", "text/plain")
		if token != "" {
			r.Header.Set("Authorization", bearer(token))
		}
		return do(t, h, r).status
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
	token := strings.TrimSpace(first.body)
	if first.status != 200 || len(token) < 26 || first.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %q %v", first.status, first.body, first.header)
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
	if err := json.Unmarshal([]byte(second.body), &made); err != nil || made.Count != 2 {
		t.Fatalf("%s %v", second.body, err)
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
	if got := change(http.MethodDelete, "home", ""); got.status != 200 || !strings.Contains(got.body, "Removed 1 token") {
		t.Errorf("%d %s", got.status, got.body)
	}
	expect("a removed token", "home", token, 401)
	expect("the newest token", "home", made.Token, 200)
	if got := change(http.MethodPost, "absent", ""); got.status != 404 {
		t.Errorf("a token of an unknown key: %d %s", got.status, got.body)
	}
	if got := post(t, h, "/del/home", typeForm, ""); got.status != 200 {
		t.Fatal(got.body)
	}
	expect("unknown key when no key has a token", "absent", "", 404)
	save("home")
	expect("saved anew", "home", "", 200)
	for range 10 {
		if got := change(http.MethodPost, "free", "text/html"); got.status != 200 || !strings.Contains(got.body, "is not shown again") {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if got := change(http.MethodPost, "free", ""); got.status != 400 {
		t.Errorf("an eleventh token: %d %s", got.status, got.body)
	}
	// The page posts a form.
	if got := post(t, h, "/cfg/free/token?old", typeForm, ""); got.status != 200 || !strings.Contains(got.body, "Removed 9 tokens") {
		t.Errorf("with ?old: %d %s", got.status, got.body)
	}
	r := httptest.NewRequest(http.MethodDelete, "/cfg/free/token", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if got := do(t, h, r); got.status != 403 {
		t.Errorf("a page of another site: %d %s", got.status, got.body)
	}
}

// TestMessagesByKey checks that messages count by key only for keys of the
// configuration, so that clients cannot make series.
func TestMessagesByKey(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h, _ := newConfigGateway(t, t.TempDir(), "manage open", "key counted-token {\nurl "+s.NotifyURL("/x")+"\ntoken "+opsToken+"\n}")
	if got := post(t, h, "/add/counted-saved", typeForm, "urls="+s.NotifyURL("/saved")); got.status != 200 {
		t.Fatal(got.body)
	}
	for _, path := range []string{"/notify/counted-token", "/notify/counted-token?token=" + opsToken, "/notify/counted-saved", "/notify/counted-absent", "/notify/counted-token/grafana"} {
		post(t, h, path, typeForm, "body=x")
	}
	got := map[string]float64{}
	for name, value := range values(t, h.shared.Dispatcher) {
		if strings.Contains(name, "counted-") {
			got[name] = value
		}
	}
	if len(got) != 2 || got["key_messages_total key=counted-token outcome=delivered"] != 1 || got["key_messages_total key=counted-token outcome=refused"] != 2 {
		t.Errorf("%v", got)
	}
}
