package caddyhttp

import (
	"net/http"
	"strings"
	"testing"
)

// TestDeviceLongTitle checks that an alert with a long title reaches a phone: its title is
// cut as its text is, and as much of both as possible is there.
func TestDeviceLongTitle(t *testing.T) {
	s := newPushService(t)
	h := newQueueGateway(t, t.TempDir(), "", pushOptions("")+"key k")
	s.subscribe(t, h, "phone")
	for _, title := range []string{strings.Repeat("x", 4000), strings.Repeat("ä", 4000), strings.Repeat(`"\`, 4000), strings.Repeat("\x01", 4000), strings.Repeat("word ", 800)} {
		for _, text := range []string{"body", strings.Repeat("ä", 9000)} {
			before := len(s.all())
			got := askJSON(t, h, http.MethodPost, "/notify/k", map[string]string{"title": title, "body": text, "type": "failure", "incident": "i"})
			all := s.all()
			if got.status != http.StatusOK || len(all) != before+1 {
				t.Errorf("%.3q, %.3q: status %d %s, %d pushes", title, text, got.status, got.body, len(all)-before)
				continue
			}
			p := all[before]
			cut, ok := strings.CutSuffix(p.payload.Title, "…")
			if p.size > 4096 || !ok || len(cut) < 200 || !strings.HasPrefix(title, cut) {
				t.Errorf("%.3q, %.3q: %d bytes, the title is %q", title, text, p.size, p.payload.Title)
			}
			if text == "body" && p.payload.Text != text || text != "body" && p.size < 4080 {
				t.Errorf("%.3q, %.3q: %d bytes, the text has %d", title, text, p.size, len(p.payload.Text))
			}
		}
	}
}
