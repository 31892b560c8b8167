package office365

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// Large files are uploaded in parts to a draft, which is then sent.
func TestLargeFiles(t *testing.T) {
	a := &servicetest.TokenAPI{
		SignIn: "oauth2/v2.0/token", Token: servicetest.OAuthToken, Open: "upload.example.org",
		Answers: [][2]string{
			{"createUploadSession$", `{"uploadUrl":"https://upload.example.org/session"}`},
			{"ann@example.org/messages$", `{"id":"draft-1"}`},
		},
	}
	sender := servicetest.NewSenderOver(t, a)
	m := servicetest.Message(t, "attach")
	data := slices.Repeat([]byte("0123456789abcdef"), 8<<20/16)
	m.Attachments = append(m.Attachments, notifier.NewAttachment("dump.bin", "application/octet-stream", data))
	if err := servicetest.Send(t, sender, "o365://ann@example.org/tenant/client/secret/bob@example.net", m, 10*time.Second).Err; err != nil {
		t.Fatal(err)
	}
	var whole string
	for i, line := range a.Requests {
		if strings.HasPrefix(line, "PUT") {
			whole += a.Bodies[i]
		}
	}
	if whole != string(data) {
		t.Errorf("%d bytes arrived, want %d", len(whole), len(data))
	}
	for pattern, want := range map[string]int{
		"sendMail": 0, "messages$": 1, "draft-1/attachments$": 2,
		"createUploadSession$": 1, "^PUT": 3, "draft-1/send$": 1,
	} {
		if got := a.Count(pattern); got != want {
			t.Errorf("%d requests to %s, want %d: %s", got, pattern, want, a.Requests)
		}
	}
	if !strings.Contains(strings.Join(a.Bodies, ""), base64.StdEncoding.EncodeToString(servicetest.Picture)) {
		t.Error("the small files are missing")
	}
}
