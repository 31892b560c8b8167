package services

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// A bot looks up its channel, uploads each file once and posts once, even if a
// step fails at first.
func TestMattermostBot(t *testing.T) {
	for _, failing := range []string{"nothing", "/channels/name/", "/files", "/posts"} {
		t.Run(failing, func(t *testing.T) {
			files, posts, failed := 0, 0, false
			err := servicetest.API(func(q *http.Request, body string) (int, string) {
				switch path := q.URL.Path; {
				case q.Header.Get("Authorization") != "Bearer bot-token":
					return 401, `{"message": "Invalid or expired session"}`
				case strings.Contains(path, failing) && !failed:
					failed = true
					return 502, ""
				case path == "/chat/api/v4/teams/name/blue/channels/name/ops":
					return 200, `{"id": "c1"}`
				case path == "/chat/api/v4/files" && strings.Contains(body, "\r\n\r\nc1\r\n"):
					files++
					return 201, fmt.Sprintf(`{"file_infos": [{"id": "f%d"}]}`, files)
				case path == "/chat/api/v4/posts" && strings.Contains(body, `"channel_id":"c1","file_ids":["f1","f2"]`):
					posts++
					return 201, `{}`
				}
				return 400, `{"message": "Invalid or missing parameters in the request body"}`
			}).Destination(t, "mmosts://mattermost.example.com/chat/bot-token?team=blue&to=#ops&retry=1&wait=0")(servicetest.Message(t, "attach"))
			if err != nil || files != 2 || posts != 1 {
				t.Errorf("%d files, %d posts: %v", files, posts, err)
			}
		})
	}
}
