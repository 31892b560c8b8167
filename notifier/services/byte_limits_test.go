package services

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// Requests to services with a limit in bytes stay within it.
func TestLimitsInBytes(t *testing.T) {
	const rest = 150 // bytes of a request in addition to the text
	for address, limit := range map[string]int{
		"bark://bark.example.org/device-1?image=no": barkMaxText,
		"dingtalk://abc123":                         20000,
		"dingtalk://abc123?format=markdown":         20000,
		"feishu://abc123":                           larkText,
		"lark://abc123":                             larkText,
		"ntfy://push.example.org/ops":               4096,
		"webex://bot-token/room-1":                  7439,
		"wecombot://botkey":                         2048,
	} {
		requests := 0
		service := servicetest.API(func(_ *http.Request, body string) (int, string) {
			requests++
			if len(body) > limit+rest {
				t.Errorf("%s: %d bytes, want at most %d", address, len(body), limit+rest)
			}
			return 200, "{}"
		})
		sep := "?"
		if strings.Contains(address, "?") {
			sep = "&"
		}
		m := &notifier.Message{Title: "Größe", Body: strings.Repeat("Größe über Maß ", 2000)}
		if err := service.Destination(t, address+sep+"overflow=split")(m); err != nil || requests < 2 {
			t.Errorf("%s: %d requests, %v", address, requests, err)
		}
	}
}
