package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestUnescapedForms checks that the APIs of other programs, like the gateway's own, accept a
// percent sign and a semicolon that are not encoded, in a form and in the address.
func TestUnescapedForms(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))},
	}, Sources: sourcesWith(t, source.Config{Name: "backup", Templates: source.Templates{Body: "{{.text}}"}})})
	const text = "91% of 100%; act now"
	for _, tt := range []struct{ target, body string }{
		{"/notify/ops", "body=" + text},
		{"/notify/ops/gotify/message", "message=" + text},
		{"/notify/ops/gotify/message?message=" + strings.ReplaceAll(text, " ", "+"), "priority=5"},
		{"/notify/ops/slack", `payload={"text":"` + text + `"}`},
		{"/notify/ops/backup", "text=" + text},
	} {
		got := g.Post(tt.target, gatewaytest.TypeForm, tt.body)
		if got.Status != 200 {
			t.Errorf("%s: %d %s", tt.target, got.Status, got.Body)
		} else if arrived := s.One(t); arrived.Message != text {
			t.Errorf("%s: %q arrives", tt.target, arrived.Message)
		}
	}
}

// TestDiscordClient sends messages with the Discord service to the source discord, and
// checks that texts, embeds and files arrive. The service has a fixed address, so its
// requests are passed on to the handler.
func TestDiscordClient(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops")+"?format=markdown")},
	}, Sources: sourcesWith(t, source.Config{Name: "discord", Token: "secret"})})
	var answers []int
	discord := servicetest.API(func(q *http.Request, body string) (int, string) {
		r := httptest.NewRequest(q.Method, "/notify/ops/discord"+q.URL.RequestURI(), strings.NewReader(body))
		maps.Copy(r.Header, q.Header)
		got := g.Do(r)
		answers = append(answers, got.Status)
		return got.Status, got.Body
	})
	file := func() *notifier.Attachment {
		return notifier.NewAttachment("graph.txt", "text/plain", []byte("the\x00file\n"))
	}
	for _, tt := range []struct {
		name, url string
		m         notifier.Message
		want      []gatewaytest.Arrived // without attachments
		files     int                   // number of files of the last message
	}{
		{
			"content", "discord://1/secret?format=text",
			notifier.Message{Title: "Disk full", Body: "91% é 漢字"},
			[]gatewaytest.Arrived{{Message: "Disk full  \n91% é 漢字", Type: "info"}},
			0,
		},
		{
			"an embed with a field and a footer", "discord://1/secret?format=markdown&footer=yes",
			notifier.Message{Title: "Disk full", Body: "91% used\n# Host\ndb1", Type: notifier.Failure, Format: notifier.Markdown},
			[]gatewaytest.Arrived{{
				Title:   "Disk full",
				Message: "[Caddy](https://caddyserver.com/)  \n91% used  \nHost:\n\n```md\ndb1\n```\n\nCaddy Notifications", Type: "failure",
			}},
			0,
		},
		{
			"files", "discord://1/secret?format=text",
			notifier.Message{Body: "see the graph", Attachments: []*notifier.Attachment{file(), file()}},
			[]gatewaytest.Arrived{{Message: "see the graph", Type: "info"}, {Type: "info"}},
			2,
		},
	} {
		answers = nil
		if err := discord.Destination(t, tt.url)(&tt.m); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		got := s.Take()
		if len(got) != len(tt.want) || len(answers) != len(tt.want) || answers[0] != http.StatusNoContent ||
			(answers[len(answers)-1] == http.StatusOK) != (tt.files > 0) {
			t.Errorf("%s: the answers are %v, arrived %+v", tt.name, answers, got)
			continue
		}
		for i, want := range tt.want {
			if got[i].Title != want.Title || strings.ReplaceAll(got[i].Message, "\r", "") != want.Message || got[i].Type != want.Type {
				t.Errorf("%s: arrived %+v", tt.name, got[i])
			}
		}
		files := got[len(got)-1].Attachments
		if len(files) != tt.files || tt.files > 0 && (files[0].Filename != "graph.txt" || string(files[0].Base64) != "the\x00file\n") {
			t.Errorf("%s: the files %+v arrived", tt.name, files)
		}
	}
	answers = nil
	if err := discord.Destination(t, "discord://1/another")(&notifier.Message{Body: "x"}); err == nil || len(s.Take()) > 0 {
		t.Errorf("a wrong token is accepted: %v", answers)
	}
}

// TestIncidentToolClients sends the states of an incident with the services of PagerDuty and
// Opsgenie to the sources with their APIs, and checks that a destination gets the same
// states of one incident. The routing key and the API key are the token of the key.
func TestIncidentToolClients(t *testing.T) {
	t.Parallel()
	for source, url := range map[string]string{
		"pagerduty": "pagerduty://routing-key-1234@secret-api-key",
		"opsgenie":  "opsgenie://routing-key-1234",
	} {
		d := newSourceDesk(t)
		g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
			Keys:   []site.KeyOptions{lockedKey("ops", "routing-key-1234", d.url())},
			Egress: gatewaytest.Loopback(),
		}})
		var answers []string
		api := servicetest.API(func(q *http.Request, body string) (int, string) {
			r := httptest.NewRequest(q.Method, "/notify/ops/"+source+q.URL.RequestURI(), strings.NewReader(body))
			maps.Copy(r.Header, q.Header)
			got := g.Do(r)
			if got.Status/100 != 2 {
				answers = append(answers, got.Body)
			}
			return got.Status, got.Body
		})
		send := api.Destination(t, url)
		incident := notifier.Incident{Name: "disk db1", ID: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}
		for _, tt := range []struct {
			state notifier.IncidentState
			typ   notifier.Type
			want  notifier.IncidentState
		}{
			{notifier.Open, notifier.Failure, notifier.Open},
			{notifier.Updated, notifier.Info, notifier.Updated},
			{notifier.Acknowledged, notifier.Info, notifier.Acknowledged},
			{notifier.Resolved, notifier.Success, notifier.Resolved},
		} {
			m := &notifier.Message{Title: "Disk full", Body: "91% é 漢字", Type: tt.typ, Incident: incident}
			m.Incident.State = tt.state
			if err := send(m); err != nil {
				t.Errorf("%s, %s: %v", source, tt.state, err)
			}
			want := notifier.Incident{Name: incident.ID}.For("ops", source)
			want.State = tt.want
			if got := d.take(); len(got) != 1 || got[0] != want {
				t.Errorf("%s, %s: arrived %+v, want %+v", source, tt.state, got, want)
			}
		}
		if len(answers) > 0 {
			t.Errorf("%s: errors %v", source, answers)
		}
		wrong := strings.Replace(url, "1234", "5678", 1)
		if err := api.Destination(t, wrong)(&notifier.Message{Body: "x", Type: notifier.Failure}); err == nil || len(d.take()) > 0 {
			t.Errorf("%s: a wrong token is accepted", source)
		}
	}
}

// TestSlackWebAPI sends messages and a file like programs that know only Slack's Web API: with the
// token of the key, and a file to the address from the gateway's answer.
func TestSlackWebAPI(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	const token = "xoxb-12345678901-abcdefghijkl"
	g := siteWith(t, lockedKey("ops", token, s.NotifyURL("/ops")), lockedKey("bad", token, s.NotifyURL("/refuse")+"?retry=0"))
	call := func(method, target, contentType, body string) gatewaytest.Reply {
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		return g.Do(r)
	}
	for _, tt := range []struct {
		target, body string
		status       int
		want         string // in the answer
		sent         string
	}{
		{"/notify/ops/slack/api/auth.test", "token=" + token, 200, `"ok":true`, ""},
		{"/notify/ops/slack/api/auth.test", "token=x" + token, 200, `"error":"invalid_auth"`, ""},
		{"/notify/ops/slack/api/chat.postMessage", "token=" + token + "&channel=ops&text=full", 200, `"channel":"ops"`, "full"},
		{"/notify/ops/slack/api/chat.update", "token=" + token + "&channel=ops&ts=1.2&text=fuller", 200, `"ts":"1.2"`, "fuller\n(edited)"},
		{"/notify/ops/slack/api/chat.update", "token=" + token + "&channel=ops&ts=1.2&attachments=[]", 200, `"ts":"1.2"`, ""},
		{"/notify/ops/slack/api/chat.delete", "token=" + token + "&channel=ops&ts=1.2", 200, `"ok":true`, ""},
		{"/notify/ops/slack/api/chat.scheduleMessage", "token=" + token + "&channel=ops&text=x", 200, `"error":"unknown_method"`, ""},
		{"/notify/ops/slack/api/chat.postMessage", "token=" + token + "&channel=ops", 200, `"error":"no_text"`, ""},
		{"/notify/bad/slack/api/chat.postMessage", "token=" + token + "&channel=ops&text=full", 503, `"error":"service_unavailable"`, "full"},
	} {
		got := call("POST", tt.target, gatewaytest.TypeForm, tt.body)
		if got.Status != tt.status || got.Header.Get("Content-Type") != gatewaytest.TypeJSON || !strings.Contains(got.Body, tt.want) {
			t.Errorf("%s %s: %d %s", tt.target, tt.body, got.Status, got.Body)
		}
		sent := ""
		for _, a := range s.Take() {
			sent += a.Message
		}
		if sent != tt.sent {
			t.Errorf("%s %s: sent %q", tt.target, tt.body, sent)
		}
	}

	got := call("GET", "https://alerts.example.com/notify/ops/slack/api/files.getUploadURLExternal?filename=graph.png&length=7&token="+token,
		gatewaytest.TypeForm, "")
	var upload struct {
		OK     bool   `json:"ok"`
		URL    string `json:"upload_url"`
		FileID string `json:"file_id"`
	}
	if err := json.Unmarshal([]byte(got.Body), &upload); err != nil || !upload.OK ||
		!strings.HasPrefix(upload.URL, "https://alerts.example.com/notify/ops/slack/upload/v1/"+upload.FileID+"?") {
		t.Fatalf("%v: %s", err, got.Body)
	}
	if got := call("POST", upload.URL, gatewaytest.TypeForm, "picture"); got.Status != 200 || got.Body != "OK" {
		t.Errorf("upload: %d %s", got.Status, got.Body)
	}
	if a := s.One(t); a.Message != "graph.png" || a.Files() != "graph.png image/png picture" {
		t.Errorf("upload: %+v", a)
	}
	if strings.Contains(upload.URL, token) {
		t.Errorf("the address has the token: %s", upload.URL)
	}
	// The address is for one upload, and its ticket for nothing else.
	_, ticket, _ := strings.Cut(upload.URL, "ticket=")
	for _, target := range []string{
		upload.URL, upload.URL[:len(upload.URL)-1] + "_",
		"/notify/ops/slack/chat.postMessage?text=x&ticket=" + ticket,
	} {
		if got := call("POST", target, gatewaytest.TypeForm, "picture"); got.Status/100 == 2 && !strings.Contains(got.Body, "invalid_auth") &&
			!strings.Contains(got.Body, "not_authed") {
			t.Errorf("%s with a used ticket: %d %s", target, got.Status, got.Body)
		}
	}
	uploadURL := func() string {
		t.Helper()
		got := call("GET", "/notify/ops/slack/api/files.getUploadURLExternal?filename=graph.png&length=7&token="+token, gatewaytest.TypeForm, "")
		if err := json.Unmarshal([]byte(got.Body), &upload); err != nil || !upload.OK {
			t.Fatalf("%v: %s", err, got.Body)
		}
		return upload.URL[strings.Index(upload.URL, "/notify/"):]
	}
	for _, target := range []string{
		strings.Replace(uploadURL(), upload.FileID, "F1234567890", 1), // of another file
		strings.Replace(uploadURL(), "/notify/ops/", "/notify/bad/", 1),
		strings.Replace(uploadURL(), "upload/v1/"+upload.FileID, "chat.postMessage", 1) + "&text=x",
	} {
		if got := call("POST", target, gatewaytest.TypeForm, "picture"); got.Status/100 == 2 && !strings.Contains(got.Body, "auth") {
			t.Errorf("%s: %d %s", target, got.Status, got.Body)
		}
	}
	if got := s.Take(); len(got) > 0 {
		t.Errorf("arrived %+v", got)
	}
	upload.URL = uploadURL()
	// Slack's SDK for Node calls the file of a form "Untitled", whatever its name is.
	const form = "--x\r\nContent-Disposition: form-data; name=\"body\"; filename=\"Untitled\"\r\nContent-Type: " +
		"application/octet-stream\r\n\r\n\x00picture\r\n--x--\r\n"
	if got := call("POST", upload.URL, "multipart/form-data; boundary=x", form); got.Status != 200 {
		t.Errorf("upload of a form: %d %s", got.Status, got.Body)
	}
	if a := s.One(t); a.Message != "graph.png" || a.Files() != "graph.png image/png \x00picture" {
		t.Errorf("upload of a form: %+v", a)
	}
	path, _, _ := strings.Cut(upload.URL, "?")
	for _, query := range []string{"", "?token=x", "?ticket=x", "?ticket=" + strings.Repeat("A", 54)} {
		if got := call("POST", path+query, gatewaytest.TypeForm, "picture"); got.Status != 401 {
			t.Errorf("upload with %s: %d %s", query, got.Status, got.Body)
		}
	}
	if got := call("POST", path+"?filename=a.png&token="+token, gatewaytest.TypeForm, "picture"); got.Status != 200 ||
		s.One(t).Message != "a.png" {
		t.Errorf("upload with the token: %d %s", got.Status, got.Body)
	}
	got = call("POST", "/notify/ops/slack/api/files.completeUploadExternal", gatewaytest.TypeForm,
		"token="+token+`&files=[{"id":"`+upload.FileID+`","title":"Graph"}]&initial_comment=see`)
	if a := s.One(t); got.Status != 200 || !strings.Contains(got.Body, `"title":"Graph"`) || a.Message != "see" {
		t.Errorf("complete: %d %s, %+v", got.Status, got.Body, a)
	}
}

// TestSlackRefusals checks that a request to Slack's Web API for which a repetition is useless is
// answered like Slack, with the status 200 and its word for the error: Slack's SDK for Node repeats
// a request with any other status for half an hour. Webhooks and the APIs of other chats keep their
// statuses, and so do errors that may pass.
func TestSlackRefusals(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	const token = "xoxb-12345678901-abcdefghijkl"
	gone := gatewaytest.NewPager(t, http.StatusGone)
	open := lockedKey("open", token, s.NotifyURL("/ops"))
	open.Accept = []string{"grafana"}
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{MaxBody: 1 << 10, Egress: gatewaytest.Loopback(), Keys: []site.KeyOptions{
		lockedKey("ops", token, s.NotifyURL("/ops")), lockedKey("bad", token, s.NotifyURL("/refuse")+"?retry=0"),
		lockedKey("gone", token, gone.NotifyURL()), open,
	}}})
	for _, tt := range []struct {
		method, path, token, encoding, body string
		status                              int
		want                                string // in the answer
	}{
		{"POST", "ops/slack/api/chat.postMessage", "", "", `{"text":"x"}`, 200, `"not_authed"`},
		{"POST", "ops/slack/chat.postMessage", "wrong", "", `{"text":"x"}`, 200, `"invalid_auth"`},
		{"POST", "ops/slack/api/chat.postMessage", "", "", `{"text":"x","token":"wrong"}`, 200, `"invalid_auth"`},
		{"POST", "other/slack/api/chat.postMessage", token, "", `{"text":"x"}`, 200, `"invalid_auth"`},
		{"POST", "open/slack/api/chat.postMessage", token, "", `{"text":"x"}`, 200, `"restricted_action"`},
		{"DELETE", "ops/slack/api/chat.postMessage", token, "", ``, 200, `"invalid_post_type"`},
		{"POST", "ops/slack/api/chat.postMessage", token, "gzip", `{"text":"x"}`, 200, `"invalid_post_type"`},
		{"POST", "ops/slack/api/chat.postMessage", token, "", `{"text":"` + strings.Repeat("x", 1<<10) + `"}`, 200, `"msg_too_long"`},
		{"POST", "ops/slack/api/chat.postMessage", token, "", `{"text":"`, 200, `"invalid_json"`},
		{"POST", "ops/slack/api/chat.postMessage", token, "", `{}`, 200, `"no_text"`},
		{"POST", "ops/slack/api/users.list", token, "", `{}`, 200, `"unknown_method"`},
		{"POST", "gone/slack/api/chat.postMessage", token, "", `{"text":"x"}`, 200, `"fatal_error"`},
		{"POST", "bad/slack/api/chat.postMessage", token, "", `{"text":"x"}`, 503, `"service_unavailable"`},
		{"POST", "ops/slack/wrong", "", "", `{"text":"x"}`, 401, ""},
		{"POST", "other/slack/T0/B0/" + token, "", "", `{"text":"x"}`, 401, ""},
		{"POST", "ops/slack/" + token, "", "", `{}`, 400, ""},
		{"POST", "ops/slack/" + token, "", "", `{"text":"` + strings.Repeat("x", 1<<10) + `"}`, 413, ""},
		{"POST", "gone/slack/" + token, "", "", `{"text":"x"}`, 424, ""},
		{"POST", "ops/slack/api/v1/chat.postMessage", "wrong", "", `{"text":"x"}`, 401, `"success":false`},
		{"POST", "ops/slack/api/v4/posts", "wrong", "", `{"message":"x"}`, 401, `"status_code":401`},
	} {
		r := gatewaytest.NewRequest(tt.method, "/notify/"+tt.path, tt.body, "Content-Type", gatewaytest.TypeJSON)
		if tt.token != "" {
			r.Header.Set("Authorization", "Bearer "+tt.token)
		}
		if tt.encoding != "" {
			r.Header.Set("Content-Encoding", tt.encoding)
		}
		got := g.Do(r)
		if got.Status != tt.status || !strings.Contains(got.Body, tt.want) || tt.want != "" && tt.status == 200 &&
			!strings.Contains(got.Body, `"ok":false`) {
			t.Errorf("%s %s with %q: %d %s", tt.method, tt.path, tt.body, got.Status, got.Body)
		}
		if asks := got.Header.Get("WWW-Authenticate") != ""; asks != (got.Status == 401) {
			t.Errorf("%s %s: the status %d asks for a password: %t", tt.method, tt.path, got.Status, asks)
		}
	}
	// If no key has a token, it is no secret that a key does not exist.
	g = siteWith(t, gatewaytest.Key("free", s.NotifyURL("/ops")))
	if got := g.Post("/notify/other/slack/api/chat.postMessage", gatewaytest.TypeJSON, `{"text":"x"}`); got.Status != 200 ||
		!strings.Contains(got.Body, `"channel_not_found"`) {
		t.Errorf("an unknown key: %d %s", got.Status, got.Body)
	}
	if got := g.Post("/notify/other/slack/TOKEN", gatewaytest.TypeJSON, `{"text":"x"}`); got.Status != 404 {
		t.Errorf("an unknown key of a webhook: %d %s", got.Status, got.Body)
	}
}

// TestSourceAddress checks the address of a source as its client knows it.
func TestSourceAddress(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ client, path, rest, proto, want string }{
		{"/notify/ops/slack/api/auth.test", "/notify/ops/slack/api/auth.test", "api/auth.test", "", "http://alerts.example.com/notify/ops/slack"},
		{"/notify/ops/slack/", "/notify/ops/slack/", "", "https", "https://alerts.example.com/notify/ops/slack"},
		{
			"/alerts/notify/ops/slack/api/auth.test/", "/notify/ops/slack/api/auth.test/", "api/auth.test", "",
			"http://alerts.example.com/alerts/notify/ops/slack",
		},
		{"/api/auth.test", "/notify/ops/slack/api/auth.test", "api/auth.test", "", "http://alerts.example.com"},
		{
			"/notify/ops/slack//api/auth.test", "/notify/ops/slack//api/auth.test", "api/auth.test", "",
			"http://alerts.example.com/notify/ops/slack",
		},
		{
			"/alerts/notify/ops/slack/api//auth.test", "/notify/ops/slack/api//auth.test", "api/auth.test", "",
			"http://alerts.example.com/alerts/notify/ops/slack",
		},
	} {
		r := httptest.NewRequest("POST", "http://alerts.example.com"+tt.path, nil)
		r = environment.With(r, &environment.Environment{Original: func(*http.Request) *url.URL { return &url.URL{Path: tt.client} }})
		r.Header.Set("X-Forwarded-Proto", tt.proto)
		if got := httpapi.SourceAddress(r, &httpapi.Route{Key: "ops", Source: "slack", Rest: tt.rest}); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// TestSlackClients sends messages with the services for Slack, Mattermost and
// Rocket.Chat to the source slack, and checks that they arrive.
func TestSlackClients(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	const token = "TIiajkdnlazkcOXrIdevi7FQ"
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops")+"?format=markdown")},
	}, Sources: sourcesWith(t, source.Config{Name: "slack", Token: token})})
	slack := servicetest.API(func(q *http.Request, body string) (int, string) {
		r := httptest.NewRequest(q.Method, "/notify/ops/slack"+q.URL.RequestURI(), strings.NewReader(body))
		maps.Copy(r.Header, q.Header)
		got := g.Do(r)
		return got.Status, got.Body
	})
	const text = "**91%** on [db1](https://db1.example.net)"
	for url, want := range map[string]gatewaytest.Arrived{
		"slack://T1JJ3T3L2/A1BRTD4JD/" + token:                    {Title: "Disk full", Message: text + "  \nCaddy", Type: "failure"},
		"slack://T1JJ3T3L2/A1BRTD4JD/" + token + "?blocks=yes":    {Title: "Disk full", Message: text + "  \nCaddy", Type: "failure"},
		"mmosts://mattermost.example.net/" + token:                {Message: "Disk full  \n" + text, Type: "info"},
		"rockets://chat.example.net/general?webhook=abc/" + token: {Message: "Disk full  \n" + text, Type: "info"},
	} {
		if err := slack.Destination(t, url)(&notifier.Message{
			Title: "Disk full", Body: text, Type: notifier.Failure,
			Format: notifier.Markdown,
		}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		got := s.Take()
		if len(got) != 1 || got[0].Title != want.Title || strings.ReplaceAll(got[0].Message, "\r", "") != want.Message ||
			got[0].Type != want.Type {
			t.Errorf("%s: arrived %+v", url, got)
		}
	}
	if err := slack.Destination(t, "rockets://chat.example.net/general?webhook=abc/another")(&notifier.Message{Body: "x"}); err == nil ||
		len(s.Take()) > 0 {
		t.Error("a wrong token is accepted")
	}
}
