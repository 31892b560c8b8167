package services

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// account is the other side of a service that one signs in to: it gives out
// tokens and refuses those that have expired. What it is asked for otherwise
// it answers from a list.
type account struct {
	login   string                // pattern of the request that signs in
	token   func(n int) string    // answer to it with the n-th token
	open    string                // pattern of requests that need no token
	expired string                // answer to an expired token, with status 401 unless it begins with another
	answers [][2]string           // patterns and answers
	refuse  func(line string) int // status for a request, 0 for its answer

	mu    sync.Mutex
	valid int // number of the token that is valid
	lines []string
	texts []string
}

func (a *account) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	line := r.Method + " " + r.URL.String()
	a.lines = append(a.lines, line)
	a.texts = append(a.texts, string(body))
	code, out := a.answer(r, line)
	return &http.Response{
		StatusCode: code, Request: r, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(out)), ContentLength: int64(len(out)),
	}, nil
}

func (a *account) answer(r *http.Request, line string) (int, string) {
	matches := func(pattern string) bool { return pattern != "" && regexp.MustCompile(pattern).MatchString(line) }
	if a.refuse != nil {
		if code := a.refuse(line); code != 0 {
			return code, "{}"
		}
	}
	if matches(a.login) {
		a.valid++
		return 200, a.token(a.valid)
	}
	carried := r.Header.Get("Authorization") + r.Header.Get("X-MediaBrowser-Token")
	if a.login != "" && !matches(a.open) && !strings.HasSuffix(carried, fmt.Sprintf("token-%d", a.valid)) {
		if code, text, found := strings.Cut(a.expired, " "); found && code == "400" {
			return 400, text
		}
		return 401, `{"error":"expired"}`
	}
	for _, x := range a.answers {
		if matches(x[0]) {
			return 200, x[1]
		}
	}
	return 200, "{}"
}

// count says how many requests match the pattern, and forgets none.
func (a *account) count(pattern string) int {
	re := regexp.MustCompile(pattern)
	return len(slices.DeleteFunc(slices.Clone(a.lines), func(s string) bool { return !re.MatchString(s) }))
}

// say sends a message to a URL of the account's service.
func (a *account) say(t *testing.T, sender *notifier.Sender, address string, m *notifier.Message) error {
	t.Helper()
	d, err := sender.Parse(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return sender.Send(context.Background(), m, []notifier.Target{{Destination: d}}, notifier.Options{Timeout: 10 * time.Second}).Results[0].Err
}

// oauthToken is the answer of a token endpoint (RFC 6749, section 5.1).
func oauthToken(n int) string {
	return fmt.Sprintf(`{"access_token":"token-%d","expires_in":3600,"token_type":"bearer"}`, n)
}

var accounts = []struct {
	name, url, sent string // sent is the pattern of the request with the message
	account         func() *account
}{
	{"bluesky", "bsky://ann@app-password", "createRecord", func() *account {
		return &account{
			login: "createSession", open: "resolveHandle|plc.directory", expired: `400 {"error":"ExpiredToken"}`,
			token: func(n int) string { return fmt.Sprintf(`{"accessJwt":"token-%d"}`, n) },
			answers: [][2]string{
				{"resolveHandle", `{"did":"did:plc:a"}`},
				{"plc.directory", `{"service":[{"type":"AtprotoPersonalDataServer","serviceEndpoint":"https://pds.example.org"}]}`},
			},
		}
	}},
	{"emby", "emby://ann:pa55word@media.example.org", "/Message", func() *account {
		return &account{
			login:   "AuthenticateByName",
			token:   func(n int) string { return fmt.Sprintf(`{"AccessToken":"token-%d","User":{"Id":"u"}}`, n) },
			answers: [][2]string{{`Sessions\?`, `[{"Id":"s1"}]`}},
		}
	}},
	{"matrix", "matrix://ann:pa55word@example.org/!room", "send/m.room.message", func() *account {
		return &account{
			login: "/login",
			token: func(n int) string { return fmt.Sprintf(`{"access_token":"token-%d","user_id":"@ann:example.org"}`, n) },
		}
	}},
	{"office365", "o365://ann@example.org/tenant/client/secret/bob@example.net", "sendMail", func() *account {
		return &account{login: "oauth2/v2.0/token", token: oauthToken}
	}},
	{"reddit", "reddit://ann:pa55word@app/secret/ops", "api/submit", func() *account {
		return &account{login: "access_token", token: oauthToken}
	}},
	{"ringcentral", "ringc://15551230000:pa55word@client/secret", "/sms", func() *account {
		return &account{login: "oauth/token", token: oauthToken}
	}},
	{"twist", "twist://pa55word:ann@example.org/12:8/9", "threads/add", func() *account {
		return &account{
			login: "users/login", expired: `400 {"error_code":200,"error_string":"Invalid token"}`,
			token: func(n int) string { return fmt.Sprintf(`{"token":"token-%d","default_workspace":12}`, n) },
		}
	}},
}

// A session serves many messages. When the service does not know it any more,
// one signs in once more, and the message arrives.
func TestSessionsAreKeptAndRenewed(t *testing.T) {
	for _, x := range accounts {
		t.Run(x.name, func(t *testing.T) {
			a := x.account()
			sender := notifier.NewSender(egress.NewPoolWithTransport("test", a), 0)
			for i, logins := range []int{1, 1, 2} {
				if i == 2 {
					a.valid = 100 // as after a restart of the server
				}
				before := a.count(x.sent)
				if err := a.say(t, sender, x.url, message(t, "plain")); err != nil {
					t.Fatalf("message %d: %v", i+1, err)
				}
				if got := a.count(a.login); got != logins {
					t.Errorf("message %d: %d logins, want %d", i+1, got, logins)
				}
				if a.count(x.sent) == before {
					t.Errorf("message %d was not sent", i+1)
				}
			}
		})
	}
}

// A service that refuses even a new session is asked to sign in once only.
func TestSessionsThatAreRefused(t *testing.T) {
	for _, x := range accounts {
		t.Run(x.name, func(t *testing.T) {
			a := x.account()
			a.refuse = func(line string) int {
				if regexp.MustCompile(x.sent).MatchString(line) {
					return 401
				}
				return 0
			}
			sender := notifier.NewSender(egress.NewPoolWithTransport("test", a), 0)
			if err := a.say(t, sender, x.url, message(t, "plain")); err == nil {
				t.Error("delivered")
			}
			if got := a.count(a.login); got != 1 {
				t.Errorf("%d logins, want 1", got)
			}
		})
	}
}

// With store=no nothing is kept, and the session is ended where the service
// lists sessions.
func TestSessionsThatAreNotKept(t *testing.T) {
	ends := map[string]string{"emby": "Sessions/Logout", "matrix": "/logout", "ringcentral": "oauth/revoke", "twist": "users/logout"}
	for _, x := range accounts {
		t.Run(x.name, func(t *testing.T) {
			a := x.account()
			a.open += "|oauth/revoke"
			a.open = strings.TrimPrefix(a.open, "|")
			sender := notifier.NewSender(egress.NewPoolWithTransport("test", a), 0)
			for range 2 {
				if err := a.say(t, sender, x.url+"?store=no", message(t, "plain")); err != nil {
					t.Fatal(err)
				}
			}
			if got := a.count(a.login); got != 2 {
				t.Errorf("%d logins, want 2", got)
			}
			if end := ends[x.name]; end != "" && a.count(end) != 2 {
				t.Errorf("%d sessions ended, want 2", a.count(end))
			}
		})
	}
}

// What has arrived before something failed is not sent again with the retry.
func TestRetriesDoNotRepeat(t *testing.T) {
	for _, x := range []struct {
		name, url, fails string
		want             map[string]int
		answers          [][2]string
	}{
		{
			"humhub", "humhub://token@example.org/1", "upload-files", map[string]int{"post/container": 1, "upload-files": 3},
			[][2]string{{"post/container", `{"id":42}`}},
		},
		{
			"mastodon", "toot://token@example.org", "statuses", map[string]int{"media": 1, "statuses": 2},
			[][2]string{{"media", `{"id":"m1"}`}},
		},
		{
			"matrix", "matrix://token@example.org/!room", "PUT", map[string]int{"media/v3/upload": 2, "PUT": 4},
			[][2]string{{"upload", `{"content_uri":"mxc://a/b"}`}},
		},
		{
			"twitter", "tweet://a/b/c/d", "2/tweets", map[string]int{"media/upload": 1, "2/tweets": 2},
			[][2]string{{"upload", `{"data":{"id":"7"}}`}},
		},
		{
			"webex", "webex://token/room", "messages", map[string]int{"messages": 3}, nil,
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			failed := false
			a := &account{answers: x.answers, refuse: func(line string) int {
				if !failed && regexp.MustCompile(x.fails).MatchString(line) {
					failed = true
					return 503
				}
				return 0
			}}
			sender := notifier.NewSender(egress.NewPoolWithTransport("test", a), 0)
			if err := a.say(t, sender, x.url+"?retry=1&wait=0", message(t, "attach")); err != nil {
				t.Fatal(err)
			}
			for pattern, want := range x.want {
				if got := a.count(pattern); got != want {
					t.Errorf("%d requests to %s, want %d: %s", got, pattern, want, a.lines)
				}
			}
		})
	}
}

// A retry of an event keeps its number, by which a Matrix server tells it from
// another message; different events have different ones.
func TestMatrixEventNumbers(t *testing.T) {
	fails := 1
	a := &account{refuse: func(line string) int {
		if strings.HasPrefix(line, "PUT") && fails > 0 {
			fails--
			return 502
		}
		return 0
	}}
	sender := notifier.NewSender(egress.NewPoolWithTransport("test", a), 0)
	for range 2 {
		if err := a.say(t, sender, "matrix://token@example.org/!room?retry=1&wait=0", message(t, "plain")); err != nil {
			t.Fatal(err)
		}
	}
	puts := slices.DeleteFunc(slices.Clone(a.lines), func(s string) bool { return !strings.HasPrefix(s, "PUT") })
	if len(puts) != 3 || puts[0] != puts[1] || puts[1] == puts[2] {
		t.Errorf("want two tries of one event and another event: %s", puts)
	}
}

// Text that is too long for an event is cut at a character, and goes without
// markup.
func TestMatrixLongText(t *testing.T) {
	a := new(account)
	sender := notifier.NewSender(egress.NewPoolWithTransport("test", a), 0)
	m := message(t, "notitle")
	m.Body = strings.Repeat("漢字", 20000)
	if err := a.say(t, sender, "matrix://token@example.org/!room?format=html", m); err != nil {
		t.Fatal(err)
	}
	text := a.texts[len(a.texts)-1]
	if len(text) > 65536 || len(text) < 60000 || strings.Contains(text, "formatted_body") || strings.ContainsRune(text, '\uFFFD') {
		t.Errorf("an event of %d bytes: %.60s…", len(text), text)
	}
}

// Large files go to Office 365 in pieces, to a draft that is then sent.
func TestOffice365LargeFiles(t *testing.T) {
	a := &account{
		login: "oauth2/v2.0/token", token: oauthToken, open: "upload.example.org",
		answers: [][2]string{
			{"createUploadSession$", `{"uploadUrl":"https://upload.example.org/session"}`},
			{"ann@example.org/messages$", `{"id":"draft-1"}`},
		},
	}
	sender := notifier.NewSender(egress.NewPoolWithTransport("test", a), 0)
	m := message(t, "attach")
	data := slices.Repeat([]byte("0123456789abcdef"), 8<<20/16)
	m.Attachments = append(m.Attachments, notifier.NewAttachment("dump.bin", "application/octet-stream", data))
	if err := a.say(t, sender, "o365://ann@example.org/tenant/client/secret/bob@example.net", m); err != nil {
		t.Fatal(err)
	}
	var whole string
	for i, line := range a.lines {
		if strings.HasPrefix(line, "PUT") {
			whole += a.texts[i]
		}
	}
	if whole != string(data) {
		t.Errorf("%d bytes arrived, want %d", len(whole), len(data))
	}
	for pattern, want := range map[string]int{"sendMail": 0, "messages$": 1, "draft-1/attachments$": 2, "createUploadSession$": 1, "^PUT": 3, "draft-1/send$": 1} {
		if got := a.count(pattern); got != want {
			t.Errorf("%d requests to %s, want %d: %s", got, pattern, want, a.lines)
		}
	}
	if !strings.Contains(strings.Join(a.texts, ""), base64.StdEncoding.EncodeToString(pixel)) {
		t.Error("the small files are missing")
	}
}
