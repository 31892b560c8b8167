package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
)

const addressOfOps = "https://alerts.example.com/notify/ops"

// TestPrograms reports built-in sources whose address docs/program-list.md or
// docs/program-apis.md lacks, and posts the samples of the sources to their addresses.
func TestPrograms(t *testing.T) {
	g := startGateway(t)
	page := readPage(t, "docs/program-list.md").prose + readPage(t, "docs/program-apis.md").prose
	for _, f := range source.Formats() {
		address := addressOfOps + "/" + f.Name
		if !regexp.MustCompile(regexp.QuoteMeta(address) + "[`/?]").MatchString(page) {
			t.Errorf("the pages have no address of %s", f.Name)
		}
		files, err := filepath.Glob(filepath.Join(root, "gateway/source/programs/testdata", f.Name, "*.json"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no samples", f.Name)
		}
		for _, file := range files {
			payload, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if f.Name == "gotify" {
				address = addressOfOps + "/gotify/message"
			}
			headers, _ := os.ReadFile(strings.TrimSuffix(file, ".json") + ".headers") // few samples have some
			err = g.postWith(address, strings.ReplaceAll(string(payload), `"attach"`, `"ignored"`), headers)
			if f.Signed != (err != nil) {
				t.Errorf("%s: %v", file, err)
			}
			if got := g.take(); !f.Signed && got.Message == "" {
				t.Errorf("%s: no message arrived", file)
			}
		}
	}
	for _, m := range regexp.MustCompile("notify/ops/([a-z_]+)").FindAllStringSubmatch(page, -1) {
		if source.Lookup(m[1]) == nil && m[1] != site.SourceRuler { // rulers post below an address of their own
			t.Errorf("a page has an address with the unknown source %s", m[1])
		}
	}
}

// TestSendersAreDocumented reports sources about which docs/program-answers.md does not
// say what the program does after an error.
func TestSendersAreDocumented(t *testing.T) {
	_, table, _ := strings.Cut(readPage(t, "docs/program-answers.md").prose, "| address | version or date | sends again | after |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, f := range source.Formats() {
		if !strings.Contains(table, "\n| `"+f.Name+"` | ") {
			t.Errorf("the table in \"What the answer means to a program\" has no row for %s, "+
				"with the statuses after which it sends a message again", f.Program)
		}
	}
}

// TestVersionsAreDocumented reports sources, and programs with a mapping, about which
// docs/program-answers.md does not say what version was read.
func TestVersionsAreDocumented(t *testing.T) {
	page := readPage(t, "docs/program-answers.md").prose
	for _, f := range source.Formats() {
		if row := "\n| `" + f.Name + "` | " + f.Checked + " | "; !strings.Contains(page, row) {
			t.Errorf("the page lacks the row%s", row)
		}
	}
	programs := regexp.MustCompile("(?m)^\\| ([^|]+) \\| [^|]+ \\| `[^|`]+\\?:").FindAllStringSubmatch(readPage(t,
		"docs/program-list.md").prose, -1)
	if len(programs) < 9 {
		t.Errorf("only %d programs have a mapping", len(programs))
	}
	for _, m := range programs {
		if !strings.Contains(page, "\n| "+m[1]+" | ") {
			t.Errorf("the page does not say what version of %s was read", m[1])
		}
	}
}

// TestMappings posts what programs send to the addresses with mappings that
// docs/program-list.md gives.
func TestMappings(t *testing.T) {
	const (
		duplicatiMapping  = ":type=failure&:Data.ParsedResult=type&:Exception=body&:Extra.OperationName=body&:Extra.backup-name=title"
		komodoMapping     = ":data.data.details=body&:data.type=body&:data.data.message=title&:data.data.name=title&:level=type"
		openStatusMapping = ":errorMessage=body&:monitor.url=body&:monitor.name=title&:monitor.id=incident&:status=type"
		pingdomMapping    = ":long_description=body&:description=body&:check_name=title&:check_id=incident&:current_state=type&:tags="
		unifiMapping      = ":message=body&:name=title&:events[0].id=body&:events[0].alert_key=title&:type=warning"
	)
	g := startGateway(t)
	for _, tt := range []struct {
		name, query, body string
		want              message
	}{
		{
			"JSON of its own", ":message=body&:type=failure", `{"message": "91% full"}`,
			message{"", "91% full", "failure"},
		},
		// https://www.home-assistant.io/integrations/notify.rest/
		{
			"Home Assistant", "", `{"body": "The garage is open", "title": "Door", "target": null}`,
			message{"Door", "The garage is open", "info"},
		},
		// https://github.com/Sonarr/Sonarr, NzbDrone.Core/Notifications/Apprise
		{
			"Sonarr, its Apprise connection", "", `{"title": "Sonarr - Test Notification", "body": "Success!", "type": "info"}`,
			message{"Sonarr - Test Notification", "Success!", "info"},
		},
		// https://www.audiobookshelf.org/docs/documentation/server-management/notifications
		{
			"Audiobookshelf", "",
			`{"urls": ["mailto://bob@example.com"], "title": "New podcast episode", "body": "An episode of Caddy Talk was downloaded"}`,
			message{"New podcast episode", "An episode of Caddy Talk was downloaded", "info"},
		},
		// What later versions post, as programs for UniFi read it.
		{
			"UniFi Network, with a text", unifiMapping,
			`{"alarm_id": "1", "app": "network", "custom_content": null, "device_event_class_id": "401",
		"message": "The phone has disconnected from the WiFi.",
				"name": "WiFi Client Disconnected", "parameters": {"UNIFIcategory": "Client Devices", "UNIFIhost": "Gateway"},
		"severity": 2, "version": "9.3.45"}`,
			message{"WiFi Client Disconnected", "The phone has disconnected from the WiFi.", "warning"},
		},
		// https://github.com/duplicati/duplicati 2.3.0.109, JsonFormatSerializer
		{
			"Duplicati", duplicatiMapping,
			`{"Data": {"ParsedResult": "Warning", "AddedFiles": 3}, "Extra": {"OperationName": ` +
				`"Backup", "backup-name": "photos", "machine-name": "nas"}, "LogLines": [], "Exception": null}`,
			message{"photos", "Backup", "warning"},
		},
		{
			"Duplicati, which has failed", duplicatiMapping,
			`{"Data": null, "Extra": {"OperationName": "Backup", "backup-name": ` +
				`"photos"}, "LogLines": [], "Exception": "System.IO.IOException: no space"}`,
			message{"photos", "System.IO.IOException: no space", "failure"},
		},
		// https://github.com/falcosecurity/falcosidekick 2.34.1, types.FalcoPayload. Its tags
		// select nothing.
		{
			"Falcosidekick", ":output=body&:rule=title&:priority=type&:tags=",
			`{"uuid": "1", "output": "A shell was spawned in a container", "priority": "Critical",
		"rule": "Terminal shell in container", "time": "2026-11-20T08:00:00Z",
				"output_fields": {"container.id": "1"}, "source": "syscall", "tags": ["container"], "hostname": "db1"}`,
			message{"Terminal shell in container", "A shell was spawned in a container", "failure"},
		},
		// https://github.com/AnalogJ/scrutiny 0.9.3, notify.Payload
		{
			"Scrutiny", ":message=body&:subject=title&:type=failure",
			`{"device_type": "ata", "device_name": "/dev/sda", "device_serial": "WDDJ324KSO", "test": false,
		"date": "2026-11-20T08:00:00Z", "failure_type": "SmartFailure",
				"subject": "Scrutiny SMART error (SmartFailure) detected on device: /dev/sda",
		"message": "Scrutiny SMART error notification for device: /dev/sda"}`,
			message{
				"Scrutiny SMART error (SmartFailure) detected on device: /dev/sda",
				"Scrutiny SMART error notification for device: /dev/sda", "failure",
			},
		},
		// https://github.com/Graylog2/graylog2-server 7.1.7, EventNotificationModelData
		{
			"Graylog", ":event.message=body&:event_definition_title=title&:type=warning",
			`{"event_definition_id": "1", "event_definition_type": "aggregation-v1", "event_definition_title": "Failed logins",
		"event_definition_description": "",
				"remediation_steps": "", "job_definition_id": "2", "job_trigger_id": "3",
		"event": {"id": "4", "alert": true, "message": "Failed logins: 42", "source": "graylog",
		"key": "", "priority": 2, "fields": {}}, "backlog": []}`,
			message{"Failed logins", "Failed logins: 42", "warning"},
		},
		// https://github.com/moghtech/komodo 2.3.2, entities/alert.rs
		{
			"Komodo", komodoMapping, `{"ts": 1795161600000, "resolved": false, "level": "CRITICAL", "target": {"type": "Server", "id": "1"},
				"data": {"type": "ServerUnreachable", "data": {"id": "1", "name": "web1",
		"region": null, "err": {"error": "timeout", "trace": []}}}, "resolved_ts": null}`,
			message{"web1", "ServerUnreachable", "failure"},
		},
		{
			"Komodo, the end", komodoMapping,
			`{"_id": {"$oid": "65f000000000000000000001"}, "ts": 1795161600000, "resolved": true, "level": "OK",
		"target": {"type": "Server", "id": "1"},
				"data": {"type": "ServerUnreachable", "data": {"id": "1", "name": "web1",
		"region": null, "err": null}}, "resolved_ts": 1795161900000}`,
			message{"web1", "ServerUnreachable", "success"},
		},
		{
			"Komodo, a message", komodoMapping,
			`{"ts": 1795161600000, "resolved": true, "level": "WARNING", "target": {"type": ` +
				`"System", "id": ""}, "data": {"type": "Custom", "data": {"message": "Backup", "details": ` +
				`"The disk is slow"}}, "resolved_ts": 1795161600000}`,
			message{"Backup", "The disk is slow", "warning"},
		},
		// https://docs.openstatus.dev/alerting/providers/webhook
		{
			"OpenStatus", openStatusMapping,
			`{"monitor": {"id": 1, "name": "shop", "url": "https://shop.example.net"}, "cronTimestamp": ` +
				`1795161600000, "status": "error", "statusCode": 503, "latency": ` +
				`1337, "errorMessage": "Service Unavailable"}`,
			message{"shop", "Service Unavailable", "failure"},
		},
		{
			"OpenStatus, the end", openStatusMapping,
			`{"monitor": {"id": 1, "name": "shop", "url": "https://shop.example.net"}, "cronTimestamp": ` +
				`1795161900000, "status": "recovered", "statusCode": 200, "latency": 137}`,
			message{"shop", "https://shop.example.net", "success"},
		},
		// As receivers of Pingdom's webhooks test them. Its tags select nothing.
		{
			"Pingdom", pingdomMapping,
			`{"check_id": 2048467, "check_name": "shop", "check_type": "HTTP",
		"check_params": {"full_url": "https://shop.example.net/", "hostname": "shop.example.net"}, "tags": ["web"],
				"previous_state": "UP", "current_state": "DOWN", "state_changed_timestamp": 1795161600,
		"long_description": "Non-recoverable failure in name resolution",
		"description": "DNS error"}`,
			message{"shop", "Non-recoverable failure in name resolution", "failure"},
		},
		{
			"Pingdom, the end", pingdomMapping,
			`{"check_id": 2048467, "check_name": "shop", "check_type": "HTTP", "tags": [], "previous_state": ` +
				`"DOWN", "current_state": "UP", "long_description": "", "description": "OK"}`,
			message{"shop", "OK", "success"},
		},
		// https://docs.goauthentik.io/events/transports/
		{
			"authentik", ":severity=type",
			`{"body": "Suspicious request", "severity": "alert", "user_email": "bob@example.com", "user_username": "bob"}`,
			message{"", "Suspicious request", "failure"},
		},
		{
			"UniFi Protect", ":alarm.triggers[0].key=body&:alarm.name=title&:type=warning",
			`{"alarm": {"name": "Somebody at the door", "sources": [{"device": ` +
				`"28704E178669", "type": "include"}], "triggers": [{"device": "28704E17931C", "key": ` +
				`"person"}]}, "timestamp": 1795161600000}`,
			message{"Somebody at the door", "person", "warning"},
		},
		{
			"UniFi Network", unifiMapping,
			`{"events": [{"id": "event.threat_detected", "alert_key": ` +
				`"THREAT_BLOCKED_V3", "alert_id": "6865fae1", "scope": {"site_id": "67762da9"}}]}`,
			message{"THREAT_BLOCKED_V3", "event.threat_detected", "warning"},
		},
		// https://shoutrrr.nickfedor.com/services/specialized/generic/
		{
			"shoutrrr", "", `{"title": "db1 CPU above threshold", "body": "CPU averaged 63.53% for the previous 10 minutes."}`,
			message{"db1 CPU above threshold", "CPU averaged 63.53% for the previous 10 minutes.", "info"},
		},
	} {
		if !strings.Contains(readPage(t, "docs/program-list.md").prose, tt.query) {
			t.Errorf("the page has no address ?%s", tt.query)
		}
		if err := g.post(addressOfOps+"?"+tt.query, tt.body); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := g.take(); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
		if got, mapped := g.incident(), strings.Contains(tt.query, "=incident"); (got != "") != mapped {
			t.Errorf("%s: the incident is %q", tt.name, got)
		}
	}
}

// TestProgramsOfAPIs posts what programs send to the addresses of APIs that docs/program-list.md
// gives.
func TestProgramsOfAPIs(t *testing.T) {
	g := startGateway(t)
	page := readPage(t, "docs/program-list.md").prose
	for _, tt := range []struct {
		name, row, path, body, headers string
		want                           message
	}{
		// https://github.com/henrygd/beszel 0.18.8, alerts_status.go and alerts.go
		{
			"Beszel", "/notify/ops/gotify/message?template=json", "gotify/message?template=json",
			`{"title": "Connection to web1 is down 🔴", "message": "Connection to web1 is down\n\nhttps://beszel.example.net/system/1"}`, "",
			message{"Connection to web1 is down 🔴", "Connection to web1 is down\n\nhttps://beszel.example.net/system/1", "failure"},
		},
		{
			"Beszel, the end", "| Beszel |", "gotify/message?template=json",
			`{"title": "Connection to web1 is up ✅", "message": "Connection to web1 is up\n\nhttps://beszel.example.net/system/1"}`, "",
			message{"Connection to web1 is up ✅", "Connection to web1 is up\n\nhttps://beszel.example.net/system/1", "success"},
		},
		// https://github.com/garethgeorge/backrest 1.14.1, internal/hook/types/gotify.go
		{
			"Backrest", "| Backrest |", "gotify/message?token=x", `{"message": "Backup failed", "title": "Backrest Event", "priority": 5}`, "",
			message{"Backrest Event", "Backup failed", "warning"},
		},
		// https://github.com/coollabsio/coolify 4.3.10, SendMessageToSlackJob
		{
			"Coolify", "| Coolify |", "slack",
			`{"username": "Coolify", "attachments": [{"title": "Server unreachable", "color": ` +
				`"#ff0000", "text": "Your server 'web1' is unreachable.", "footer": "Coolify"}]}`,
			"",
			message{"Server unreachable", "Your server 'web1' is unreachable.\nCoolify", "failure"},
		},
		{
			"Coolify, the end", "| Coolify |", "slack",
			`{"username": "Coolify", "attachments": [{"title": "Server reachable", "color": ` +
				`"#00ff00", "text": "Server 'web1' is reachable again!", "footer": "Coolify"}]}`,
			"",
			message{"Server reachable", "Server 'web1' is reachable again!\nCoolify", "success"},
		},
		// https://github.com/unraid/webgui 7.4.0-beta.0.3, agents/ntfy.sh.xml
		{
			"Unraid", "| Unraid |", "ntfy/Unraid", "Disk 3 has read errors",
			"Priority: urgent\nTitle: Notice [TOWER] - array has errors\nContent-Type: application/x-www-form-urlencoded",
			message{"Notice [TOWER] - array has errors", "Disk 3 has read errors", "failure"},
		},
	} {
		if !strings.Contains(page, tt.row) {
			t.Errorf("the page does not have %s", tt.row)
		}
		if err := g.postWith(addressOfOps+"/"+tt.path, tt.body, []byte(tt.headers)); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := g.take(); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestTemplates posts the bodies that docs/program-list.md gives for programs in
// which the user writes the request.
func TestTemplates(t *testing.T) {
	g := startGateway(t)
	placeholders := regexp.MustCompile(`\{\{[^}]*\}\}|\{\w+\}|\*\w+\*|@@\w+@@|\$STATUS|…`)
	p := readPage(t, "docs/program-list.md")
	bodies := regexp.MustCompile("(?m)`(\\{\".*\\})` \\|$").FindAllStringSubmatch(p.prose, -1)
	if len(bodies) < 4 {
		t.Fatalf("%s has only %d bodies", p.path, len(bodies))
	}
	for _, m := range bodies {
		body := placeholders.ReplaceAllString(m[1], "some text")
		body = strings.ReplaceAll(body, "$NAME_JSON", `"a \"name\""`)
		address := addressOfOps
		switch {
		case strings.Contains(body, `"monitorURL"`):
			address += "/uptimerobot"
		case !strings.Contains(body, `"body"`):
			address += "/proxmox"
		}
		if err := g.post(address, body); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
		if got := g.take(); got.Title == "" || !strings.Contains(got.Message, "some text") {
			t.Errorf("%s: got %+v", m[1], got)
		}
	}
}

// TestIncidentsAreDocumented reports sources that name incidents and have no row in
// docs/program-answers.md that says how.
func TestIncidentsAreDocumented(t *testing.T) {
	_, table, _ := strings.Cut(readPage(t, "docs/program-answers.md").prose, "| address | the incident is | it is resolved when |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, f := range source.Formats() {
		if f.Incident != "" && !regexp.MustCompile("(?m)^\\| [^|]*`"+f.Name+"`[^|]* \\|").MatchString(table) {
			t.Errorf("docs/program-answers.md does not say which incident messages of %s are about", f.Name)
		}
	}
}
