package httpapi_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// decoration is additional content of a signal.
type decoration struct {
	name, contentType string
	body              string
	header            []string
	endless           bool   // the connection ends before the body does
	quiet             bool   // there is nothing to warn about
	says              string // a part of the text of a beat that has failed
}

// fields returns the fields of a signal as JSON, and as an encoded form.
func fields(pairs ...string) (object, form string) {
	values := url.Values{}
	var members []string
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
		members = append(members, `"`+pairs[i]+`":"`+pairs[i+1]+`"`)
	}
	return strings.Join(members, ","), values.Encode()
}

// decorations returns bodies with the fields of a signal. max is the size that is kept.
func decorations(max int, pairs ...string) []decoration {
	object, form := fields(pairs...)
	parts := ""
	for i := 0; i < len(pairs); i += 2 {
		parts += "--b\r\nContent-Disposition: form-data; name=\"" + pairs[i] + "\"\r\n\r\n" + pairs[i+1] + "\r\n"
	}
	long := strings.Repeat("0123456789", max/10+1000)
	file := "--b\r\nContent-Disposition: form-data; name=\"log\"; filename=\"big.log\"\r\n\r\n"
	const multipart, payload = "multipart/form-data; boundary=b",
		"--b\r\nContent-Disposition: form-data; name=\"payload\"\r\nContent-Type: application/json\r\n\r\n"
	return []decoration{
		{name: "JSON", contentType: "application/json", body: "{" + object + "}", quiet: true},
		{name: "JSON with a byte order mark", contentType: "application/json", body: "\xEF\xBB\xBF{" + object + "}", quiet: true},
		{
			name: "JSON in UTF-16", contentType: "application/json; charset=utf-16",
			body: "\xFF\xFE" + strings.Join(strings.Split("{"+object+"}", ""), "\x00") + "\x00", quiet: true,
		},
		{name: "JSON and something that is not UTF-8", contentType: "application/json", body: "{" + object + ",\"x\":\"K\xfcche\"}"},
		{name: "JSON that ends early", contentType: "application/json", body: "{" + object + `,"x":{`},
		{name: "JSON and more", contentType: "application/json", body: "{" + object + `} x`, quiet: true},
		{name: "JSON that is too large", contentType: "application/json", body: "{" + object + `,"x":"` + long + `"}`},
		{name: "JSON as a form", contentType: gatewaytest.TypeForm, body: "{" + object + "}", quiet: true},
		{name: "JSON without a type", body: "{" + object + "}", quiet: true},
		{name: "JSON of another type", contentType: "application/x-unknown", body: "{" + object + "}", quiet: true},
		{name: "form", contentType: gatewaytest.TypeForm, body: form, quiet: true},
		{name: "form that is not UTF-8", contentType: gatewaytest.TypeForm, body: form + "&x=%FC\xfc"},
		{name: "form that is too large", contentType: gatewaytest.TypeForm, body: form + "&x=" + long},
		{name: "form with broken escapes", contentType: gatewaytest.TypeForm, body: form + "&%zz=%", quiet: true},
		{name: "form of which only a part arrives", contentType: gatewaytest.TypeForm, body: form + "&x=y", endless: true},
		{name: "multipart", contentType: multipart, body: parts + "--b--\r\n", quiet: true},
		{name: "multipart that ends early", contentType: multipart, body: parts + file + "0123"},
		{
			name: "multipart that is not UTF-8", contentType: multipart,
			body: parts + "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n\xfc\r\n--b--\r\n",
		},
		{
			name: "multipart with a field that is too large", contentType: multipart,
			body: "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n" + long + "\r\n" + parts + "--b--\r\n",
		},
		{
			name: "multipart with a file that is too large", contentType: multipart, body: parts + file + strings.Repeat(long, 5) + "\r\n--b--\r\n",
			says: "Left out: big.log",
		},
		{name: "multipart with another boundary", contentType: "multipart/form-data; boundary=other", body: parts + "--b--\r\n"},
		{name: "multipart without a boundary in its header", contentType: "multipart/form-data", body: "\r\n" + parts + "--b--\r\n"},
		{name: "payload that ends early", contentType: multipart, body: payload + "{" + object + `,"x":{` + "\r\n--b--\r\n"},
		{name: "payload that is too large", contentType: multipart, body: payload + "{" + object + `,"x":"` + long + "\"}\r\n--b--\r\n"},
		{name: "payload of which only a part arrives", contentType: multipart, body: payload + "{" + object + `,"x":"`},
		{name: "multipart with a header that is broken", contentType: multipart, body: parts + "--b\r\nx\r\n\r\ny\r\n--b--\r\n"},
	}
}

// texts returns bodies without the fields of a signal.
func texts(max int) []decoration {
	long := strings.Repeat("0123456789", max/10+1000)
	return []decoration{
		{name: "none", quiet: true},
		{name: "text", contentType: "text/plain", body: "disk = full & tape missing", quiet: true, says: "disk = full & tape missing"},
		{name: "text in Latin-1", contentType: "text/plain", body: "K\xfcche", says: "Küche"},
		{name: "text in a declared charset", contentType: "text/plain; charset=iso-8859-2", body: "\xb1", quiet: true, says: "ą"},
		{name: "text in another charset", contentType: "text/plain; charset=klingon", body: "full \xb1", says: "full"},
		{name: "text that is too large", contentType: "text/plain", body: long, says: "0123456789"},
		{name: "text of which only a part arrives", contentType: "text/plain", body: "half of", endless: true, says: "half of"},
		{name: "log as a form", contentType: gatewaytest.TypeForm, body: "a=b\nerror: x=y & more", quiet: true, says: "error: x=y & more"},
		{name: "log as a form in Latin-1", contentType: gatewaytest.TypeForm, body: "K\xfcche=kalt", says: "Küche=kalt"},
		{name: "text without a type", body: "disk full", quiet: true, says: "disk full"},
		{name: "text of another type", contentType: "application/x-log", body: "disk full", says: "disk full"},
		{name: "text of a malformed type", contentType: "text/;;", body: "disk full", says: "disk full"},
		{name: "no text", contentType: "image/png", body: "\x89PNG\r\n\x1a\n\x00\x00\x00\xff\xfe\xfd"},
		{name: "JSON that is none", contentType: "application/json", body: "disk full", says: "disk full"},
		{name: "JSON that is no object", contentType: "application/json", body: `["disk full"]`, says: "disk full"},
		{name: "XML that is none", contentType: "application/xml", body: "disk full", says: "disk full"},
		{name: "multipart without a boundary", contentType: "multipart/form-data", body: "disk full", says: "disk full"},
		{name: "multipart without its boundary", contentType: "multipart/form-data; boundary=b", body: "disk full\n--c\r\n", says: "disk full"},
		{name: "multipart without its boundary, in Latin-1", contentType: "multipart/form-data; boundary=b", body: "K\xfcche", says: "Küche"},
		{
			name: "multipart without its boundary that is too large", contentType: "multipart/form-data; boundary=b", body: long,
			says: "0123456789",
		},
		{
			name: "multipart without its boundary of which only a part arrives", contentType: "multipart/form-data; boundary=b", body: "half of",
			endless: true, says: "half of",
		},
		{name: "multipart without parts", contentType: "multipart/form-data; boundary=b", body: "--b--\r\n", quiet: true},
		{name: "compressed", contentType: "text/plain", body: "x", header: []string{"Content-Encoding", "gzip"}},
		{name: "HTML", contentType: "text/html", body: "<b>disk full</b>", quiet: true, says: "disk full"},
	}
}

// request returns a signal with the decoration. If GET is the method, the body goes with it.
func (d *decoration) request(method, target string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(d.body))
	if d.endless {
		r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(d.body), cutReader{})), int64(len(d.body)+100)
	}
	if d.contentType != "" {
		r.Header.Set("Content-Type", d.contentType)
	}
	for i := 0; i < len(d.header); i += 2 {
		r.Header.Set(d.header[i], d.header[i+1])
	}
	r.Header.Set("Accept", "application/json")
	return r
}

// cutReader is the rest of a body that does not arrive.
type cutReader struct{}

func (cutReader) Read([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

// wantWarning checks that an answer warns if it has to.
func (d *decoration) wantWarning(t *testing.T, body string) {
	t.Helper()
	warns := false
	for _, words := range []string{" left out", "is read as", "is read with", "ends too early", "unknown"} {
		warns = warns || strings.Contains(body, words)
	}
	if warns == d.quiet {
		t.Errorf("%s: it warns: %t; %s", d.name, warns, body)
	}
}

// TestSignals checks that no beat, acknowledgement or answer is refused for its additional content,
// and that the answer warns about the parts that cannot be read.
func TestSignals(t *testing.T) {
	t.Parallel()
	const maxBody = 20_000
	dir := t.TempDir()
	p := gatewaytest.NewPager(t, http.StatusOK)
	gatewaytest.InBubble(t, func(t *testing.T) {
		k := incidentKey("k", p)
		k.Rules, k.Expects = nil, []site.BeatOptions{{Expect: rules.Expect{Name: "nightly", Every: 24 * time.Hour, Grace: time.Hour}}}
		o := gatewaytest.Options{
			Global: site.Options{Keys: []site.KeyOptions{k, incidentKey("open", p)}, PublicURL: gatewaytest.PublicURL},
			Site:   site.Options{Managers: gatewaytest.Everybody()}, Queue: &outbox.Settings{Path: dir},
		}
		o.Site.MaxBody, o.Site.Files = maxBody, &site.FileOptions{MaxSize: 2 * maxBody}
		g := gatewaytest.New(t, o)
		all := append(decorations(maxBody, "title", "backup"), texts(maxBody)...)
		all = append(all, decoration{
			name: "fields of a wrong type", contentType: "application/json",
			body: `{"title":5,"body":[],"format":{},"attach":7,"type":true}`,
		})
		all = append(all, decoration{
			name: "values of a wrong form", contentType: "application/json",
			body: `{"format":"rtf","attach":[{"base64":"%%%"},"ftp://x"],"type":"kaputt","body":"x"}`, says: "Left out: attach",
		})
		for _, d := range all {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				for query, want := range map[string]string{
					"": "has come", "&exit=0": "has come", "&exit=3": "has failed with the exit code 3",
					"&type=failure": "has failed", "&state=start": "has started",
				} {
					got := g.Do(d.request(method, "/notify/k?beat=nightly"+query))
					if got.Status != http.StatusOK || !strings.Contains(got.Body, want) {
						t.Errorf("beat %q with %s: %d %s", query, d.name, got.Status, got.Body)
					}
					d.wantWarning(t, got.Body)
				}
			}
			g.Do(d.request(http.MethodPost, "/notify/k?beat=nightly&exit=3"))
			time.Sleep(time.Second)
			if told := p.Told(); !strings.Contains(told[len(told)-1], d.says) || !strings.HasPrefix(told[len(told)-1], "failure: ") {
				t.Errorf("%s: told %q, want %q", d.name, told[len(told)-1], d.says)
			}
		}
		for _, d := range decorations(maxBody, "type", "failure", "body", "x") {
			if got := g.Do(d.request(http.MethodPost, "/notify/k?beat=nightly")); got.Status != http.StatusOK ||
				!strings.Contains(got.Body, "has failed") {
				t.Errorf("a failure with %s: %d %s", d.name, got.Status, got.Body)
			}
		}
		long := strings.Repeat("x", 2*maxBody)
		for name, d := range map[string]decoration{
			"JSON": {contentType: "application/json", body: `{"body":"` + long + `","type":"failure"}`},
			"form": {contentType: gatewaytest.TypeForm, body: "body=" + long + "&type=failure"},
		} {
			if got := g.Do(d.request(http.MethodPost, "/notify/k?beat=nightly")); got.Status != http.StatusOK ||
				!strings.Contains(got.Body, "has failed") {
				t.Errorf("a failure at the end of a long %s: %d %s", name, got.Status, got.Body)
			}
		}
		for _, d := range append(decorations(4<<10, "do", "resolve", "by", "Eve"), texts(4<<10)...) {
			g.PostForm("/notify/open", gatewaytest.AlertForm("failure", "db1 is down", d.name))
			x := g.ListIncidents("open")[0]
			got := g.Do(d.request(http.MethodPost, site.RouteIncidents+"/"+x.ID))
			want := `"state":"acknowledged"`
			if strings.Contains(d.body, "resolve") || strings.Contains(d.body, "r\x00e\x00s") {
				want = `"resolved_by":"Eve (typed)"`
			}
			if got.Status != http.StatusOK || !strings.Contains(got.Body, want) {
				t.Errorf("incident with %s: %d %s, want %s", d.name, got.Status, got.Body, want)
			}
			d.wantWarning(t, got.Body)
		}
	})
}

// TestSignalsOfPeople is [TestSignals] for the answers to questions and the receipts of devices.
func TestSignalsOfPeople(t *testing.T) {
	t.Parallel()
	s, push := gatewaytest.NewStation(t), gatewaytest.NewPushService(t)
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{
			Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/a")), {Name: "k"}}, PublicURL: gatewaytest.PublicURL,
			Egress: gatewaytest.Loopback(), Push: &site.Push{Contact: "mailto:ops@example.com", Who: "open", Max: 20, Hosts: []string{"127.0.0.1"}},
		},
		Site: site.Options{Managers: gatewaytest.Everybody()}, Queue: &outbox.Settings{},
	})
	all := append(decorations(16<<10, "answer", "yes", "by", "Eve"),
		decoration{name: "text", contentType: "text/plain", body: "yes\n", quiet: true})
	for _, d := range append(all, decoration{name: "text as a form", contentType: gatewaytest.TypeForm, body: "yes", quiet: true}) {
		g.PostForm("/notify/ops", "title=Deploy&body=x&ask=yes&ask=no")
		link := strings.TrimPrefix(s.Arrives(t, "Deploy").AnswerURL, gatewaytest.PublicURL)
		s.Take()
		got := g.Do(d.request(http.MethodPost, link))
		if got.Status != http.StatusOK || !strings.Contains(got.Body, `"answer":"yes"`) {
			t.Errorf("answer with %s: %d %s", d.name, got.Status, got.Body)
		}
		d.wantWarning(t, got.Body)
	}
	jo := push.Subscribe(t, g, "jo")
	g.PostForm("/notify/k", "body=b")
	receipt := push.Got()[0].Payload.Receipt
	for _, d := range append(decorations(8<<10, "receipt", receipt),
		decoration{name: "text", contentType: "text/plain", body: receipt, quiet: true}) {
		got := g.Do(d.request(http.MethodPost, "/notify/k/devices/"+jo.ID+"/receipts"))
		if got.Status != http.StatusOK || !strings.Contains(got.Body, jo.ID) {
			t.Errorf("receipt with %s: %d %s", d.name, got.Status, got.Body)
		}
		d.wantWarning(t, got.Body)
	}
}

// TestSignalsOfPrograms checks that a beat in the format of a program counts even if its payload
// cannot be read, unless the sender is verified by the payload.
func TestSignalsOfPrograms(t *testing.T) {
	t.Parallel()
	p := gatewaytest.NewPager(t, http.StatusOK)
	signed, err := source.New(source.Config{Name: "github", Scheme: source.SchemeGitHub, Secret: "s3cr3t"})
	if err != nil {
		t.Fatal(err)
	}
	k := gatewaytest.Key("k", p.NotifyURL())
	k.Expects = []site.BeatOptions{{Expect: rules.Expect{Name: "nightly", Every: 24 * time.Hour, Grace: time.Hour}}}
	closed := k
	closed.Name, closed.Tokens = "closed", []string{"t0ken-0123456789abcdef"}
	g := gatewaytest.New(t, gatewaytest.Options{
		Site:    site.Options{Keys: []site.KeyOptions{k, closed}, MaxBody: 2000},
		Sources: source.Set{"github": signed}, Queue: &outbox.Settings{},
	})
	long := strings.Repeat("x", 5000)
	for _, tt := range []struct {
		target, contentType, body string
		status                    int
	}{
		{"/notify/k/grafana?beat=nightly", "application/json", `{"status":"resolved","alerts":[{"labels":{"alertname":"x"}}]}`, http.StatusOK},
		{"/notify/k/grafana?beat=nightly", "application/json", `{"status`, http.StatusOK},
		{"/notify/k/grafana?beat=nightly&exit=1", "text/plain", "K\xfcche", http.StatusOK},
		{"/notify/k/grafana?beat=nightly", "application/json", `{"x":"` + long + `"}`, http.StatusOK},
		{"/notify/k/slack?beat=nightly", "multipart/form-data", "x", http.StatusOK},
		{"/notify/k/ntfy/topic?beat=nightly", "", long, http.StatusOK},
		{"/notify/k/opsgenie/v2/heartbeats/nightly/ping", "", "", http.StatusAccepted},
		{"/notify/k/opsgenie/v2/heartbeats/nightly/ping", "application/json", long, http.StatusAccepted},
		{"/notify/k/opsgenie/v2/heartbeats/other/ping", "application/json", long, http.StatusNotFound},
		{"/notify/k/grafana?beat=other", "application/json", long, http.StatusNotFound},
		{"/notify/k/github?beat=nightly", "application/json", long, http.StatusRequestEntityTooLarge},
		{"/notify/k/github?beat=nightly", "application/json", "{}", http.StatusUnauthorized},
		{"/notify/closed?beat=nightly", "application/json", long, http.StatusUnauthorized},
		{"/notify/closed/grafana?beat=nightly", "application/json", long, http.StatusUnauthorized},
		{"/notify/closed?beat=nightly&token=t0ken-0123456789abcdef", "application/json", long, http.StatusOK},
		{"/notify/k?beat=nightly&exit=x", "text/plain", "x", http.StatusBadRequest},
		{"/notify/k?beat=nightly&type=kaputt", "text/plain", "x", http.StatusBadRequest},
	} {
		d := decoration{contentType: tt.contentType, body: tt.body}
		if got := g.Do(d.request(http.MethodPost, tt.target)); got.Status != tt.status {
			t.Errorf("%s %.20q: status %d, want %d: %s", tt.target, tt.body, got.Status, tt.status, got.Body)
		}
	}
}
