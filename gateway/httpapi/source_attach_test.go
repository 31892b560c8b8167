package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// cameras serves pictures as cameras in a LAN do.
func cameras(t *testing.T) (address string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/door.jpg":
			w.Header().Set("Content-Type", "image/jpeg")
			_, _ = io.WriteString(w, "picture")
		case "/large.jpg":
			_, _ = io.WriteString(w, strings.Repeat("x", 2<<10))
		case "/hangs.jpg":
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestNtfyAttachThatCannotBeFetched checks that a message for ntfy is sent if the file at the
// address in Attach cannot be fetched. ntfy itself fetches nothing, so its clients name cameras
// that only phones at home can reach. The whole alert was lost.
func TestNtfyAttachThatCannotBeFetched(t *testing.T) {
	t.Parallel()
	s, camera := gatewaytest.NewStation(t), cameras(t)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	open := gatewaytest.Loopback()
	for name, tt := range map[string]struct {
		options site.Options
		address string
		warning string // "" if the file is fetched
	}{
		"private":      {site.Options{}, "http://192.168.1.20/door.jpg", "the operator can allow it with egress"},
		"this machine": {site.Options{}, camera + "/door.jpg", "the operator can allow it with egress"},
		"fetched":      {site.Options{Egress: open}, camera + "/door.jpg", ""},
		"unreachable":  {site.Options{Egress: open}, closed.URL + "/door.jpg", "connection refused"},
		"no file":      {site.Options{Egress: open}, camera + "/none.jpg", "404 Not Found"},
		"too large":    {site.Options{Egress: open, Files: &site.FileOptions{MaxSize: 1 << 10}}, camera + "/large.jpg", "is larger than 1.0 KiB"},
		"slow":         {site.Options{Egress: open, Timeout: 300 * time.Millisecond}, camera + "/hangs.jpg", "it was not fetched within"},
		"remote off": {
			site.Options{Egress: open, Files: &site.FileOptions{Remote: new(false)}},
			camera + "/door.jpg",
			"fetching attachments is turned off here",
		},
		"no files": {
			site.Options{Egress: open, Files: &site.FileOptions{MaxCount: new(0)}},
			camera + "/door.jpg",
			"attachments are turned off here",
		},
	} {
		tt.options.Keys = []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}
		g := gatewaytest.New(t, gatewaytest.Options{Site: tt.options})
		for form, send := range map[string]func(text string) *http.Request{
			"headers": func(text string) *http.Request {
				r := httptest.NewRequest("POST", "/notify/ops/ntfy/door", strings.NewReader(text))
				r.Header = http.Header{"Title": {"Front door"}, "Attach": {tt.address}, "Priority": {"5"}}
				return r
			},
			"JSON": func(text string) *http.Request {
				body, _ := json.Marshal(map[string]any{"topic": "door", "title": "Front door", "message": text, "attach": tt.address, "priority": 5})
				return httptest.NewRequest("POST", "/notify/ops/ntfy", strings.NewReader(string(body)))
			},
		} {
			for _, text := range []string{"Somebody is there", ""} {
				got := g.Do(send(text))
				var answer struct {
					Event    string
					Warnings []string
				}
				if err := json.Unmarshal([]byte(got.Body), &answer); err != nil || got.Status != 200 || answer.Event != "message" {
					t.Errorf("%s, %s: %d %s", name, form, got.Status, got.Body)
					continue
				}
				if warnings := strings.Join(answer.Warnings, "|"); (warnings == "") != (tt.warning == "") || !strings.Contains(warnings, tt.warning) ||
					strings.Contains(warnings, tt.address) {
					t.Errorf("%s, %s: the warnings are %q", name, form, warnings)
				}
				want, files := text, "door.jpg image/jpeg picture"
				if tt.warning != "" {
					want, files = strings.TrimPrefix(text+"\n"+tt.address, "\n"), ""
				}
				want = strings.TrimSuffix("Front door\n"+want, "\n")
				if a := s.One(t); strings.TrimPrefix(a.Title+"\n"+a.Message, "\n") != want || a.Type != "failure" || a.Files() != files {
					t.Errorf("%s, %s: arrived %+v", name, form, a)
				}
			}
		}
	}
}

// TestOwnAttachThatCannotBeFetched checks that the gateway's own API refuses a message
// whose file cannot be fetched: its documentation says that the gateway fetches files.
func TestOwnAttachThatCannotBeFetched(t *testing.T) {
	t.Parallel()
	s, camera := gatewaytest.NewStation(t), cameras(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/ops")))
	for _, address := range []string{"http://192.168.1.20/door.jpg", camera + "/door.jpg"} {
		if got := g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"x","attach":"`+address+`"}`); got.Status != 400 || len(s.Take()) > 0 {
			t.Errorf("%s: %d %s", address, got.Status, got.Body)
		}
	}
}

// TestNtfyAttachInMarkup checks the line with the address in Markdown and in HTML.
func TestNtfyAttachInMarkup(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := siteWith(t, gatewaytest.Key("ops", s.NotifyURL("/ops")+"?format=markdown"))
	const address = "http://192.168.1.20/a_b_c.jpg?x=1&y=2"
	for target, want := range map[string]string{
		"/notify/ops/ntfy/door?markdown=yes": "**there**\n" + address,
		"/notify/ops/ntfy/door?format=html":  "\\*\\*there\\*\\*\n\n" + address,
	} {
		r := httptest.NewRequest("POST", target, strings.NewReader("**there**"))
		r.Header.Set("Attach", address)
		if got := g.Do(r); got.Status != 200 {
			t.Errorf("%s: %d %s", target, got.Status, got.Body)
		} else if a := s.One(t); strings.ReplaceAll(a.Message, "\\_", "_") != want {
			t.Errorf("%s: %q arrived, want %q", target, a.Message, want)
		}
	}
}

// TestAttachWithoutRoomToFetch checks that a message for ntfy is sent at once, with the
// address in its text, if too many files are being fetched.
func TestAttachWithoutRoomToFetch(t *testing.T) {
	t.Parallel()
	s, camera := gatewaytest.NewStation(t), cameras(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}, Egress: gatewaytest.Loopback(),
		Clients: &site.ClientOptions{InFlight: 1},
	}})
	e, err := g.Process.InFlight.EnterFetch(g.Resolved.Limits.InFlight,
		httpapi.ClientAddress(httptest.NewRequestWithContext(context.Background(), "POST", "/", nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Leave()
	r := httptest.NewRequest("POST", "/notify/ops/ntfy/door", strings.NewReader("there"))
	r.Header.Set("Attach", camera+"/door.jpg")
	if got := g.Do(r); got.Status != 200 || !strings.Contains(got.Body, "client_limits") {
		t.Errorf("%d %s", got.Status, got.Body)
	} else if a := s.One(t); a.Message != "there\n"+camera+"/door.jpg" || a.Files() != "" {
		t.Errorf("arrived %+v", a)
	}
	if got := g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"x","attach":"`+camera+`/door.jpg"}`); got.Status != 503 {
		t.Errorf("the own API: %d %s", got.Status, got.Body)
	}
}

// TestFileCount checks how many files a program may send in one message: as many as the service
// whose API it uses, unless max_count sets another number.
func TestFileCount(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	form := func(n int) string {
		var b strings.Builder
		b.WriteString("--x\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\nlook\r\n")
		for i := range n {
			fmt.Fprintf(&b, "--x\r\nContent-Disposition: form-data; name=\"files[%d]\"; filename=\"g%[1]d.txt\"\r\n\r\nx\r\n", i)
		}
		return b.String() + "--x--\r\n"
	}
	three := 3
	for _, tt := range []struct {
		max    *int
		path   string
		files  int
		status int
	}{
		{nil, "discord/1/TOKEN", 10, 200},
		{nil, "discord/1/TOKEN", 11, 400},
		{nil, "slack/files.upload", 6, 200},
		{nil, "slack/api/v4/files", 7, 400},
		{&three, "discord/1/TOKEN", 3, 200},
		{&three, "discord/1/TOKEN", 4, 400},
	} {
		g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
			Egress: gatewaytest.Loopback(), Files: &site.FileOptions{MaxCount: tt.max},
			Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))},
		}})
		if got := g.Post("/notify/ops/"+tt.path, "multipart/form-data; boundary=x", form(tt.files)); got.Status != tt.status {
			t.Errorf("%d files to %s: %d %s", tt.files, tt.path, got.Status, got.Body)
		}
		arrived := s.Take()
		if want := tt.status == 200; len(arrived) > 0 != want || want && len(arrived[0].Attachments) != tt.files {
			t.Errorf("%d files to %s: arrived %+v", tt.files, tt.path, arrived)
		}
	}
}
