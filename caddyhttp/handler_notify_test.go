package caddyhttp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

func TestFormat(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "default_urls "+s.NotifyURL("/?format=html"), "")
	for _, tt := range []struct{ target, body, want string }{
		{"/notify", `{"body":"<b>&"}`, "&lt;b&gt;&amp;"},
		{"/notify", `{"body":"<b>x</b>","format":"HTML"}`, "<b>x</b>"},
		{"/notify?format=html", `{"body":"<b>x</b>"}`, "<b>x</b>"},
		{"/notify", `{"body":"**x**","format":"markdown"}`, "<p><strong>x</strong></p>"},
	} {
		if got := post(t, h, tt.target, typeJSON, tt.body); got.status != 200 {
			t.Errorf("%s: %s", tt.body, got.body)
			continue
		}
		if got := strings.TrimSpace(s.One(t).Message); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.target, tt.body, got, tt.want)
		}
	}
}

func TestURLs(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, open, "")
	a, b := s.NotifyURL("/a"), s.NotifyURL("/b")
	object := func(urls any) string {
		text, err := json.Marshal(map[string]any{"body": "x", "urls": urls})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, tt := range map[string]struct {
		contentType, body string
		status            int
		arrives           string
	}{
		"string":                       {typeJSON, object(a), 200, "a"},
		"comma":                        {typeJSON, object(a + "," + b), 200, "a b"},
		"comma and space":              {typeJSON, object(a + " , " + b + ","), 200, "a b"},
		"lines":                        {typeJSON, object(a + "\n" + b), 200, "a b"},
		"a comma within":               {typeJSON, object(a + ",x"), 200, "a,x"},
		"array":                        {typeJSON, object([]string{a, b}), 200, "a b"},
		"array with empty texts":       {typeJSON, object([]string{"", a, " "}), 200, "a"},
		"form":                         {typeForm, "body=x&urls=" + a, 200, "a"},
		"form repeated":                {typeForm, "body=x&urls=" + a + "&urls=" + b, 200, "a b"},
		"one is unusable":              {typeJSON, object([]string{a, "nonsense://x", b}), 424, "a b"},
		"none is usable":               {typeJSON, object([]string{"nonsense://x"}), 400, ""},
		"no URL at all":                {typeJSON, object("nonsense"), 400, ""},
		"none given":                   {typeJSON, object(nil), 400, ""},
		"an empty list":                {typeJSON, object([]string{}), 400, ""},
		"too many":                     {typeJSON, object(strings.Repeat(a+" ", 1001)), 400, ""},
		"a tag means nothing":          {typeJSON, `{"body":"x","tag":["$",["-"]],"urls":"` + a + `"}`, 200, "a"},
		"a destination that refuses":   {typeJSON, object([]string{a, s.NotifyURL("/refuse")}), 424, "a refuse"},
		"an optional one that refuses": {typeJSON, object([]string{a, s.NotifyURL("/refuse?optional=yes")}), 200, "a refuse"},
	} {
		got := post(t, h, "/notify", tt.contentType, tt.body)
		if got.status != tt.status {
			t.Errorf("%s: status %d, want %d: %s", name, got.status, tt.status, got.body)
		}
		if paths := s.Paths(); paths != tt.arrives {
			t.Errorf("%s: messages at %q, want %q", name, paths, tt.arrives)
		}
	}
}

func TestDefaultURLs(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, open+"default_urls "+s.NotifyURL("/one")+" "+s.NotifyURL("/two"), "")
	for _, tt := range []struct {
		body, arrives string
		status        int
	}{
		{`{"body":"x"}`, "one two", 200},
		{`{"body":"x","urls":""}`, "one two", 200},
		{`{"body":"x","urls":"` + s.NotifyURL("/mine") + `"}`, "mine", 200},
		{`{"body":"x","urls":"nonsense://x"}`, "", 400},
	} {
		if got := post(t, h, "/notify", typeJSON, tt.body); got.status != tt.status {
			t.Errorf("%s: status %d: %s", tt.body, got.status, got.body)
		}
		if paths := s.Paths(); paths != tt.arrives {
			t.Errorf("%s: messages at %q, want %q", tt.body, paths, tt.arrives)
		}
	}
}

func TestStatelessOff(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "stateless off\nkey ops {\nurl "+s.NotifyURL("/ops")+"\n}", "")
	for path, want := range map[string]int{"/notify": 403, "/notify/": 403, "/notify/ops": 200} {
		if got := post(t, h, path, typeForm, "body=x&urls="+s.NotifyURL("/x")); got.status != want {
			t.Errorf("%s: status %d, want %d", path, got.status, want)
		}
	}
	if paths := s.Paths(); paths != "ops" {
		t.Errorf("messages at %q", paths)
	}
}

func TestTags(t *testing.T) {
	s := gatewaytest.NewStation(t)
	urls := "url " + s.NotifyURL("/a") + " a\nurl " + s.NotifyURL("/ab") + " A b\nurl " + s.NotifyURL("/always") + " c Always\nurl " + s.NotifyURL("/none") + "\n"
	gateways := map[string]*Handler{
		"no default":   newGateway(t, "key k {\n"+urls+"}", ""),
		"a,c":          newGateway(t, "key k {\n"+urls+"default_tag a,c\n}", ""),
		"untagged":     newGateway(t, "key k {\n"+urls+"default_tag untagged\n}", ""),
		"never always": newGateway(t, "key k {\nurl "+s.NotifyURL("/a")+" a\n}", ""),
	}
	for _, tt := range []struct {
		gateway, query, contentType, body string
		arrives                           string
	}{
		{"no default", "", typeForm, "body=x", "a ab always none"},
		{"no default", "", typeForm, "body=x&tag=", "a ab always none"},
		{"no default", "", typeForm, "body=x&tag=,", "a ab always none"},
		{"no default", "", typeForm, "body=x&tag=a", "a ab always"},
		{"no default", "", typeForm, "body=x&tags=A", "a ab always"},
		{"no default", "", typeForm, "body=x&tag=&tags=a", "a ab always"},
		{"no default", "", typeForm, "body=x&tag=b&tags=a", "ab always"},
		{"no default", "", typeForm, "body=x&tag=a+b", "ab always"},
		{"no default", "", typeForm, "body=x&tag=a%2Bb", "ab always"},
		{"no default", "", typeForm, "body=x&tag=a%26b", "ab always"},
		{"no default", "", typeForm, "body=x&tag=b&tag=c", "ab always"},
		{"no default", "", typeForm, "body=x&tag=a&tag=b", "a ab always"},
		{"no default", "", typeForm, "body=x&tag=all", "a ab always none"},
		{"no default", "", typeForm, "body=x&tag=z", "always"},
		{"no default", "?tag=b", typeForm, "body=x", "ab always"},
		{"no default", "?tags=b", typeForm, "body=x", "ab always"},
		{"no default", "?tag=b", typeForm, "body=x&tag=a", "a ab always"},
		{"no default", "?tag=a&tag=b", typeForm, "body=x", "a ab always"},
		{"no default", "", typeJSON, `{"body":"x","tag":"a|b"}`, "a ab always"},
		{"no default", "", typeJSON, `{"body":"x","tag":["a","b"]}`, "a ab always"},
		{"no default", "", typeJSON, `{"body":"x","tag":[["a","b"]]}`, "ab always"},
		{"no default", "", typeJSON, `{"body":"x","tags":["a b"]}`, "ab always"},
		{"no default", "?tag=b", typeJSON, `{"body":"x","tag":null}`, "ab always"},
		{"a,c", "", typeForm, "body=x", "a ab always"},
		{"a,c", "", typeForm, "body=x&tag=b", "ab always"},
		{"untagged", "", typeForm, "body=x", "none"},
		{"untagged", "", typeForm, "body=x&tag=all", "a ab always none"},
		{"never always", "", typeForm, "body=x&tag=z", ""},
	} {
		got := post(t, gateways[tt.gateway], "/notify/k"+tt.query, tt.contentType, tt.body)
		if paths := s.Paths(); paths != tt.arrives {
			t.Errorf("%s %s %s: messages at %q, want %q", tt.gateway, tt.query, tt.body, paths, tt.arrives)
		}
		want := 200
		if tt.arrives == "" {
			want = 424
		}
		if got.status != want {
			t.Errorf("%s %s %s: status %d, want %d: %s", tt.gateway, tt.query, tt.body, got.status, want, got.body)
		}
	}
	if got := post(t, gateways["never always"], "/notify/k", typeForm, "body=x&tag=z"); !strings.Contains(got.body, "tag") {
		t.Errorf("the error does not name the tag: %s", got.body)
	}
}

func TestHops(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "default_urls "+s.NotifyURL("/"), "")
	for value, want := range map[string]int{
		"0": 200, "1": 200, "01": 200, " 1 ": 200,
		"2": 508, "99999999999999999999999": 508,
		"": 400, "-1": 400, "+1": 400, "1.0": 400, "x": 400,
	} {
		r := httptest.NewRequest(http.MethodPost, "/notify", strings.NewReader("body=x"))
		r.Header.Set("Content-Type", typeForm)
		r.Header.Set("X-Apprise-Recursion-Count", value)
		if got := do(t, h, r); got.status != want {
			t.Errorf("%q: status %d, want %d", value, got.status, want)
		}
		if sent := len(s.Take()); (sent == 1) != (want == 200) {
			t.Errorf("%q: %d messages", value, sent)
		}
	}
}

// TestHopsOfAnyService checks that gateways which send to each other stop, for
// every service. Each gateway is the destination of the one before, and a
// client has sent the first URL.
func TestHopsOfAnyService(t *testing.T) {
	var address string
	seen := 0
	next := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen++
		h := newGateway(t, open, "")
		form := "body=x&urls=form://" + address + "/?%252BUser-Agent=other"
		out := httptest.NewRequest(http.MethodPost, "/notify", strings.NewReader(form))
		out.Header = http.Header{"Content-Type": {typeForm}, "User-Agent": r.Header["User-Agent"]}
		got := do(t, h, out)
		w.WriteHeader(got.status)
	}))
	defer next.Close()
	address = strings.TrimPrefix(next.URL, "http://")
	resp, err := http.Post(next.URL, typeForm, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if seen != 3 || resp.StatusCode != http.StatusFailedDependency {
		t.Errorf("%d gateways had it; status %d", seen, resp.StatusCode)
	}
}

// TestHopsAreCounted checks that the next gateway gets the number of gateways
// that the message has passed.
func TestHopsAreCounted(t *testing.T) {
	seen := make(chan string, 1)
	peer := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("X-Apprise-Recursion-Count")
	}))
	defer peer.Close()
	h := newGateway(t, "key k {\nurl apprise://"+strings.TrimPrefix(peer.URL, "http://")+"/key\n}", "")
	r := httptest.NewRequest(http.MethodPost, "/notify/k", strings.NewReader("body=x"))
	r.Header.Set("Content-Type", typeForm)
	r.Header.Set("X-Apprise-Recursion-Count", "1")
	if got := do(t, h, r); got.status != 200 {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	if n := <-seen; n != "2" {
		t.Errorf("the next gateway got %q, want 2", n)
	}
}

// TestEgress checks that URLs of clients do not reach private networks, even by
// redirects, unless egress allows it, and that URLs of the operator do.
func TestEgress(t *testing.T) {
	s := gatewaytest.NewStation(t)
	redirect := httptest.NewServer(http.RedirectHandler(s.URL+"/redirected", http.StatusTemporaryRedirect))
	defer redirect.Close()
	elsewhere := "json://" + strings.TrimPrefix(redirect.URL, "http://")
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	for _, tt := range []struct {
		name, block, url string
		arrives          bool
	}{
		{"by default", "", s.NotifyURL("/"), false},
		{"localhost by default", "", "json://localhost" + port, false},
		{"a number by default", "", "json://2130706433" + port, false},
		{"IPv4 in IPv6 by default", "", "json://[::ffff:127.0.0.1]" + port, false},
		{"allowed", "egress {\nallow 127.0.0.1\n}", s.NotifyURL("/"), true},
		{"all allowed", "egress {\nallow all\n}", s.NotifyURL("/"), true},
		{"private ranges allowed", "egress {\nallow private_ranges\n}", s.NotifyURL("/"), true},
		{"another allowed", "egress {\nallow 10.0.0.0/8\n}", s.NotifyURL("/"), false},
		{"denied", "egress {\nallow all\ndeny 127.0.0.0/8\n}", s.NotifyURL("/"), false},
		{"redirected, by default", "", elsewhere, false},
		{"redirected, allowed", "egress {\nallow 127.0.0.1\n}", elsewhere, true},
	} {
		got := post(t, newGateway(t, tt.block, ""), "/notify", typeJSON, `{"body":"x","urls":["`+tt.url+`"]}`)
		if want := map[bool]int{true: 200, false: 424}[tt.arrives]; got.status != want {
			t.Errorf("%s: status %d, want %d: %s", tt.name, got.status, want, got.body)
		}
		if n := len(s.Take()); (n == 1) != tt.arrives {
			t.Errorf("%s: %d messages arrived", tt.name, n)
		}
	}
	operator := newGateway(t, "key k {\nurl "+s.NotifyURL("/")+"\n}\ndefault_urls "+s.NotifyURL("/")+"\negress {\ndeny 127.0.0.0/8\n}", "")
	for _, path := range []string{"/notify", "/notify/k"} {
		if got := post(t, operator, path, typeForm, "body=x"); got.status != 200 {
			t.Errorf("a URL of the operator: %s: status %d: %s", path, got.status, got.body)
		}
	}
}

// TestPlaceholdersOfClients checks that placeholders in a client's request are
// not replaced.
func TestPlaceholdersOfClients(t *testing.T) {
	t.Setenv("NOTIFY_TEST_SECRET", "secretsecret")
	s := gatewaytest.NewStation(t)
	h := newGateway(t, open+"key k {\nurl "+s.NotifyURL("/k")+"\n}", "")
	const p = "{env.NOTIFY_TEST_SECRET}"
	for _, path := range []string{"/notify", "/notify/k"} {
		got := post(t, h, path, typeJSON, `{"body":"`+p+`","title":"`+p+`","urls":"`+s.NotifyURL("/"+p)+`"}`)
		if got.status != 200 {
			t.Fatalf("%s: status %d: %s", path, got.status, got.body)
		}
		a := s.One(t)
		if a.Message != p || a.Title != p || strings.Contains(a.Path, "secret") {
			t.Errorf("%s: %+v", path, a)
		}
	}
}

// TestServeAfterCleanup checks that a request can outlive its configuration.
func TestServeAfterCleanup(t *testing.T) {
	s := gatewaytest.NewStation(t)
	h := newGateway(t, open+"key k {\nurl "+s.NotifyURL("/k")+"\n}", "")
	for range 2 { // a second time does nothing
		if err := h.Cleanup(); err != nil {
			t.Fatal(err)
		}
	}
	for path, arrives := range map[string]string{"/notify/k": "k", "/notify": "mine"} {
		if got := post(t, h, path, typeForm, "body=x&urls="+s.NotifyURL("/mine")); got.status != 200 {
			t.Errorf("%s: status %d: %s", path, got.status, got.body)
		}
		if paths := s.Paths(); paths != arrives {
			t.Errorf("%s: messages at %q", path, paths)
		}
	}
}

// TestAttachments checks that files are delivered, both those in the request
// and those that the gateway fetches.
func TestAttachments(t *testing.T) {
	s := gatewaytest.NewStation(t)
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "fetched")
	}))
	defer files.Close()
	h := newGateway(t, open+"default_urls "+s.NotifyURL("/"), "")
	form := "--x\r\nContent-Disposition: form-data; name=attach; filename=a.txt\r\n\r\n1\r\n" +
		"--x\r\nContent-Disposition: form-data; name=attach\r\n\r\n" + files.URL + "/f.txt\r\n--x--\r\n"
	if got := post(t, h, "/notify", "multipart/form-data; boundary=x", form); got.status != 200 {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	if got, want := s.One(t).Files(), "f.txt text/plain fetched|a.txt text/plain 1"; got != want {
		t.Errorf("files %q, want %q", got, want)
	}
}

// TestAttachmentsAreFetchedLast checks that nothing is fetched for an invalid
// request.
func TestAttachmentsAreFetchedLast(t *testing.T) {
	fetches := 0
	files := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fetches++ }))
	defer files.Close()
	h := newGateway(t, open+"key k {\nurl json://127.0.0.1:1 a\n}", "")
	attach := `"attach":"` + files.URL + `/f"`
	for path, body := range map[string]string{
		"/notify/k":     `{"body":"x","type":"bogus",` + attach + `}`,
		"/notify/k/":    `{"body":"x","tag":"z",` + attach + `}`,
		"/notify/other": `{"body":"x",` + attach + `}`,
		"/notify":       `{"body":"x","urls":"nonsense",` + attach + `}`,
		"/notify/":      `{"body":"x",` + attach + `}`,
	} {
		if got := post(t, h, path, typeJSON, body); got.status < 400 {
			t.Errorf("%s: status %d", path, got.status)
		}
	}
	if fetches != 0 {
		t.Errorf("%d attachments were fetched", fetches)
	}
}

// TestTemporaryFilesAreRemoved checks that no file is left after the response.
func TestTemporaryFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := gatewaytest.NewStation(t)
	h := newGateway(t, "default_urls "+s.NotifyURL("/"), "")
	form := "--x\r\nContent-Disposition: form-data; name=attach; filename=a.bin\r\n\r\n" + strings.Repeat("x", 2<<20) + "\r\n--x--\r\n"
	for path, want := range map[string]int{"/notify": 200, "/notify?type=bogus": 400} {
		if got := post(t, h, path, "multipart/form-data; boundary=x", form); got.status != want {
			t.Errorf("%s: status %d: %s", path, got.status, got.body)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestClientDisconnectsWhileFetching checks that nothing is sent if the client
// disconnects while its attachments are fetched.
func TestClientDisconnectsWhileFetching(t *testing.T) {
	s, files := gatewaytest.NewStation(t), httptest.NewServer(http.NotFoundHandler())
	defer files.Close()
	h := newGateway(t, open+"default_urls "+s.NotifyURL("/"), "")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("the client went away"))
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/notify", strings.NewReader(`{"body":"x","attach":"`+files.URL+`/f.txt"}`))
	r.Header.Set("Content-Type", typeJSON)
	if got := do(t, h, r); got.status != 400 {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	if n := len(s.Take()); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

// failingBody is a body that returns an error while it is read.
type failingBody struct{ err error }

func (b failingBody) Read([]byte) (int, error) { return 0, b.err }
func (b failingBody) Close() error             { return nil }

// TestLimitUpstream checks that the limit of a request_body directive before
// this handler has its own error.
func TestLimitUpstream(t *testing.T) {
	h := newGateway(t, "", "")
	limit := &http.MaxBytesError{Limit: 1}
	for _, err := range []error{limit, caddyhttp.Error(http.StatusRequestEntityTooLarge, limit)} {
		for _, contentType := range []string{typeJSON, typeForm, "multipart/form-data; boundary=x"} {
			r := httptest.NewRequest(http.MethodPost, "/notify", failingBody{err})
			r.ContentLength = 10
			r.Header.Set("Content-Type", contentType)
			if got := do(t, h, r); got.status != 413 {
				t.Errorf("%s, %T: status %d: %s", contentType, err, got.status, got.body)
			}
		}
	}
}
