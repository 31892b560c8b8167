package servicetest

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Picture is a PNG file of one pixel.
var Picture, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ" +
	"AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")

// AcknowledgeURL is the address on which the incidents of messages can be acknowledged.
const AcknowledgeURL = "https://alerts.example.com/notify/incidents/k4fzmoyq2xr6vnw7tdbhj3ce5a"

// Message returns a new message by its name: plain, notitle (with special
// characters), markdown, html, long (some 16 kB), mention (of people, as chats
// write it), foreign (of another program, with mentions and links), attach (a text file
// and [Picture]), or one about an incident: open, worse (open, with another severity),
// updated, acknowledged, resolved, button (open, with [AcknowledgeURL]) or longbutton
// (the same with the text of long).
func Message(t testing.TB, name string) *notifier.Message {
	t.Helper()
	m := &notifier.Message{
		ID:    "01a2c4e6-89ab-7cde-8f01-23456789abcd",
		Title: "Disk almost full",
		Body:  "Volume /data is at 91% on host-7",
		Type:  notifier.Info,
		Time:  time.Date(2026, 3, 1, 12, 30, 15, 0, time.UTC),
		Identity: &notifier.Identity{
			Name: "Caddy", Description: "Caddy Notifications", URL: "https://caddyserver.com/",
			Icon: "https://icons.example.com/{type}-{size}.png", Logo: "https://icons.example.com/logo.png",
		},
	}
	switch name {
	case "plain":
	case "notitle":
		m.Title, m.Body, m.Type = "", "line one <b>&\"quoted\"</b>\nline two: é ü 漢字 ☃ 😀 + % # ?", notifier.Failure
	case "markdown":
		m.Title, m.Type, m.Format = "Deploy *done*", notifier.Warning, notifier.Markdown
		m.Body = "# Release 1.4\n\n- **bold** item\n- a [link](https://example.com/x?a=1&b=2)\n\n`code` and _emphasis_"
	case "html":
		m.Title, m.Type, m.Format = "Backup <ok>", notifier.Success, notifier.HTML
		m.Body = "<h1>Nightly</h1><p>All <b>12</b> volumes &amp; 3 sites<br/>saved</p>"
	case "long":
		for i := range 400 {
			m.Body += fmt.Sprintf(" %04d some words that fill the line", i)
		}
	case "attach":
		m.Title, m.Body = "With files", "see attached"
		m.Attachments = []*notifier.Attachment{
			notifier.NewAttachment("report.txt", "text/plain", []byte("disk report: 91% used\n")),
			notifier.NewAttachment("graph.png", "image/png", Picture),
		}
	case "foreign":
		m.Title, m.Foreign = "Issue 42 opened: acme/shop", true
		m.Body = "<!channel> @everyone [click](https://evil.example/) *now*\n" +
			"my_app logs to https://example.com/a_b/@c\n" +
			"<https://evil.example|more> joe@example.com (met)all(met) <at user_id=\"all\">"
	case "mention":
		m.Body = "@ann <at>ann@example.com</at>, <at> Bob@example.com </at>: <at></at> call <at>ann@example.com</at>"
	case "open":
		m.Type, m.Incident = notifier.Warning, incident("")
	case "worse":
		m.Body, m.Type, m.Incident = "Volume /data is at 99% on host-7", notifier.Failure, incident("")
	case "button":
		m.Type, m.Incident, m.Link = notifier.Failure, incident(""), notifier.Link{Label: notifier.AcknowledgeLabel, URL: AcknowledgeURL}
	case "longbutton":
		m = Message(t, "long")
		m.Type, m.Incident, m.Link = notifier.Failure, incident(""), notifier.Link{Label: notifier.AcknowledgeLabel, URL: AcknowledgeURL}
	case "updated":
		m.Title, m.Body, m.Incident = "Disk", "a larger one is ordered", incident("")
	case "acknowledged":
		m.Title, m.Body, m.Incident = "Disk almost full: acknowledged", "by Ann", incident(notifier.Acknowledged)
	case "resolved":
		m.Title, m.Body, m.Type, m.Incident = "Disk has space again", "Volume /data is at 40% on host-7", notifier.Success, incident("")
	case "longopen":
		m = Message(t, "resolved")
		m.Incident.OpenFor = 14*time.Minute + 20*time.Second
	default:
		t.Fatalf("no message is called %q", name)
	}
	return m
}

// incident returns the incident of the messages of [Message].
func incident(state notifier.IncidentState) notifier.Incident {
	return notifier.Incident{Name: "disk host-7", State: state}.For("ops", "")
}
