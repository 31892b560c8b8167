package notifier_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// catalogue returns all services except the services of tests.
func catalogue() []notifier.ServiceInfo {
	return slices.DeleteFunc(notifier.Services(), func(s notifier.ServiceInfo) bool {
		return slices.Contains([]string{"Probe", "Plain", "Login", "Doorbell"}, s.Name)
	})
}

// example is a URL of a service, with answers of the destination.
type example struct {
	url     string
	answers []servicetest.Answer
}

// examples returns the URLs of the schemas and of the golden files by service.
// Together they use every parameter.
func examples(t *testing.T) map[string][]example {
	t.Helper()
	out := map[string][]example{}
	for _, file := range servicetest.Files(t, "services") {
		for _, c := range servicetest.ReadCases(t, file) {
			if d, err := notifier.Parse(c.URL, nil); err == nil {
				out[d.Service()] = append(out[d.Service()], example{c.URL, c.Answers})
			}
		}
	}
	for _, s := range catalogue() {
		for _, u := range s.Examples {
			if !slices.ContainsFunc(out[s.Name], func(e example) bool { return e.url == u }) {
				out[s.Name] = append(out[s.Name], example{url: u})
			}
		}
	}
	return out
}

// notHTTP lists the services without a golden case for their example, because
// golden files contain HTTP requests only. Their own tests use servers.
var notHTTP = []string{"Aprs", "Delta Chat", "E-Mail", "Growl", "IRC", "MQTT", "Remote Syslog", "SMPP", "Syslog", "XMPP"}

// TestExamples parses the example URLs and checks that the golden files contain
// them.
func TestExamples(t *testing.T) {
	golden := map[string]bool{}
	for _, file := range servicetest.Files(t, "services") {
		for _, c := range servicetest.ReadCases(t, file) {
			golden[c.URL] = true
		}
	}
	for _, s := range catalogue() {
		for i, example := range s.Examples {
			d, err := notifier.Parse(example, nil)
			switch {
			case err != nil:
				t.Errorf("%s: the example %s of %s is refused: %v", s.Name, example, s.URLs[i], err)
			case d.Service() != s.Name:
				t.Errorf("%s: the example %s belongs to %s", s.Name, example, d.Service())
			case len(d.Warnings()) > 0:
				t.Errorf("%s: the example %s has warnings: %q", s.Name, example, d.Warnings())
			case !golden[example] && !slices.Contains(notHTTP, s.Name):
				t.Errorf("%s: the example %s is in no golden file", s.Name, example)
			}
		}
		for _, p := range s.Params {
			if p.Required && p.InURL && p.Secret && p.Example == "" {
				t.Errorf("%s: %s has no example", s.Name, p.Name)
			}
		}
	}
}

// TestRoundTrip checks that the canonical form of each URL parses to the same
// destination, and that its redacted form contains no secret.
func TestRoundTrip(t *testing.T) {
	all := examples(t)
	for _, s := range catalogue() {
		for _, e := range all[s.Name] {
			u := e.url
			d, err := notifier.Parse(u, nil)
			if err != nil {
				continue
			}
			again, err := notifier.Parse(d.URL(), nil)
			if err != nil {
				t.Errorf("%s prints as %s, which is refused: %v", u, d.URL(), err)
				continue
			}
			if again.URL() != d.URL() {
				t.Errorf("%s prints as %s and then as %s", u, d.URL(), again.URL())
			}
			for _, secret := range notifier.Secrets(d) {
				// A secret that is also a word of the URL is indistinguishable
				// from it. Real secrets are not words.
				if len(secret) > 7 && strings.Contains(d.String(), secret) {
					t.Errorf("%s shows a secret: %s", u, d.String())
				}
			}
		}
	}
}

func TestDocumentation(t *testing.T) {
	for _, s := range catalogue() {
		if !strings.HasPrefix(s.Site, "https://") {
			t.Errorf("%s has no site: %q", s.Name, s.Site)
		}
		switch {
		case s.Setup == "":
			t.Errorf("%s has no Setup", s.Name)
		case s.Setup != "" && (!strings.HasSuffix(s.Setup, ".") || strings.Contains(s.Setup, ". ") || len([]rune(s.Setup)) > 220):
			t.Errorf("%s: the Setup is not one sentence of up to 220 characters: %q", s.Name, s.Setup)
		}
		for _, p := range s.Params {
			if p.Doc == "" || strings.HasSuffix(p.Doc, ".") || len([]rune(p.Doc)) > 75 {
				t.Errorf("%s: the text of %s is %q", s.Name, p.Name, p.Doc)
			}
		}
	}
}

// wire answers and records requests.
type wire struct {
	answers []servicetest.Answer

	mu   sync.Mutex
	seen []string
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	text := fmt.Sprint(r.Method, r.URL, r.Header, string(body))
	if _, params, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && params["boundary"] != "" {
		text = strings.ReplaceAll(text, params["boundary"], "")
	}
	w.mu.Lock()
	w.seen = append(w.seen, text)
	w.mu.Unlock()
	return servicetest.Respond(r, w.answers), nil
}

// sent returns the requests for a URL and all messages that parameters can depend on, or "" if
// nothing is sent. They are sent at a fixed time, so that requests which contain the time do not
// differ when a second passes between them.
func sent(t *testing.T, u string, answers []servicetest.Answer) (requests string, err error) {
	synctest.Test(t, func(t *testing.T) { requests, err = sentNow(t, u, answers) })
	return requests, err
}

func sentNow(t *testing.T, u string, answers []servicetest.Answer) (string, error) {
	w := &wire{answers: answers}
	sender := notifier.NewSender(egress.NewPoolWithTransport("test", w), 0)
	defer sender.Close()
	d, err := sender.Parse(u, nil)
	if err != nil {
		return "", err
	}
	defer sender.Release(d)
	var all strings.Builder
	for _, m := range probes(t) {
		w.mu.Lock()
		w.seen = nil
		w.mu.Unlock()
		sender.Send(context.Background(), m, []notifier.Target{{Destination: d}}, notifier.Options{Timeout: 5 * time.Second})
		w.mu.Lock()
		slices.Sort(w.seen)
		for _, text := range w.seen {
			fmt.Fprintln(&all, text)
		}
		w.mu.Unlock()
	}
	return all.String(), nil
}

func probes(t *testing.T) []*notifier.Message {
	t.Helper()
	pixel, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ" +
		"AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	id := &notifier.Identity{
		Name: "Caddy", Description: "D", URL: "https://caddyserver.com/",
		Icon: "https://icons.example.com/{type}-{size}.png", Logo: "https://icons.example.com/logo.png",
	}
	when := time.Date(2026, 3, 1, 12, 30, 15, 0, time.UTC)
	incident := notifier.Incident{Name: "disk"}.For("ops", "")
	return []*notifier.Message{
		{Title: "Title", Body: "a body\nwith http://example.com/ @mention and **stars**", Type: notifier.Warning, Identity: id, Time: when},
		{Body: strings.Repeat("many words ", 100), Type: notifier.Failure, Identity: id, Time: when},
		{Title: "Title", Body: "# Heading\n\n- **bold**", Type: notifier.Success, Format: notifier.Markdown, Identity: id, Time: when},
		{Title: "Title", Body: "see attached", Identity: id, Time: when, Attachments: []*notifier.Attachment{
			notifier.NewAttachment("report.txt", "text/plain", []byte("report")), notifier.NewAttachment("graph.png", "image/png", pixel),
		}},
		{Title: "Title", Body: "it begins", Type: notifier.Failure, Incident: incident, Identity: id, Time: when},
		{Title: "Title", Body: "it is over", Type: notifier.Success, Incident: incident, Identity: id, Time: when},
	}
}

// TestNoIdleParameter checks that each query parameter changes the requests of
// at least one URL.
func TestNoIdleParameter(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends some thousand messages")
	}
	all := examples(t)
	for _, s := range catalogue() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			var bases []example
			plain := map[string]string{}
			for _, e := range all[s.Name] {
				a, err := sent(t, e.url, e.answers)
				if err != nil || a == "" {
					continue
				}
				if b, _ := sent(t, e.url, e.answers); a != b {
					continue // the requests differ each time
				}
				bases = append(bases, e)
				plain[e.url] = a
			}
			if len(bases) == 0 {
				t.Skip("no HTTP requests, or different ones each time; the service has separate tests")
			}
			for _, p := range s.Params {
				if p.Common || p.InURL {
					continue
				}
				switch accepted, obeyed := obeys(t, p, bases, plain); {
				case !accepted:
					t.Errorf("no value was accepted for %s (%s); give the parameter an example", p.Name, p.Doc)
				case !obeyed:
					t.Errorf("%s (%s) changes the requests of no URL in the description and the golden file", p.Name, p.Doc)
				}
			}
		})
	}
}

// obeys reports whether one of the URLs accepts the parameter, and whether it
// changes the requests of one.
func obeys(t *testing.T, p notifier.ParamInfo, bases []example, plain map[string]string) (accepted, obeyed bool) {
	for _, e := range bases {
		for _, v := range values(p) {
			got, err := sent(t, withParam(e.url, p, v), e.answers)
			accepted = accepted || err == nil
			if err == nil && got != plain[e.url] {
				return true, true
			}
		}
	}
	return accepted, false
}

// values returns candidate values for the parameter.
func values(p notifier.ParamInfo) []string {
	switch p.Kind {
	case notifier.KindBool:
		return []string{"yes", "no"}
	case notifier.KindChoice:
		return p.Choices
	case notifier.KindInt, notifier.KindFloat:
		out := []string{"1", "2", "7", "60", "3600", "90000"}
		if p.Min != nil {
			out = append(out, fmt.Sprint(*p.Min), fmt.Sprint(*p.Min+1))
		}
		if p.Max != nil {
			out = append(out, fmt.Sprint(*p.Max))
		}
		return out
	}
	return []string{p.Example, "value1", "https://example.com/x", "someone@example.com", "15551230000", "QQ==", "value1,value2"}
}

func withParam(u string, p notifier.ParamInfo, v string) string {
	key := p.Name
	if p.Kind == notifier.KindMap {
		key = p.Prefix + "Key1"
		if name, value, ok := strings.Cut(p.Example, "="); ok {
			key, v = p.Prefix+name, value
		}
	}
	// Remove the parameter if the URL has it already.
	base, query, _ := strings.Cut(u, "?")
	var keep []string
	for _, kv := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.EqualFold(name, key) && !slices.ContainsFunc(p.Aliases, func(a string) bool { return strings.EqualFold(a, name) }) {
			keep = append(keep, kv)
		}
	}
	var b bytes.Buffer
	for _, c := range []byte(v) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return base + "?" + strings.Join(append(keep, key+"="+b.String()), "&")
}

// TestDestinationSize checks how much memory a destination takes until its first
// message: a configuration may have tens of thousands. The limit leaves out the
// URL itself.
func TestDestinationSize(t *testing.T) {
	if !racetest.All() { // the race detector allocates, too
		t.Skip("makes 30,000 destinations")
	}
	const limit, n = 648, 200
	allocated := func() int64 {
		runtime.GC()
		runtime.GC() // empties the sync.Pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var services []notifier.ServiceInfo
	for _, s := range catalogue() {
		if strings.Contains(s.Examples[0], "keyfile=") { // it has whole files in the URL, which are decoded
			continue
		}
		if _, err := notifier.Parse(s.Examples[0], nil); err != nil { // what all destinations of a service share
			t.Fatal(err)
		}
		services = append(services, s)
	}
	all := make([]*notifier.Destination, 0, n*len(services))
	before := allocated()
	for _, s := range services {
		for range n {
			d, err := notifier.Parse(s.Examples[0], nil)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, d)
		}
		after := allocated()
		// Objects have multiples of 8 bytes; the rest is something else.
		if size := (after - before) / n / 8 * 8; size > limit {
			t.Errorf("%s takes %d bytes, more than %d", s.Name, size, limit)
		}
		before = after
	}
	runtime.KeepAlive(all)
}

// TestLoginInQuery checks that ?user=, ?password= and ?pass= set the user and the
// password of every service.
func TestLoginInQuery(t *testing.T) {
	tested := 0
	for _, s := range catalogue() {
		for _, example := range s.Examples {
			scheme, rest, _ := strings.Cut(example, "://")
			authority, path, _ := strings.Cut(rest, "/")
			login, host, ok := strings.Cut(authority, "@")
			if !ok {
				continue
			}
			want, err := notifier.Parse(example, nil)
			if err != nil {
				t.Errorf("%s: %v", example, err)
				continue
			}
			user, password, both := strings.Cut(login, ":")
			query := "?user=" + user
			if strings.Contains(path, "?") {
				query = "&user=" + user
			}
			if both {
				query += "&pass=" + password
			}
			moved := scheme + "://" + host + "/" + path + query
			got, err := notifier.Parse(moved, nil)
			if err != nil {
				t.Errorf("%s: %v", moved, err)
			} else if got.URL() != want.URL() || len(got.Warnings()) > 0 {
				t.Errorf("%s is read as %s with warnings %q, want %s", moved, got.URL(), got.Warnings(), want.URL())
			}
			tested++
		}
	}
	if tested < 60 {
		t.Errorf("only %d examples have a user", tested)
	}
}

// TestPublicValues checks that values of maps that are words of messages are not
// masked in texts: new names of fields, and actions.
func TestPublicValues(t *testing.T) {
	for url, want := range map[string]string{
		"json://host?+X=topsecret&:key=secretsecret&:message=output&:title=status":       "secretsecret topsecret",
		"xml://host?:Subject=status&:title=secretsecret":                                 "secretsecret",
		"splunk://database@01234567-89ab-cdef-0123-456789abcdef?:info=critical":          "01234567-89ab-cdef-0123-456789abcdef",
		"opsgenie://01234567-89ab-cdef-0123-456789abcdef?+detail=secretsecret&:info=new": "01234567-89ab-cdef-0123-456789abcdef secretsecret",
	} {
		d, err := notifier.Parse(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := notifier.Secrets(d)
		slices.Sort(got)
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s has the secrets %s, want %s", url, text, want)
		}
		shown := url
		for _, secret := range got {
			shown = strings.ReplaceAll(shown, secret, "xxxxx")
		}
		if d.String() != shown {
			t.Errorf("%s is shown as %s, want %s", url, d, shown)
		}
	}
}
