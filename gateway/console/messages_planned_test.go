package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestConsolePlanned checks that planned messages are listed first, that a button sends one now and
// another cancels one, and that the page of a planned message leads to its outcome.
func TestConsolePlanned(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, troubled(t.TempDir(), s))
	plan := func(form string) string {
		t.Helper()
		got := g.PostForm("/notify/fine", form)
		if got.Status != http.StatusOK {
			t.Fatalf("status %d: %s", got.Status, got.Body)
		}
		return got.JSON(t).ID
	}
	later, soon := plan("body=confidential&send_at=3h"), plan("body=confidential&send_at=2h")
	page := func(path string) string { return get(g, path, browser).Body }
	list := page("/notify/console/messages")
	if i, j := strings.Index(list, soon), strings.Index(list, later); i < 0 || j < i || !strings.Contains(list, "Planned") ||
		strings.Contains(list, "confidential") {
		t.Errorf("the list: %s", list)
	}
	for _, query := range []string{"?key=ops", "?state=failed", "?type=warning"} {
		if strings.Contains(page("/notify/console/messages"+query), `id="planned"`) {
			t.Errorf("%s lists planned messages", query)
		}
	}
	if body := page("/notify/console/messages/" + soon); !strings.Contains(body, "Send now") || !strings.Contains(body, ">Cancel<") ||
		!strings.Contains(body, "looked up when the message is due") {
		t.Errorf("the page: %s", body)
	}
	if r := submit(g, "/notify/console/messages/"+later+"?drop", nil); r.Status != http.StatusSeeOther {
		t.Errorf("cancel: status %d: %s", r.Status, r.Body)
	}
	if r := submit(g, "/notify/console/messages/"+soon+"?retry", nil); r.Status != http.StatusSeeOther {
		t.Errorf("send now: status %d: %s", r.Status, r.Body)
	}
	gatewaytest.Eventually(t, func() bool { return strings.Contains(page("/notify/console/messages/"+soon), "Delivered") })
	if body := page("/notify/console/messages/" + later); !strings.Contains(body, "Cancelled") {
		t.Errorf("the cancelled one: %s", body)
	}
	list = page("/notify/console/messages")
	if strings.Contains(list, `id="planned"`) || strings.Contains(list, soon) {
		t.Errorf("the list afterwards: %s", list)
	}
}
