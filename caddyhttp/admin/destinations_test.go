package admin_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/admin"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
)

// TestDestinations checks what people see of a destination that is down and comes
// back: events, metrics, the admin API.
func TestDestinations(t *testing.T) {
	p, good, watch := gatewaytest.NewPager(t, http.StatusServiceUnavailable),
		gatewaytest.NewPager(t, http.StatusOK), gatewaytest.NewPager(t, http.StatusOK)
	caddyhttptest.Serve(t, `
	notify {
		queue {
			path "`+t.TempDir()+`"
		}
		key k {
			url json://user:secretsecret@`+strings.TrimPrefix(p.URL, "http://")+`/
		}
		key g {
			url `+good.NotifyURL()+`
		}
		key w {
			url `+watch.NotifyURL()+`
		}
	}
	events {
		on notify_down notify w
		on notify_up notify w
	}`, "")
	post := func(key string) {
		t.Helper()
		if status, text := caddyhttptest.Send(t.Context(), t, "/prefix/notify/"+key, "body=confidential"); status != http.StatusOK {
			t.Fatalf("status %d %s", status, text)
		}
	}
	list := func() (all admin.Destinations) {
		t.Helper()
		status, text := ask(t, "GET", "/notify/destinations", "")
		if err := json.Unmarshal([]byte(text), &all); status != 200 || err != nil || strings.Contains(text, "secretsecret") {
			t.Fatalf("status %d, %v\n%s", status, err, text)
		}
		return all
	}
	if all := list(); len(all.Destinations) != 3 || all.Destinations[0].State != metrics.StateUnknown {
		t.Errorf("before the first message: %+v", all)
	}
	post("g")
	for range 3 {
		post("k")
	}
	gatewaytest.Eventually(t, func() bool { return watch.Count() == 1 })
	if a := watch.Got()[0]; a.Title != "Destination down (key k)" || !strings.Contains(a.Message, "503") ||
		!strings.Contains(a.Message, "Service: JSON") || strings.Contains(a.Message, "secretsecret") {
		t.Errorf("told %+v", a)
	}
	gatewaytest.Eventually(t, func() bool { all := list(); return all.Down == 1 && all.Destinations[0].Waiting == 3 })
	d := list().Destinations[0]
	if d.State != metrics.StateDown || len(d.Keys) != 1 || d.Keys[0] != "k" || d.FailingSince.IsZero() ||
		d.WaitingSince.IsZero() || !strings.Contains(d.LastError, "503") || d.Service != "JSON" {
		t.Errorf("%+v", d)
	}
	if last := list().Destinations[2]; last.State != metrics.StateKnown || last.LastSuccess.IsZero() {
		t.Errorf("the best: %+v", last)
	}
	if status, text := ask(t, "GET", "/notify/keys/k", ""); status != 200 ||
		!strings.Contains(text, `"state":"down"`) || !strings.Contains(text, `"waiting":3`) {
		t.Errorf("the key: status %d %s", status, text)
	}
	if _, text := ask(t, "GET", "/metrics", ""); !strings.Contains(text, "\n"+`caddy_notify_destinations{state="down"} 1`) {
		t.Error("the metric is missing")
	}
	p.Answer(http.StatusOK)
	if status, text := ask(t, "POST", "/notify/destinations/"+d.ID+"/retry", ""); status != 200 ||
		text != `{"deliveries":3,"waiting":3,"dead":0}`+"\n" {
		t.Errorf("retry: status %d %s", status, text)
	}
	gatewaytest.Eventually(t, func() bool { return watch.Count() == 2 && list().Down == 0 })
	if a := watch.Got()[1]; a.Title != "Destination is back (key k)" || !strings.Contains(a.Message, "It was down for") {
		t.Errorf("told %+v", a)
	}
	// A destination that refuses for good fails for people, too.
	good.Answer(http.StatusUnauthorized)
	caddyhttptest.Send(t.Context(), t, "/prefix/notify/g", "body=confidential")
	if all := list(); all.Failing != 1 || all.Destinations[0].State != metrics.StateFailing ||
		all.Destinations[0].FailingSince.IsZero() || !strings.Contains(all.Destinations[0].LastError, "401") {
		t.Errorf("with a wrong token: %+v", all)
	}
	if _, text := ask(t, "GET", "/metrics", ""); !strings.Contains(text, "\n"+`caddy_notify_destinations{state="failing"} 1`) {
		t.Error("the metric does not count a wrong token")
	}
	if status, _ := ask(t, "POST", "/notify/destinations/x/retry", ""); status != 404 {
		t.Errorf("an unknown destination: status %d", status)
	}
	if status, _ := ask(t, "POST", "/notify/destinations/"+strings.Repeat("A", len(d.ID))+"/retry", ""); status != 404 {
		t.Errorf("another unknown destination: status %d", status)
	}
}
