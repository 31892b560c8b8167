package services

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

const blueskyDocument = `{"service": [{"type": "AtprotoPersonalDataServer", "serviceEndpoint": "https://pds.example.org"}]}`

// fileServices lists services that send files, and how to recognize their
// requests with a file.
var fileServices = []struct {
	name, url string
	file      string      // part of the method, address or body of such a request
	answers   [][2]string // a part of the address, and the answer
	first     bool        // the text is sent before the files
}{
	{name: "bluesky", url: "bsky://ann@app-password", file: "uploadBlob", answers: [][2]string{
		{"resolveHandle", `{"did": "did:plc:a"}`},
		{"did:plc:a", blueskyDocument},
		{"createSession", `{"accessJwt": "token"}`},
		{"uploadBlob", `{"blob": {"ref": "r"}}`},
	}},
	{name: "bluesky, posting", url: "bsky://ann@app-password", file: `"embed"`, answers: [][2]string{
		{"resolveHandle", `{"did": "did:plc:a"}`},
		{"did:plc:a", blueskyDocument},
		{"createSession", `{"accessJwt": "token"}`},
		{"uploadBlob", `{"blob": {"ref": "r"}}`},
	}},
	{name: "discord", url: "discord://1234567890/token?batch=no", file: `filename="`, first: true},
	{name: "mastodon", url: "toot://token@example.org?batch=no", file: "/media", answers: [][2]string{{"/media", `{"id": "m1"}`}}},
	{name: "mastodon, posting", url: "toot://token@example.org?batch=no", file: "media_ids", answers: [][2]string{{"/media", `{"id": "m1"}`}}},
	{
		name: "matrix", url: "matrix://token@example.org/!room/!other", file: "/upload",
		answers: [][2]string{{"/upload", `{"content_uri": "mxc://a/b"}`}},
	},
	{
		name: "matrix, posting", url: "matrix://token@example.org/!room", file: `"url":"mxc://`,
		answers: [][2]string{{"/upload", `{"content_uri": "mxc://a/b"}`}}, first: true,
	},
	{
		name: "mattermost", url: "mmosts://example.org/token?mode=bot&to=channel",
		file: "/files", answers: [][2]string{{"/files", `{"file_infos": [{"id": "f"}]}`}},
	},
	{
		name: "mattermost, posting", url: "mmosts://example.org/token?mode=bot&to=channel",
		file: "file_ids", answers: [][2]string{{"/files", `{"file_infos": [{"id": "f"}]}`}},
	},
	{name: "ntfy", url: "ntfys://example.org/topic", file: "filename="},
	{name: "pushbullet", url: "pbul://token", file: "/upload-request", answers: [][2]string{
		{
			"/upload-request",
			`{"file_name": "f", "file_type": "t", "file_url": "https://dl.example.com/f", "upload_url": "https://upload.example.com/f"}`,
		},
	}},
	{name: "pushbullet, pushing", url: "pbul://token", file: "file_url", first: true, answers: [][2]string{
		{
			"/upload-request",
			`{"file_name": "f", "file_type": "t", "file_url": "https://dl.example.com/f", "upload_url": "https://upload.example.com/f"}`,
		},
	}},
	{name: "signal", url: "signal://example.org/15551234567/15557654321/15557654322", file: "base64_attachments"},
	{name: "slack", url: "slack://xoxb-1-abc/#ops", file: "files.slack.com", first: true, answers: [][2]string{
		{"chat.postMessage", `{"ok": true, "channel": "C1"}`},
		{"getUploadURL", `{"ok": true, "upload_url": "https://files.slack.com/f", "file_id": "F1"}`},
	}},
	{name: "telegram", url: "tgram://123456789:abcdefg_hijklmnop/5?image=yes", file: `filename="`},
	{name: "webex", url: "webex://token/room?mode=bot", file: `filename="`},
}

// If one of several files is refused, the text arrives once at each target, and
// the delivery fails.
func TestRefusedFiles(t *testing.T) {
	for _, x := range fileServices {
		for _, taken := range []int{0, 1} { // how many requests with files succeed
			for _, code := range []int{400, 413} {
				t.Run(fmt.Sprintf("%s, %d taken, %d", x.name, taken, code), func(t *testing.T) {
					texts, files := 0, 0
					m := servicetest.Message(t, "plain")
					for _, name := range []string{"a.png", "b.png", "c.png"} {
						m.Attachments = append(m.Attachments, notifier.NewAttachment(name, "image/png", servicetest.Picture))
					}
					service := servicetest.API(func(q *http.Request, body string) (int, string) {
						line := q.Method + " " + q.URL.String()
						if strings.Contains(line+body, x.file) {
							if files++; files > taken {
								return code, `{"error": "no"}`
							}
						}
						if strings.Contains(body+q.URL.Query().Get("message"), m.Body) {
							texts++
						}
						for _, a := range x.answers {
							if strings.Contains(line, a[0]) {
								return 200, a[1]
							}
						}
						return 200, `{"ok": true}`
					})
					r := service.Report(t, x.url, m).Results[0]
					if files <= taken {
						return // all files go in one request
					}
					targets := 1
					if strings.Contains(x.name, "signal") || strings.Contains(x.url, "/!other") {
						targets = 2
					}
					if texts != targets {
						t.Errorf("the text arrived %d times, want %d", texts, targets)
					}
					if r.Err == nil || !strings.Contains(r.Err.Error(), fmt.Sprint(code)) {
						t.Errorf("the result is %v", r.Err)
					}
					if taken == 0 && !x.first && !strings.Contains(r.Err.Error(), "the text has arrived, but not the files") {
						t.Errorf("the error does not say that the text has arrived: %v", r.Err)
					}
				})
			}
		}
	}
}
