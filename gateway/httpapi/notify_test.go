package httpapi_test

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

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSite(t, site.Options{DefaultURLs: gatewaytest.URLs(s.NotifyURL("/?format=html"))})
	for _, tt := range []struct{ target, body, want string }{
		{"/notify", `{"body":"<b>&"}`, "&lt;b&gt;&amp;"},
		{"/notify", `{"body":"<b>x</b>","format":"HTML"}`, "<b>x</b>"},
		{"/notify?format=html", `{"body":"<b>x</b>"}`, "<b>x</b>"},
		{"/notify", `{"body":"**x**","format":"markdown"}`, "<p><strong>x</strong></p>"},
	} {
		if got := g.Post(tt.target, gatewaytest.TypeJSON, tt.body); got.Status != 200 {
			t.Errorf("%s: %s", tt.body, got.Body)
			continue
		}
		if got := strings.TrimSpace(s.One(t).Message); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.target, tt.body, got, tt.want)
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSite(t, site.Options{Egress: gatewaytest.Loopback()})
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
		"string":                       {gatewaytest.TypeJSON, object(a), 200, "a"},
		"comma":                        {gatewaytest.TypeJSON, object(a + "," + b), 200, "a b"},
		"comma and space":              {gatewaytest.TypeJSON, object(a + " , " + b + ","), 200, "a b"},
		"lines":                        {gatewaytest.TypeJSON, object(a + "\n" + b), 200, "a b"},
		"a comma within":               {gatewaytest.TypeJSON, object(a + ",x"), 200, "a,x"},
		"array":                        {gatewaytest.TypeJSON, object([]string{a, b}), 200, "a b"},
		"array with empty texts":       {gatewaytest.TypeJSON, object([]string{"", a, " "}), 200, "a"},
		"form":                         {gatewaytest.TypeForm, "body=x&urls=" + a, 200, "a"},
		"form repeated":                {gatewaytest.TypeForm, "body=x&urls=" + a + "&urls=" + b, 200, "a b"},
		"one is unusable":              {gatewaytest.TypeJSON, object([]string{a, "nonsense://x", b}), 424, "a b"},
		"none is usable":               {gatewaytest.TypeJSON, object([]string{"nonsense://x"}), 400, ""},
		"no URL at all":                {gatewaytest.TypeJSON, object("nonsense"), 400, ""},
		"none given":                   {gatewaytest.TypeJSON, object(nil), 400, ""},
		"an empty list":                {gatewaytest.TypeJSON, object([]string{}), 400, ""},
		"too many":                     {gatewaytest.TypeJSON, object(strings.Repeat(a+" ", 1001)), 400, ""},
		"a tag means nothing":          {gatewaytest.TypeJSON, `{"body":"x","tag":["$",["-"]],"urls":"` + a + `"}`, 200, "a"},
		"a destination that refuses":   {gatewaytest.TypeJSON, object([]string{a, s.NotifyURL("/refuse")}), 424, "a refuse"},
		"an optional one that refuses": {gatewaytest.TypeJSON, object([]string{a, s.NotifyURL("/refuse?optional=yes")}), 200, "a refuse"},
	} {
		got := g.Post("/notify", tt.contentType, tt.body)
		if got.Status != tt.status {
			t.Errorf("%s: status %d, want %d: %s", name, got.Status, tt.status, got.Body)
		}
		if paths := s.Paths(); paths != tt.arrives {
			t.Errorf("%s: messages at %q, want %q", name, paths, tt.arrives)
		}
	}
}

func TestDefaultURLs(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSite(t, site.Options{Egress: gatewaytest.Loopback(), DefaultURLs: gatewaytest.URLs(s.NotifyURL("/one"), s.NotifyURL("/two"))})
	for _, tt := range []struct {
		body, arrives string
		status        int
	}{
		{`{"body":"x"}`, "one two", 200},
		{`{"body":"x","urls":""}`, "one two", 200},
		{`{"body":"x","urls":"` + s.NotifyURL("/mine") + `"}`, "mine", 200},
		{`{"body":"x","urls":"nonsense://x"}`, "", 400},
	} {
		if got := g.Post("/notify", gatewaytest.TypeJSON, tt.body); got.Status != tt.status {
			t.Errorf("%s: status %d: %s", tt.body, got.Status, got.Body)
		}
		if paths := s.Paths(); paths != tt.arrives {
			t.Errorf("%s: messages at %q, want %q", tt.body, paths, tt.arrives)
		}
	}
}

func TestStatelessOff(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSite(t, site.Options{Stateless: new(false), Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}})
	for path, want := range map[string]int{"/notify": 403, "/notify/": 403, "/notify/ops": 200} {
		if got := g.Post(path, gatewaytest.TypeForm, "body=x&urls="+s.NotifyURL("/x")); got.Status != want {
			t.Errorf("%s: status %d, want %d", path, got.Status, want)
		}
	}
	if paths := s.Paths(); paths != "ops" {
		t.Errorf("messages at %q", paths)
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	urls := []string{s.NotifyURL("/a") + " a", s.NotifyURL("/ab") + " A b", s.NotifyURL("/always") + " c Always", s.NotifyURL("/none")}
	tagged := func(defaultTag string, urls ...string) *gatewaytest.Gateway {
		k := gatewaytest.Key("k", urls...)
		k.DefaultTag = defaultTag
		return newSite(t, site.Options{Keys: []site.KeyOptions{k}})
	}
	gateways := map[string]*gatewaytest.Gateway{
		"no default":   tagged("", urls...),
		"a,c":          tagged("a,c", urls...),
		"untagged":     tagged("untagged", urls...),
		"never always": tagged("", s.NotifyURL("/a")+" a"),
	}
	for _, tt := range []struct {
		gateway, query, contentType, body string
		arrives                           string
	}{
		{"no default", "", gatewaytest.TypeForm, "body=x", "a ab always none"},
		{"no default", "", gatewaytest.TypeForm, "body=x&tag=", "a ab always none"},
		{"no default", "", gatewaytest.TypeForm, "body=x&tag=,", "a ab always none"},
		{"no default", "", gatewaytest.TypeForm, "body=x&tag=a", "a ab always"},
		{"no default", "", gatewaytest.TypeForm, "body=x&tags=A", "a ab always"},
		{"no default", "", gatewaytest.TypeForm, "body=x&tag=&tags=a", "a ab always"},
		{"no default", "", gatewaytest.TypeForm, "body=x&tag=b&tags=a", "ab always"},
		{"no default", "", gatewaytest.TypeForm, "body=x&tag=a+b", "ab always"},
		{"no default", "", gatewaytest.TypeForm, "body=x&tag=a%2Bb", "ab always"},
		{"no default", "", gatewaytest.TypeForm, "body=x&tag=a%26b", "ab always"},
		{"no default", "", gatewaytest.TypeForm, "body=x&tag=b&tag=c", "ab always"},
		{"no default", "", gatewaytest.TypeForm, "body=x&tag=a&tag=b", "a ab always"},
		{"no default", "", gatewaytest.TypeForm, "body=x&tag=all", "a ab always none"},
		{"no default", "", gatewaytest.TypeForm, "body=x&tag=z", "always"},
		{"no default", "?tag=b", gatewaytest.TypeForm, "body=x", "ab always"},
		{"no default", "?tags=b", gatewaytest.TypeForm, "body=x", "ab always"},
		{"no default", "?tag=b", gatewaytest.TypeForm, "body=x&tag=a", "a ab always"},
		{"no default", "?tag=a&tag=b", gatewaytest.TypeForm, "body=x", "a ab always"},
		{"no default", "", gatewaytest.TypeJSON, `{"body":"x","tag":"a|b"}`, "a ab always"},
		{"no default", "", gatewaytest.TypeJSON, `{"body":"x","tag":["a","b"]}`, "a ab always"},
		{"no default", "", gatewaytest.TypeJSON, `{"body":"x","tag":[["a","b"]]}`, "ab always"},
		{"no default", "", gatewaytest.TypeJSON, `{"body":"x","tags":["a b"]}`, "ab always"},
		{"no default", "?tag=b", gatewaytest.TypeJSON, `{"body":"x","tag":null}`, "ab always"},
		{"a,c", "", gatewaytest.TypeForm, "body=x", "a ab always"},
		{"a,c", "", gatewaytest.TypeForm, "body=x&tag=b", "ab always"},
		{"untagged", "", gatewaytest.TypeForm, "body=x", "none"},
		{"untagged", "", gatewaytest.TypeForm, "body=x&tag=all", "a ab always none"},
		{"never always", "", gatewaytest.TypeForm, "body=x&tag=z", ""},
	} {
		got := gateways[tt.gateway].Post("/notify/k"+tt.query, tt.contentType, tt.body)
		if paths := s.Paths(); paths != tt.arrives {
			t.Errorf("%s %s %s: messages at %q, want %q", tt.gateway, tt.query, tt.body, paths, tt.arrives)
		}
		want := 200
		if tt.arrives == "" {
			want = 424
		}
		if got.Status != want {
			t.Errorf("%s %s %s: status %d, want %d: %s", tt.gateway, tt.query, tt.body, got.Status, want, got.Body)
		}
	}
	if got := gateways["never always"].Post("/notify/k", gatewaytest.TypeForm, "body=x&tag=z"); !strings.Contains(got.Body, "tag") {
		t.Errorf("the error does not name the tag: %s", got.Body)
	}
}

func TestHops(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSite(t, site.Options{DefaultURLs: gatewaytest.URLs(s.NotifyURL("/"))})
	for value, want := range map[string]int{
		"0": 200, "1": 200, "01": 200, " 1 ": 200,
		"2": 508, "99999999999999999999999": 508,
		"": 400, "-1": 400, "+1": 400, "1.0": 400, "x": 400,
	} {
		r := httptest.NewRequest(http.MethodPost, "/notify", strings.NewReader("body=x"))
		r.Header.Set("Content-Type", gatewaytest.TypeForm)
		r.Header.Set("X-Apprise-Recursion-Count", value)
		if got := g.Do(r); got.Status != want {
			t.Errorf("%q: status %d, want %d", value, got.Status, want)
		}
		if sent := len(s.Take()); (sent == 1) != (want == 200) {
			t.Errorf("%q: %d messages", value, sent)
		}
	}
}

// TestHopsOfAnyService checks, for every service, that gateways which send to one another stop.
// Each gateway is the destination of the one before, and a client has sent the first URL.
func TestHopsOfAnyService(t *testing.T) {
	t.Parallel()
	var address string
	seen := 0
	next := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen++
		g := newSite(t, site.Options{Egress: gatewaytest.Loopback()})
		form := "body=x&urls=form://" + address + "/?%252BUser-Agent=other"
		out := httptest.NewRequest(http.MethodPost, "/notify", strings.NewReader(form))
		out.Header = http.Header{"Content-Type": {gatewaytest.TypeForm}, "User-Agent": r.Header["User-Agent"]}
		got := g.Do(out)
		w.WriteHeader(got.Status)
	}))
	defer next.Close()
	address = strings.TrimPrefix(next.URL, "http://")
	resp, err := http.Post(next.URL, gatewaytest.TypeForm, nil)
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
	t.Parallel()
	seen := make(chan string, 1)
	peer := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("X-Apprise-Recursion-Count")
	}))
	defer peer.Close()
	g := newSite(t, site.Options{Keys: []site.KeyOptions{gatewaytest.Key("k", "apprise://"+strings.TrimPrefix(peer.URL, "http://")+"/key")}})
	r := httptest.NewRequest(http.MethodPost, "/notify/k", strings.NewReader("body=x"))
	r.Header.Set("Content-Type", gatewaytest.TypeForm)
	r.Header.Set("X-Apprise-Recursion-Count", "1")
	if got := g.Do(r); got.Status != 200 {
		t.Fatalf("status %d: %s", got.Status, got.Body)
	}
	if n := <-seen; n != "2" {
		t.Errorf("the next gateway got %q, want 2", n)
	}
}

// TestEgress checks that URLs of clients do not reach private networks, even by
// redirects, unless egress allows it, and that URLs of the operator do.
func TestEgress(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	redirect := httptest.NewServer(http.RedirectHandler(s.URL+"/redirected", http.StatusTemporaryRedirect))
	defer redirect.Close()
	elsewhere := "json://" + strings.TrimPrefix(redirect.URL, "http://")
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	for _, tt := range []struct {
		name        string
		allow, deny []string
		url         string
		arrives     bool
	}{
		{"by default", nil, nil, s.NotifyURL("/"), false},
		{"localhost by default", nil, nil, "json://localhost" + port, false},
		{"a number by default", nil, nil, "json://2130706433" + port, false},
		{"IPv4 in IPv6 by default", nil, nil, "json://[::ffff:127.0.0.1]" + port, false},
		{"allowed", []string{"127.0.0.1"}, nil, s.NotifyURL("/"), true},
		{"all allowed", []string{"all"}, nil, s.NotifyURL("/"), true},
		{"private ranges allowed", []string{"private_ranges"}, nil, s.NotifyURL("/"), true},
		{"another allowed", []string{"10.0.0.0/8"}, nil, s.NotifyURL("/"), false},
		{"denied", []string{"all"}, []string{"127.0.0.0/8"}, s.NotifyURL("/"), false},
		{"redirected, by default", nil, nil, elsewhere, false},
		{"redirected, allowed", []string{"127.0.0.1"}, nil, elsewhere, true},
	} {
		policy, err := egress.NewPolicy(tt.allow, tt.deny)
		if err != nil {
			t.Fatal(err)
		}
		o := site.Options{Egress: policy}
		if len(tt.allow)+len(tt.deny) == 0 {
			o.Egress = nil
		}
		got := newSite(t, o).Post("/notify", gatewaytest.TypeJSON, `{"body":"x","urls":["`+tt.url+`"]}`)
		if want := map[bool]int{true: 200, false: 424}[tt.arrives]; got.Status != want {
			t.Errorf("%s: status %d, want %d: %s", tt.name, got.Status, want, got.Body)
		}
		if n := len(s.Take()); (n == 1) != tt.arrives {
			t.Errorf("%s: %d messages arrived", tt.name, n)
		}
	}
	policy, err := egress.NewPolicy(nil, []string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	operator := newSite(t, site.Options{
		Keys:        []site.KeyOptions{gatewaytest.Key("k", s.NotifyURL("/"))},
		DefaultURLs: gatewaytest.URLs(s.NotifyURL("/")), Egress: policy,
	})
	for _, path := range []string{"/notify", "/notify/k"} {
		if got := operator.Post(path, gatewaytest.TypeForm, "body=x"); got.Status != 200 {
			t.Errorf("a URL of the operator: %s: status %d: %s", path, got.Status, got.Body)
		}
	}
}

// TestAttachments checks that files are delivered: parts of the request and files that the gateway
// fetches.
func TestAttachments(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "fetched")
	}))
	defer files.Close()
	g := newSite(t, site.Options{Egress: gatewaytest.Loopback(), DefaultURLs: gatewaytest.URLs(s.NotifyURL("/"))})
	form := "--x\r\nContent-Disposition: form-data; name=attach; filename=a.txt\r\n\r\n1\r\n" +
		"--x\r\nContent-Disposition: form-data; name=attach\r\n\r\n" + files.URL + "/f.txt\r\n--x--\r\n"
	if got := g.Post("/notify", "multipart/form-data; boundary=x", form); got.Status != 200 {
		t.Fatalf("status %d: %s", got.Status, got.Body)
	}
	if got, want := s.One(t).Files(), "f.txt text/plain fetched|a.txt text/plain 1"; got != want {
		t.Errorf("files %q, want %q", got, want)
	}
}

// TestAttachmentsAreFetchedLast checks that nothing is fetched for an invalid
// request.
func TestAttachmentsAreFetchedLast(t *testing.T) {
	t.Parallel()
	fetches := 0
	files := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fetches++ }))
	defer files.Close()
	g := newSite(t, site.Options{Egress: gatewaytest.Loopback(), Keys: []site.KeyOptions{gatewaytest.Key("k", "json://127.0.0.1:1 a")}})
	attach := `"attach":"` + files.URL + `/f"`
	for path, body := range map[string]string{
		"/notify/k":     `{"body":"x","type":"bogus",` + attach + `}`,
		"/notify/k/":    `{"body":"x","tag":"z",` + attach + `}`,
		"/notify/other": `{"body":"x",` + attach + `}`,
		"/notify":       `{"body":"x","urls":"nonsense",` + attach + `}`,
		"/notify/":      `{"body":"x",` + attach + `}`,
	} {
		if got := g.Post(path, gatewaytest.TypeJSON, body); got.Status < 400 {
			t.Errorf("%s: status %d", path, got.Status)
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
	g := newSite(t, site.Options{DefaultURLs: gatewaytest.URLs(s.NotifyURL("/"))})
	form := "--x\r\nContent-Disposition: form-data; name=attach; filename=a.bin\r\n\r\n" + strings.Repeat("x", 2<<20) + "\r\n--x--\r\n"
	for path, want := range map[string]int{"/notify": 200, "/notify?type=bogus": 400} {
		if got := g.Post(path, "multipart/form-data; boundary=x", form); got.Status != want {
			t.Errorf("%s: status %d: %s", path, got.Status, got.Body)
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
	t.Parallel()
	s, files := gatewaytest.NewStation(t), httptest.NewServer(http.NotFoundHandler())
	defer files.Close()
	g := newSite(t, site.Options{Egress: gatewaytest.Loopback(), DefaultURLs: gatewaytest.URLs(s.NotifyURL("/"))})
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("the client went away"))
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/notify", strings.NewReader(`{"body":"x","attach":"`+files.URL+`/f.txt"}`))
	r.Header.Set("Content-Type", gatewaytest.TypeJSON)
	if got := g.Do(r); got.Status != 400 {
		t.Errorf("status %d: %s", got.Status, got.Body)
	}
	if n := len(s.Take()); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

// TestUntagged checks that default_tag untagged refuses a message without a tag if all URLs of the
// key have tags, as Apprise does, and that it says so.
func TestUntagged(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	all, some := gatewaytest.Key("all", s.NotifyURL("/a")+" a"), gatewaytest.Key("some", s.NotifyURL("/a")+" a", s.NotifyURL("/plain"))
	all.DefaultTag, some.DefaultTag = "untagged", "untagged"
	g := siteWith(t, all, some)
	for _, tt := range []struct {
		target string
		status int
		want   string
	}{
		{"/notify/all", http.StatusFailedDependency, ""},
		{"/notify/all?tag=a", http.StatusOK, "a"},
		{"/notify/some", http.StatusOK, "plain"},
	} {
		got := g.PostForm(tt.target, "body=x")
		if got.Status != tt.status || s.Paths() != tt.want || tt.status != http.StatusOK &&
			!strings.Contains(got.Body, "the message has no tag") {
			t.Errorf("%s: %d %s", tt.target, got.Status, got.Body)
		}
	}
}
