package device_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestDeviceLongTitle checks that an alert with a long title reaches a phone: its title is
// cut as its text is, and as much of both as possible is there.
func TestDeviceLongTitle(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewPushService(t)
	g := newGateway(t, t.TempDir(), keyK)
	s.Subscribe(t, g, "phone")
	for _, title := range []string{
		strings.Repeat("x", 4000), strings.Repeat("ä", 4000), strings.Repeat(`"\`, 4000),
		strings.Repeat("\x01", 4000), strings.Repeat("word ", 800),
	} {
		for _, text := range []string{"body", strings.Repeat("ä", 9000)} {
			before := len(s.Got())
			got := g.Ask(http.MethodPost, "/notify/k", map[string]string{"title": title, "body": text, "type": "failure", "incident": "i"})
			all := s.Got()
			if got.Status != http.StatusOK || len(all) != before+1 {
				t.Errorf("%.3q, %.3q: status %d %s, %d pushes", title, text, got.Status, got.Body, len(all)-before)
				continue
			}
			p := all[before]
			cut, ok := strings.CutSuffix(p.Payload.Title, "…")
			if p.Size > 4096 || !ok || len(cut) < 200 || !strings.HasPrefix(title, cut) {
				t.Errorf("%.3q, %.3q: %d bytes, the title is %q", title, text, p.Size, p.Payload.Title)
			}
			if text == "body" && p.Payload.Text != text || text != "body" && p.Size < 4080 {
				t.Errorf("%.3q, %.3q: %d bytes, the text has %d", title, text, p.Size, len(p.Payload.Text))
			}
		}
	}
}
