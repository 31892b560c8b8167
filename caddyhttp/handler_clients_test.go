package caddyhttp

import "testing"

// TestClients says what is made of the requests of well-known programs, with
// the addresses that the README gives. The bodies are cut down from what the
// programs' documentation and sources say they send; where fields are in them
// that this gateway has too, they have all been kept.
func TestClients(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, "key ops {\nurl "+s.url("/")+"\n}", "")
	type want struct{ title, body, kind string }
	for _, tt := range []struct {
		name, query, contentType, body string
		want                           want
	}{
		// https://github.com/Sonarr/Sonarr, NzbDrone.Core/Notifications/Apprise
		{"Sonarr, its Apprise connection", "", typeJSON, `{
			"title": "Sonarr - Test Notification", "body": "Success! You have properly configured your apprise notification settings.", "type": "info"}`,
			want{"Sonarr - Test Notification", "Success! You have properly configured your apprise notification settings.", "info"}},
		// https://github.com/Sonarr/Sonarr, NzbDrone.Core/Notifications/Webhook
		{"Sonarr, an episode", ":series.title=title&:eventType=body", typeJSON, `{
			"eventType": "Download", "instanceName": "Sonarr", "applicationUrl": "",
			"series": {"id": 2, "title": "Gravity Falls", "titleSlug": "gravity-falls", "path": "/tv/Gravity Falls", "tvdbId": 259972, "type": "standard", "year": 2012, "tags": []},
			"episodes": [{"id": 67, "episodeNumber": 14, "seasonNumber": 2, "title": "The Stanchurian Candidate", "airDate": "2015-08-24"}],
			"episodeFile": {"id": 1181, "relativePath": "Season 02/S02E14.mkv", "quality": "HDTV-720p", "size": 402534400},
			"isUpgrade": false, "downloadClient": "qBittorrent", "downloadId": "ABCD"}`,
			want{"Gravity Falls", "Download", "info"}},
		{"Sonarr, the test button", ":series.title=title&:eventType=body", typeJSON, `{
			"eventType": "Test", "instanceName": "Sonarr", "applicationUrl": "",
			"series": {"id": 1, "title": "Test Title", "path": "C:\\testpath", "tvdbId": 1234, "tags": ["test-tag"]},
			"episodes": [{"id": 123, "episodeNumber": 1, "seasonNumber": 1, "title": "Test title"}]}`,
			want{"Test Title", "Test", "info"}},
		{"Sonarr, its health", ":message=body&:instanceName=title&:type=warning", typeJSON, `{
			"eventType": "Health", "instanceName": "Sonarr", "applicationUrl": "",
			"level": "error", "message": "No indexers available", "type": "IndexerRssCheck", "wikiUrl": "https://wiki.servarr.com/sonarr"}`,
			want{"Sonarr", "No indexers available", "warning"}},
		// https://github.com/Radarr/Radarr, NzbDrone.Core/Notifications/Webhook
		{"Radarr, a film", ":movie.title=title&:eventType=body", typeJSON, `{
			"eventType": "Grab", "instanceName": "Radarr", "applicationUrl": "",
			"movie": {"id": 1, "title": "Night of the Living Dead", "year": 1968, "releaseDate": "1968-10-01", "folderPath": "/movies/x", "tmdbId": 10331, "imdbId": "tt0063350"},
			"remoteMovie": {"tmdbId": 10331, "title": "Night of the Living Dead", "year": 1968},
			"release": {"quality": "Bluray-1080p", "releaseTitle": "Night.1968.1080p", "indexer": "x", "size": 8100000000},
			"downloadClient": "qBittorrent"}`,
			want{"Night of the Living Dead", "Grab", "info"}},
		// https://github.com/louislam/uptime-kuma, server/notification-providers/webhook.js
		{"Uptime Kuma", ":msg=body&:title=Uptime+Kuma", typeJSON, `{
			"heartbeat": {"monitorID": 1, "status": 0, "time": "2026-01-02 03:04:05.678", "msg": "connect ECONNREFUSED 192.0.2.1:443", "important": true, "duration": 60},
			"monitor": {"id": 1, "name": "Shop", "type": "http", "url": "https://shop.example.com", "tags": []},
			"msg": "[Shop] [🔴 Down] connect ECONNREFUSED 192.0.2.1:443"}`,
			want{"Uptime Kuma", "[Shop] [🔴 Down] connect ECONNREFUSED 192.0.2.1:443", "info"}},
		{"Uptime Kuma, the test button", ":msg=body&:title=Uptime+Kuma", typeJSON, `{"heartbeat": null, "monitor": null, "msg": "My Webhook Testing"}`,
			want{"Uptime Kuma", "My Webhook Testing", "info"}},
		// https://www.home-assistant.io/integrations/notify.rest/
		{"Home Assistant, JSON", ":message=body", typeJSON, `{"message": "The garage is open", "title": "Door"}`,
			want{"Door", "The garage is open", "info"}},
		{"Home Assistant, a form", ":message=body", typeForm, "message=The+garage+is+open&title=Door",
			want{"Door", "The garage is open", "info"}},
		// https://github.com/dgtlmoon/changedetection.io, with json:// of Apprise
		{"changedetection.io", ":message=body", typeJSON, `{"version": "1.0", "title": "ChangeDetection.io Notification - https://example.com", "message": "https://example.com had a change.", "attachments": [], "type": "info"}`,
			want{"ChangeDetection.io Notification - https://example.com", "https://example.com had a change.", "info"}},
		// https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/
		{"Grafana", ":message=body&:type=failure", typeJSON, `{
			"receiver": "ops", "status": "firing", "orgId": 1,
			"alerts": [{"status": "firing", "labels": {"alertname": "High memory usage", "team": "blue"}, "annotations": {"summary": "Memory is low"}, "startsAt": "2026-01-02T03:04:05Z", "endsAt": "0001-01-01T00:00:00Z", "fingerprint": "c6eadffa33fcdf37", "values": {"B": 44.2}}],
			"groupLabels": {}, "commonLabels": {"team": "blue"}, "commonAnnotations": {}, "externalURL": "https://grafana.example.com/", "version": "1", "groupKey": "{}:{}", "truncatedAlerts": 0,
			"title": "[FIRING:1]  (blue)", "state": "alerting", "message": "**Firing**\n\nLabels:\n - alertname = High memory usage\n"}`,
			want{"[FIRING:1]  (blue)", "**Firing**\n\nLabels:\n - alertname = High memory usage", "failure"}},
	} {
		got := post(t, h, "/notify/ops?"+tt.query, tt.contentType, tt.body)
		if got.status != 200 {
			t.Errorf("%s: status %d: %s", tt.name, got.status, got.body)
			continue
		}
		a := s.one(t)
		if got := (want{a.Title, a.Message, a.Type}); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
