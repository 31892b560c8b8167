package services

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// report is what comes of a message to a URL of the service, one request at a
// time.
func (f pushService) report(t *testing.T, address string, m *notifier.Message) *notifier.Report {
	t.Helper()
	var mu sync.Mutex
	one := pushService(func(q *http.Request, body string) (int, string) {
		mu.Lock()
		defer mu.Unlock()
		return f(q, body)
	})
	sender := notifier.NewSender(egress.NewPoolWithTransport("test", one), 0)
	d, err := sender.Parse(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return sender.Send(context.Background(), m, []notifier.Target{{Destination: d}}, notifier.Options{Timeout: 10 * time.Second})
}

const blueskyDocument = `{"service": [{"type": "AtprotoPersonalDataServer", "serviceEndpoint": "https://pds.example.org"}]}`

// filesRefused are services that take files, and how to tell the requests that
// a file is refused with.
var filesRefused = []struct {
	name, url string
	file      string      // part of the method, address or body of such a request
	answers   [][2]string // parts of the address, and answers
	first     bool        // the text goes before the files
}{
	{name: "bluesky", url: "bsky://ann@app-password", file: "uploadBlob", answers: [][2]string{
		{"resolveHandle", `{"did": "did:plc:a"}`}, {"did:plc:a", blueskyDocument}, {"createSession", `{"accessJwt": "token"}`},
		{"uploadBlob", `{"blob": {"ref": "r"}}`},
	}},
	{name: "bluesky, posting", url: "bsky://ann@app-password", file: `"embed"`, answers: [][2]string{
		{"resolveHandle", `{"did": "did:plc:a"}`}, {"did:plc:a", blueskyDocument}, {"createSession", `{"accessJwt": "token"}`},
		{"uploadBlob", `{"blob": {"ref": "r"}}`},
	}},
	{name: "discord", url: "discord://1234567890/token?batch=no", file: `filename="`, first: true},
	{name: "mastodon", url: "toot://token@example.org?batch=no", file: "/media", answers: [][2]string{{"/media", `{"id": "m1"}`}}},
	{name: "mastodon, posting", url: "toot://token@example.org?batch=no", file: "media_ids", answers: [][2]string{{"/media", `{"id": "m1"}`}}},
	{name: "matrix", url: "matrix://token@example.org/!room/!other", file: "/upload", answers: [][2]string{{"/upload", `{"content_uri": "mxc://a/b"}`}}},
	{name: "matrix, posting", url: "matrix://token@example.org/!room", file: `"url":"mxc://`, answers: [][2]string{{"/upload", `{"content_uri": "mxc://a/b"}`}}, first: true},
	{name: "mattermost", url: "mmosts://example.org/token?mode=bot&to=channel", file: "/files", answers: [][2]string{{"/files", `{"file_infos": [{"id": "f"}]}`}}},
	{name: "mattermost, posting", url: "mmosts://example.org/token?mode=bot&to=channel", file: "file_ids", answers: [][2]string{{"/files", `{"file_infos": [{"id": "f"}]}`}}},
	{name: "ntfy", url: "ntfys://example.org/topic", file: "filename="},
	{name: "pushbullet", url: "pbul://token", file: "/upload-request", answers: [][2]string{
		{"/upload-request", `{"file_name": "f", "file_type": "t", "file_url": "https://dl.example.com/f", "upload_url": "https://upload.example.com/f"}`},
	}},
	{name: "pushbullet, pushing", url: "pbul://token", file: "file_url", first: true, answers: [][2]string{
		{"/upload-request", `{"file_name": "f", "file_type": "t", "file_url": "https://dl.example.com/f", "upload_url": "https://upload.example.com/f"}`},
	}},
	{name: "signal", url: "signal://example.org/15551234567/15557654321/15557654322", file: "base64_attachments"},
	{name: "slack", url: "slack://xoxb-1-abc/#ops", file: "files.slack.com", first: true, answers: [][2]string{
		{"chat.postMessage", `{"ok": true, "channel": "C1"}`},
		{"getUploadURL", `{"ok": true, "upload_url": "https://files.slack.com/f", "file_id": "F1"}`},
	}},
	{name: "telegram", url: "tgram://123456789:abcdefg_hijklmnop/5?image=yes", file: `filename="`},
	{name: "webex", url: "webex://token/room?mode=bot", file: `filename="`},
}

// A text is not lost because of the files that come with it: whichever of them
// is refused, it arrives once at each target, and the message counts as failed.
func TestRefusedFiles(t *testing.T) {
	for _, x := range filesRefused {
		for _, taken := range []int{0, 1} { // requests with files that are not refused
			for _, code := range []int{400, 413} {
				t.Run(fmt.Sprintf("%s, %d taken, %d", x.name, taken, code), func(t *testing.T) {
					texts, files := 0, 0
					m := message(t, "plain")
					for _, name := range []string{"a.png", "b.png", "c.png"} {
						m.Attachments = append(m.Attachments, notifier.NewAttachment(name, "image/png", pixel))
					}
					service := pushService(func(q *http.Request, body string) (int, string) {
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
					r := service.report(t, x.url, m).Results[0]
					if files <= taken {
						return // all of them go in one request
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
						t.Errorf("the result does not tell that the text has arrived: %v", r.Err)
					}
				})
			}
		}
	}
}

// The text of a message to Telegram that stands behind its files, and one that
// is longer than a message may be, arrive as well.
func TestTelegramRefusedFiles(t *testing.T) {
	for name, body := range map[string]string{"short": strings.Repeat("ö", 1500), "long": strings.Repeat("ö", 5000)} {
		for _, content := range []string{"before", "after"} {
			t.Run(name+" "+content, func(t *testing.T) {
				length, files := 0, 0
				m := message(t, "attach")
				m.Title, m.Body = "", body
				r := pushService(func(_ *http.Request, body string) (int, string) {
					n := strings.Count(body, "ö")
					switch file := strings.Contains(body, `filename="`); {
					case file && files == 1:
						return 413, ""
					case file:
						files++
					case n > 4096:
						return 400, `{"ok": false, "description": "Bad Request: message is too long"}`
					}
					length += n
					return 200, `{"ok": true}`
				}).report(t, "tgram://123456789:abcdefg_hijklmnop/5?content="+content, m).Results[0]
				if length != utf8.RuneCountInString(body) || files != 1 || r.Err == nil {
					t.Errorf("%d characters and %d files arrived: %v", length, files, r.Err)
				}
			})
		}
	}
}
