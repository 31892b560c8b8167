package dispatch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestAlertTitles checks that what somebody does with an alert that has only a name arrives
// with the title of the alert, if the gateway knows it.
func TestAlertTitles(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{Site: site.Options{Keys: []site.KeyOptions{
		gatewaytest.Key("ops", s.NotifyURL("/ops")+"?format=text"), gatewaytest.Key("web", s.NotifyURL("/web")+"?format=text"),
	}}})
	const hash = "f2ec6b1d04f60d55b8d04b4a2ba0a9cd5cf07acc1a35cf0b1ed1ac1a09ea4d7f"
	for _, tt := range []struct{ target, body, title, message string }{
		{"/notify/ops/opsgenie/v2/alerts/" + hash + "/close", `{}`, "", "Closed: f2ec6b1d…"},
		{
			"/notify/ops/opsgenie/v2/alerts", `{"message":"[FIRING:1, RESOLVED:1] DiskFull (db1)","alias":"` + hash + `"}`, "",
			"[FIRING:1, RESOLVED:1] DiskFull (db1)",
		},
		{"/notify/ops/opsgenie/v2/alerts/" + hash + "/notes", `{"note":"f2ec6b1d… is db1"}`, "Note: DiskFull (db1)", "f2ec6b1d… is db1"},
		{"/notify/ops/opsgenie/v2/alerts/" + hash + "/close", `{}`, "", "Closed: DiskFull (db1)"},
		{"/notify/web/opsgenie/v2/alerts/" + hash + "/close", `{}`, "", "Closed: f2ec6b1d…"},
		{"/notify/ops/pagerduty", `{"event_action":"resolve","dedup_key":"` + hash + `"}`, "", "Resolved: f2ec6b1d…"},
		{"/notify/ops/pagerduty", `{"event_action":"trigger","dedup_key":"db1/disk","payload":{"summary":"The disk of db1 is ` +
			`full","source":"zabbix"}}`, "The disk of db1 is full", "Source: zabbix"},
		{"/notify/ops/pagerduty", `{"event_action":"acknowledge","dedup_key":"db1/disk"}`, "", "Acknowledged: The disk of db1 is full"},
		{
			"/notify/ops/pagerduty", `{"event_action":"resolve","dedup_key":"db1/disk","payload":{"summary":"The disk of db1 is fine"}}`, "",
			"Resolved: The disk of db1 is fine",
		},
		{"/notify/ops/pagerduty", `{"event_action":"resolve","dedup_key":"db1/disk"}`, "", "Resolved: The disk of db1 is full"},
		// The name of an alert can be a part of the words around it.
		{
			"/notify/ops/pagerduty", `{"event_action":"trigger","dedup_key":"k","payload":{"summary":"Disk full","source":"zabbix"}}`, "Disk full",
			"Source: zabbix",
		},
		{"/notify/ops/pagerduty", `{"event_action":"acknowledge","dedup_key":"k"}`, "", "Acknowledged: Disk full"},
		{"/notify/ops/pagerduty", `{"event_action":"resolve","dedup_key":"k","client":"k"}`, "", "Resolved: Disk full"},
		{"/notify/ops/opsgenie/v2/alerts", `{"message":"Load of e is high","alias":"e"}`, "", "Load of e is high"},
		{"/notify/ops/opsgenie/v2/alerts/e/acknowledge", `{}`, "", "Acknowledged: Load of e is high"},
		{"/notify/ops/opsgenie/v2/alerts/e/notes", `{"note":"e"}`, "Note: Load of e is high", "e"},
		{"/notify/ops/opsgenie/v2/alerts/e/assign", `{"owner":{"name":"eve"}}`, "Assigned: Load of e is high", "eve"},
		{"/notify/ops/opsgenie/v2/alerts/e/priority", `{"priority":"P1"}`, "", "Priority P1: Load of e is high"},
		{"/notify/ops/opsgenie/v2/alerts/e/close", `{"user":"e"}`, "Closed: Load of e is high", "By: e"},
		{"/notify/ops/opsgenie/v2/alerts", `{"message":"Tab","alias":"a\tb"}`, "", "Tab"},
		{"/notify/ops/opsgenie/v2/alerts/a%09b/close", `{}`, "", "Closed: Tab"},
	} {
		if got := g.Post(tt.target, gatewaytest.TypeJSON, tt.body); got.Status != 202 {
			t.Errorf("%s: status %d: %s", tt.target, got.Status, got.Body)
		}
		if got := s.One(t); got.Title != tt.title || got.Message != tt.message {
			t.Errorf("%s %s: got %q, %q", tt.target, tt.body, got.Title, got.Message)
		}
	}
}

// TestAlertTitlesAreBounded checks the number and the length of the titles that are kept.
func TestAlertTitlesAreBounded(t *testing.T) {
	t.Parallel()
	var x dispatch.AlertTitles
	for i := range dispatch.MaxAlertTitles + 10 {
		x.Note(fmt.Sprint(i), &notifier.Message{Title: strings.Repeat("x", 1000), Type: notifier.Failure})
	}
	known := 0
	for i := range dispatch.MaxAlertTitles + 10 {
		if x.Get(fmt.Sprint(i)) != "" {
			known++
		}
	}
	last := fmt.Sprint(dispatch.MaxAlertTitles + 9)
	if known != dispatch.MaxAlertTitles || len(x.Get(last)) > dispatch.MaxAlertTitle+len("…") || x.Get(last) == "" {
		t.Errorf("%d titles, the last has %d bytes", known, len(x.Get(last)))
	}
}
