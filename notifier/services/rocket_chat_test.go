package services

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// Each message has its own session, with the login's user ID and token. It ends
// after the message.
func TestRocketChatSession(t *testing.T) {
	open, posted := map[string]bool{}, 0
	send := servicetest.API(func(q *http.Request, body string) (int, string) {
		token := q.Header.Get("X-Auth-Token")
		switch {
		case strings.HasSuffix(q.URL.Path, "/login"):
			if body != "password=sesame&username=joe" {
				return 401, `{"status": "error", "message": "Unauthorized"}`
			}
			token = "session" + strings.Repeat("x", posted)
			open[token] = true
			return 200, `{"status": "success", "data": {"authToken": "` + token + `", "userId": "u1"}}`
		case !open[token] || q.Header.Get("X-User-Id") != "u1":
			return 401, `{"status": "error", "message": "You must be logged in to do this."}`
		case strings.HasSuffix(q.URL.Path, "/logout"):
			delete(open, token)
			return 200, `{"status": "success"}`
		}
		posted++
		return 200, `{"success": true}`
	}).Destination(t, "rockets://joe:sesame@chat.example.com/room1")
	for range 2 {
		if err := send(servicetest.Message(t, "plain")); err != nil {
			t.Error(err)
		}
	}
	if posted != 2 || len(open) > 0 {
		t.Errorf("%d messages have arrived, and %d sessions are open", posted, len(open))
	}
}
