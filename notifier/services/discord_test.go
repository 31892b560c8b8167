package services

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

func TestDiscordSections(t *testing.T) {
	for _, tt := range []struct {
		text, description string
		fields            []discordField
	}{
		{"just text\nin two lines", "just text\nin two lines", nil},
		{"intro\n\n# One\r\nbody\n## Two ##\n\nmore\nlines\n", "intro", []discordField{
			{"One", "```md\nbody\n```"}, {"Two", "```md\nmore\nlines\n```"},
		}},
		{"# One\n```sh\n# a comment\n```\n~~~~\n~~~\n# another\n~~~~\n# Two\n```x```\n# Three", "", []discordField{
			{"One", "```sh\n# a comment\n```\n~~~~\n~~~\n# another\n~~~~"}, {"Two", "```x```"}, {"Three", "```\n```"},
		}},
		{"```\n# never closed", "```\n# never closed", nil},
		{"# Alone", "", []discordField{{"Alone", "```\n```"}}},
		{"###\nno # heading", "###\nno # heading", nil},
		{"# Long\n" + strings.Repeat("x", 1100), "# Long\n" + strings.Repeat("x", 1100), nil},
	} {
		description, fields := discordSections(tt.text)
		if description != tt.description || fmt.Sprint(fields) != fmt.Sprint(tt.fields) {
			t.Errorf("%.20q: %.40q %v", tt.text, description, fields)
		}
	}
}

// Messages stay within Discord's limits for fields and files, and a retry sends
// only what has not arrived.
func TestDiscordBatches(t *testing.T) {
	m := servicetest.Message(t, "plain")
	m.Format, m.Body = notifier.Markdown, ""
	for i := range 23 {
		m.Body += fmt.Sprintf("# Heading %d\ntext\n", i)
		m.Attachments = append(m.Attachments, notifier.NewAttachment(fmt.Sprintf("f%02d.txt", i), "text/plain", []byte("x")))
	}
	var fields, files []int
	failed := false
	err := servicetest.API(func(q *http.Request, body string) (int, string) {
		if n := strings.Count(body, `"name":"Heading`); n > 0 {
			fields = append(fields, n)
		}
		if n := strings.Count(body, "filename="); n > 0 {
			if !failed {
				failed = true
				return 502, ""
			}
			files = append(files, n)
		}
		return 204, ""
	}).Destination(t, "discord://1234567890/token?format=markdown&retry=1&wait=0")(m)
	if err != nil || fmt.Sprint(fields, files) != "[10 10 3] [10 10 3]" {
		t.Errorf("sent %v fields and %v files: %v", fields, files, err)
	}
}
