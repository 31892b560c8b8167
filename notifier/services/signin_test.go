package services

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

var accounts = []struct {
	name, url, sent string // sent is the pattern of the request with the message
	account         func() *servicetest.TokenAPI
}{
	{"bluesky", "bsky://ann@app-password", "createRecord", func() *servicetest.TokenAPI {
		return &servicetest.TokenAPI{
			SignIn: "createSession", Open: "resolveHandle|plc.directory", Expired: `400 {"error":"ExpiredToken"}`,
			Token: func(n int) string { return fmt.Sprintf(`{"accessJwt":"token-%d"}`, n) },
			Answers: [][2]string{
				{"resolveHandle", `{"did":"did:plc:a"}`},
				{"plc.directory", `{"service":[{"type":"AtprotoPersonalDataServer","serviceEndpoint":"https://pds.example.org"}]}`},
			},
		}
	}},
	{"emby", "emby://ann:pa55word@media.example.org", "/Message", func() *servicetest.TokenAPI {
		return &servicetest.TokenAPI{
			SignIn:  "AuthenticateByName",
			Token:   func(n int) string { return fmt.Sprintf(`{"AccessToken":"token-%d","User":{"Id":"u"}}`, n) },
			Answers: [][2]string{{`Sessions\?`, `[{"Id":"s1"}]`}},
		}
	}},
	{"matrix", "matrix://ann:pa55word@example.org/!room", "send/m.room.message", func() *servicetest.TokenAPI {
		return &servicetest.TokenAPI{
			SignIn: "/login",
			Token:  func(n int) string { return fmt.Sprintf(`{"access_token":"token-%d","user_id":"@ann:example.org"}`, n) },
			Refuse: refuseEncryption,
		}
	}},
	{"office365", "o365://ann@example.org/tenant/client/secret/bob@example.net", "sendMail", func() *servicetest.TokenAPI {
		return &servicetest.TokenAPI{SignIn: "oauth2/v2.0/token", Token: servicetest.OAuthToken}
	}},
	{"reddit", "reddit://ann:pa55word@app/secret/ops", "api/submit", func() *servicetest.TokenAPI {
		return &servicetest.TokenAPI{SignIn: "access_token", Token: servicetest.OAuthToken}
	}},
	{"ringcentral", "ringc://15551230000:pa55word@client/secret", "/sms", func() *servicetest.TokenAPI {
		return &servicetest.TokenAPI{SignIn: "oauth/token", Token: servicetest.OAuthToken}
	}},
	{"twist", "twist://pa55word:ann@example.org/12:8/9", "threads/add", func() *servicetest.TokenAPI {
		return &servicetest.TokenAPI{
			SignIn: "users/login", Expired: `400 {"error_code":200,"error_string":"Invalid token"}`,
			Token: func(n int) string { return fmt.Sprintf(`{"token":"token-%d","default_workspace":12}`, n) },
		}
	}},
}

// refuseEncryption answers for a homeserver of Matrix without encrypted rooms.
func refuseEncryption(request string) int {
	if strings.HasSuffix(request, "/state/m.room.encryption") {
		return 404
	}
	return 0
}

// A session is used for many messages. When the service no longer accepts it,
// the message is sent in a new one.
func TestSessionReused(t *testing.T) {
	for _, x := range accounts {
		t.Run(x.name, func(t *testing.T) {
			a := x.account()
			sender := servicetest.NewSenderOver(t, a)
			for i, logins := range []int{1, 1, 2} {
				if i == 2 {
					a.Valid = 100 // as after a restart of the server
				}
				before := a.Count(x.sent)
				if err := servicetest.Send(t, sender, x.url, servicetest.Message(t, "plain"), 10*time.Second).Err; err != nil {
					t.Fatalf("message %d: %v", i+1, err)
				}
				if got := a.Count(a.SignIn); got != logins {
					t.Errorf("message %d: %d logins, want %d", i+1, got, logins)
				}
				if a.Count(x.sent) == before {
					t.Errorf("message %d was not sent", i+1)
				}
			}
		})
	}
}

// If the service refuses even a new session, there is no further sign-in.
func TestSessionRefused(t *testing.T) {
	for _, x := range accounts {
		t.Run(x.name, func(t *testing.T) {
			a := x.account()
			a.Refuse = func(line string) int {
				if regexp.MustCompile(x.sent).MatchString(line) {
					return 401
				}
				return 0
			}
			sender := servicetest.NewSenderOver(t, a)
			if err := servicetest.Send(t, sender, x.url, servicetest.Message(t, "plain"), 10*time.Second).Err; err == nil {
				t.Error("delivered")
			}
			if got := a.Count(a.SignIn); got != 1 {
				t.Errorf("%d logins, want 1", got)
			}
		})
	}
}

// With store=no each message has its own session, which is ended if the service
// has a request for that.
func TestSessionNotStored(t *testing.T) {
	ends := map[string]string{"emby": "Sessions/Logout", "matrix": "/logout", "ringcentral": "oauth/revoke", "twist": "users/logout"}
	for _, x := range accounts {
		t.Run(x.name, func(t *testing.T) {
			a := x.account()
			a.Open += "|oauth/revoke"
			a.Open = strings.TrimPrefix(a.Open, "|")
			sender := servicetest.NewSenderOver(t, a)
			for range 2 {
				if err := servicetest.Send(t, sender, x.url+"?store=no", servicetest.Message(t, "plain"), 10*time.Second).Err; err != nil {
					t.Fatal(err)
				}
			}
			if got := a.Count(a.SignIn); got != 2 {
				t.Errorf("%d logins, want 2", got)
			}
			if end := ends[x.name]; end != "" && a.Count(end) != 2 {
				t.Errorf("%d sessions ended, want 2", a.Count(end))
			}
		})
	}
}

// A retry does not repeat the steps that succeeded.
func TestRetryDoesNotRepeat(t *testing.T) {
	for _, x := range []struct {
		name, url, fails string
		want             map[string]int
		answers          [][2]string
	}{
		{
			"humhub", "humhub://token@example.org/1", "upload-files",
			map[string]int{"post/container": 1, "upload-files": 3},
			[][2]string{{"post/container", `{"id":42}`}},
		},
		{
			"mastodon", "toot://token@example.org", "statuses",
			map[string]int{"media": 1, "statuses": 2},
			[][2]string{{"media", `{"id":"m1"}`}},
		},
		{
			"matrix", "matrix://token@example.org/!room", "PUT",
			map[string]int{"media/v3/upload": 2, "PUT": 4},
			[][2]string{{"upload", `{"content_uri":"mxc://a/b"}`}},
		},
		{
			"twitter", "tweet://a/b/c/d", "2/tweets",
			map[string]int{"media/upload": 1, "2/tweets": 2},
			[][2]string{{"upload", `{"data":{"id":"7"}}`}},
		},
		{
			"webex", "webex://token/room", "messages", map[string]int{"messages": 3}, nil,
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			failed := false
			a := &servicetest.TokenAPI{Answers: x.answers, Refuse: func(line string) int {
				if !failed && regexp.MustCompile(x.fails).MatchString(line) {
					failed = true
					return 503
				}
				return refuseEncryption(line)
			}}
			sender := servicetest.NewSenderOver(t, a)
			if err := servicetest.Send(t, sender, x.url+"?retry=1&wait=0", servicetest.Message(t, "attach"), 10*time.Second).Err; err != nil {
				t.Fatal(err)
			}
			for pattern, want := range x.want {
				if got := a.Count(pattern); got != want {
					t.Errorf("%d requests to %s, want %d: %s", got, pattern, want, a.Requests)
				}
			}
		})
	}
}
