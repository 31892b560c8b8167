package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

const addressOfOps = "https://alerts.example.com/notify/ops"

// TestPrograms posts what well-known programs send to the addresses that
// docs/programs.md gives for them. The bodies are shortened from the programs'
// documentation and source code, with all fields that the gateway knows.
func TestPrograms(t *testing.T) {
	g := startGateway(t)
	seen := map[string]bool{}
	for _, tt := range []struct {
		name, query, body string
		want              message
	}{
		// https://github.com/louislam/uptime-kuma, server/notification-providers/webhook.js
		{
			"Uptime Kuma", ":msg=body&:title=Uptime+Kuma", `{
			"heartbeat": {"monitorID": 1, "status": 0, "time": "2026-01-02 03:04:05.678", "msg": "connect ECONNREFUSED 192.0.2.1:443", "important": true, "duration": 60},
			"monitor": {"id": 1, "name": "Shop", "type": "http", "url": "https://shop.example.com", "tags": []},
			"msg": "[Shop] [🔴 Down] connect ECONNREFUSED 192.0.2.1:443"}`,
			message{"Uptime Kuma", "[Shop] [🔴 Down] connect ECONNREFUSED 192.0.2.1:443", "info"},
		},
		{
			"Uptime Kuma, the test button", ":msg=body&:title=Uptime+Kuma", `{"heartbeat": null, "monitor": null, "msg": "Testing"}`,
			message{"Uptime Kuma", "Testing", "info"},
		},
		// https://grafana.com/docs/grafana/latest/alerting/, webhook notifier
		{
			"Grafana", ":message=body&:status=type", `{
			"receiver": "ops", "status": "firing", "orgId": 1,
			"alerts": [{"status": "firing", "labels": {"alertname": "High memory usage"}, "annotations": {"summary": "Memory is low"}, "values": {"B": 44.2}}],
			"groupLabels": {}, "commonLabels": {"team": "blue"}, "commonAnnotations": {}, "externalURL": "https://grafana.example.com/", "version": "1",
			"title": "[FIRING:1]  (blue)", "state": "alerting", "message": "**Firing**"}`,
			message{"[FIRING:1]  (blue)", "**Firing**", "failure"},
		},
		// https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
		{
			"Alertmanager", ":commonLabels.alertname=title&:alerts[0].annotations.summary=body&:status=type", `{
			"version": "4", "receiver": "gateway", "status": "firing", "truncatedAlerts": 0, "groupLabels": {"alertname": "DiskFull"},
			"commonLabels": {"alertname": "DiskFull", "severity": "critical"}, "commonAnnotations": {}, "externalURL": "http://am.example.net",
			"alerts": [{"status": "firing", "labels": {"alertname": "DiskFull", "instance": "db1"}, "annotations": {"summary": "91% full on db1"}}]}`,
			message{"DiskFull", "91% full on db1", "failure"},
		},
		// https://github.com/truenas/middleware, alert service slack.py
		{
			"TrueNAS", ":text=body&:title=TrueNAS", `{"text": "New alert:\n* Pool tank state is DEGRADED"}`,
			message{"TrueNAS", "New alert:\n* Pool tank state is DEGRADED", "info"},
		},
		// https://github.com/dgtlmoon/changedetection.io, with json:// of Apprise
		{
			"changedetection.io", ":message=body", `{"version": "1.0", "title": "Change", "message": "https://example.com had a change.", "attachments": [], "type": "info"}`,
			message{"Change", "https://example.com had a change.", "info"},
		},
		// https://github.com/Sonarr/Sonarr, NzbDrone.Core/Notifications/Webhook
		{
			"Sonarr, an episode", ":series.title=title&:eventType=body", `{
			"eventType": "Download", "instanceName": "Sonarr", "applicationUrl": "",
			"series": {"id": 2, "title": "Gravity Falls", "type": "standard", "year": 2012, "tags": []},
			"episodes": [{"id": 67, "episodeNumber": 14, "seasonNumber": 2, "title": "The Stanchurian Candidate"}], "isUpgrade": false}`,
			message{"Gravity Falls", "Download", "info"},
		},
		{
			"Sonarr, the test button", ":series.title=title&:eventType=body", `{
			"eventType": "Test", "instanceName": "Sonarr", "applicationUrl": "",
			"series": {"id": 1, "title": "Test Title", "path": "C:\\testpath", "tvdbId": 1234, "tags": ["test-tag"]},
			"episodes": [{"id": 123, "episodeNumber": 1, "seasonNumber": 1, "title": "Test title"}]}`,
			message{"Test Title", "Test", "info"},
		},
		// https://github.com/Sonarr/Sonarr, NzbDrone.Core/Notifications/Apprise
		{
			"Sonarr, its Apprise connection", "", `{"title": "Sonarr - Test Notification", "body": "Success!", "type": "info"}`,
			message{"Sonarr - Test Notification", "Success!", "info"},
		},
		{
			"Sonarr, its health", ":message=body&:instanceName=title&:type=warning", `{
			"eventType": "Health", "instanceName": "Sonarr", "applicationUrl": "",
			"level": "error", "message": "No indexers available", "type": "IndexerRssCheck", "wikiUrl": "https://wiki.servarr.com/sonarr"}`,
			message{"Sonarr", "No indexers available", "warning"},
		},
		// https://github.com/Radarr/Radarr, NzbDrone.Core/Notifications/Webhook
		{
			"Radarr, a film", ":movie.title=title&:eventType=body", `{
			"eventType": "Grab", "instanceName": "Radarr", "movie": {"id": 1, "title": "Night of the Living Dead", "year": 1968},
			"remoteMovie": {"title": "Night of the Living Dead", "year": 1968}, "release": {"quality": "Bluray-1080p", "size": 8100000000}}`,
			message{"Night of the Living Dead", "Grab", "info"},
		},
		// https://www.home-assistant.io/integrations/notify.rest/
		{
			"Home Assistant", "", `{"body": "The garage is open", "title": "Door", "target": null}`,
			message{"Door", "The garage is open", "info"},
		},
	} {
		seen[tt.query] = true
		if err := g.post(addressOfOps+"?"+tt.query, tt.body); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := g.take(); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}

	p := readPage(t, "docs/programs.md")
	page := p.prose
	for _, b := range p.blocks {
		if b.language == "yaml" {
			page += b.text
		}
	}
	queries := regexp.MustCompile(`alerts\.example\.com/notify/ops\?([-:][^\s"`+"`"+`]*)`).FindAllStringSubmatch(page, -1)
	for _, m := range queries {
		query := strings.TrimPrefix(m[1], "-") // of a jsons:// URL
		if !seen[query] && query != ":message=body&:type=failure" {
			t.Errorf("%s: no program in the test posts to ?%s", p.path, m[1])
		}
	}
	for query := range seen {
		if !strings.Contains(page, query) {
			t.Errorf("%s: the page has no address ?%s", p.path, query)
		}
	}
}

// TestTemplates posts the bodies that docs/programs.md gives for programs in
// which the user writes the request.
func TestTemplates(t *testing.T) {
	g := startGateway(t)
	placeholders := regexp.MustCompile(`\{\{[^}]*\}\}|\$STATUS|…`)
	p := readPage(t, "docs/programs.md")
	bodies := regexp.MustCompile("(?m)`(\\{\".*\\})` \\|$").FindAllStringSubmatch(p.prose, -1)
	if len(bodies) < 4 {
		t.Fatalf("%s has only %d bodies", p.path, len(bodies))
	}
	for _, m := range bodies {
		body := placeholders.ReplaceAllString(m[1], "some text")
		body = strings.ReplaceAll(body, "$NAME_JSON", `"a \"name\""`)
		if err := g.post(addressOfOps, body); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
		if got := g.take(); got.Title == "" || !strings.Contains(got.Message, "some text") {
			t.Errorf("%s: got %+v", m[1], got)
		}
	}
}
