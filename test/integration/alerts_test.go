package integration

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestRepeatedAlertsPostgres checks that gateways with one database know the alerts of incident
// tools at all of them, also after a start: an alert that is repeated at another gateway is not
// told, and an alert that was closed at one is told when it opens at another. While the database is
// away, every alert is told.
func TestRepeatedAlertsPostgres(t *testing.T) {
	t.Parallel()
	p, a := newPostgres(t), newTold(t)
	run := func() *queueGateway { return newQueueGatewayWith(t, p, "key ops {\nurl "+a.url+"\n}\n", "") }
	gateways := []*queueGateway{run(), run()}
	post := func(g int, path, body string) string {
		t.Helper()
		resp, err := http.Post(gateways[g].url+"/notify/ops/"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusAccepted {
			t.Fatalf("%s %s: %d %s, %v", path, body, resp.StatusCode, b, err)
		}
		return string(b)
	}
	open := func(priority string) [2]string {
		return [2]string{"opsgenie/v2/alerts", fmt.Sprintf(`{"alias":"disk","message":"Disk full","priority":%q}`, priority)}
	}
	event := func(action string) [2]string {
		return [2]string{
			"pagerduty/v2/enqueue",
			fmt.Sprintf(`{"event_action":%q,"dedup_key":"disk","payload":{"summary":"Disk full","severity":"critical","source":"db1"}}`, action),
		}
	}
	alert := func(action string) [2]string { return [2]string{"opsgenie/v2/alerts/disk/" + action, "{}"} }
	for i, tt := range []struct {
		gateway int
		request [2]string
		want    string // the type of what is told; "" for nothing
	}{
		{0, open("P3"), "warning"},
		{1, open("P3"), ""},
		{0, open("P3"), ""},
		{1, open("P1"), "failure"},
		{0, open("P1"), ""},
		{0, alert("acknowledge"), "info"},
		{1, open("P1"), ""},
		{1, alert("close"), "success"},
		{0, open("P1"), "failure"},
		{1, open("P1"), ""},
		{1, event("trigger"), "failure"},
		{0, event("trigger"), ""},
		{0, event("resolve"), "success"},
		{1, event("trigger"), "failure"},
	} {
		_, before := a.last()
		answer := post(tt.gateway, tt.request[0], tt.request[1])
		if tt.want != "" {
			eventually(t, "it is told", func() bool { _, n := a.last(); return n > before })
		}
		if kind, n := a.last(); tt.want != "" && kind != tt.want || tt.want == "" && n > before {
			t.Fatalf("step %d: told %s, want %q: %s", i, kind, tt.want, answer)
		}
		untold := strings.Contains(answer, "Nothing was sent") || strings.Contains(answer, "nothing about it is new")
		if strings.Contains(tt.request[0], "opsgenie") && untold != (tt.want == "") {
			t.Errorf("step %d: the answer is %s", i, answer)
		}
	}

	gateways[0].stop()
	gateways = slices.Insert(gateways[1:], 0, run())
	_, before := a.last()
	post(0, open("P1")[0], open("P1")[1])
	if _, n := a.last(); n != before {
		t.Errorf("after a restart, told %q", a.all()[before:])
	}

	p.stop(syscall.SIGQUIT)
	for g := range gateways {
		_, before := a.last()
		post(g, open("P1")[0], open("P1")[1])
		if _, n := a.last(); n != before+1 {
			t.Errorf("while the database is away, told %q", a.all()[before:])
		}
	}
}
