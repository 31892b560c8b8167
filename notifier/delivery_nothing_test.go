package notifier_test

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestNoEmptyText checks that a message with a title, a file or a picture has a text at a service
// that shows nothing of its body or cannot send its files.
func TestNoEmptyText(t *testing.T) {
	t.Parallel()
	log := func() []*notifier.Attachment {
		return []*notifier.Attachment{notifier.NewAttachment("back_up *1*.log", "text/plain", make([]byte, 3000))}
	}
	const line = "back_up *1*.log (2.9 KiB)"
	for _, tt := range []struct {
		name, url string
		message   notifier.Message
		want      string // in the request
	}{
		{
			"a title and a file", "gotify://h/t0k3n",
			notifier.Message{Title: "nightly has failed", Attachments: log()},
			`"message": "` + line + `"`,
		},
		{"a file", "gotify://h/t0k3n", notifier.Message{Attachments: log()}, `"message": "` + line + `"`},
		{
			"a text and a file", "gotify://h/t0k3n",
			notifier.Message{Body: "see the log", Attachments: log()},
			`"message": "see the log\n` + line + `"`,
		},
		{
			"a text in HTML and a file", "gotify://h/t0k3n?format=html",
			notifier.Message{Body: "<p>see</p>", Format: notifier.HTML, Attachments: log()},
			line,
		},
		{
			"a text in Markdown and a file", "gotify://h/t0k3n?format=markdown",
			notifier.Message{Body: "**see**", Format: notifier.Markdown, Attachments: log()},
			`back_up \\*1\\*.log (2.9 KiB)`,
		},
		{"a title without a body", "gotify://h/t0k3n", notifier.Message{Title: "Deploy"}, `"message": "Deploy"`},
		{"white space", "gotify://h/t0k3n", notifier.Message{Title: "Deploy", Body: " \n\u00a0"}, `"message": "Deploy"`},
		{
			"a picture in HTML", "gotify://h/t0k3n",
			notifier.Message{Title: "Motion", Body: `<img src="cid:1">`, Format: notifier.HTML},
			`"message": "Motion"`,
		},
		{
			"its description", "gotify://h/t0k3n",
			notifier.Message{Body: `<p><IMG alt='The front &amp; door' src=https://cam.example/1.jpg></p>`, Format: notifier.HTML},
			`"message": "The front & door"`,
		},
		{
			"its address", "gotify://h/t0k3n",
			notifier.Message{Body: `<img src="https://cam.example/1.jpg?a=1&amp;b=2">`, Format: notifier.HTML},
			`"message": "https://cam.example/1.jpg?a=1&b=2"`,
		},
		{
			"an embedded picture", "gotify://h/t0k3n",
			notifier.Message{Body: `<img src="data:image/png;base64,AAAA">`, Format: notifier.HTML},
			`"message": "(no text)"`,
		},
		{
			"text of a stranger", "gotify://h/t0k3n",
			notifier.Message{Title: "<b>x</b>", Body: `<img src="cid:1">`, Format: notifier.HTML, Foreign: true},
			`<b>x</b>`,
		},
		{
			"a service without titles", "notifyre://k3y/15551234567",
			notifier.Message{Title: "Motion", Body: `<img src="cid:1">`, Format: notifier.HTML},
			`"body": "Motion"`,
		},
		{
			"a service without titles and files", "notifyre://k3y/15551234567",
			notifier.Message{Title: "Motion", Attachments: log()},
			`"body": "Motion\r\n` + line + `"`,
		},
		{
			"a mail with files", "sendgrid://k3y:me@example.com/you@example.com",
			notifier.Message{Title: "Motion", Attachments: log()},
			`"value": "` + line + `"`,
		},
		{
			"its title", "sendgrid://k3y:me@example.com/you@example.com",
			notifier.Message{Title: "Motion", Attachments: log()},
			`"subject": "Motion"`,
		},
		{
			"a mail with a text and files", "resend://k3y:me@example.com/you@example.com",
			notifier.Message{Title: "Motion", Body: "see", Attachments: log()},
			`"html": "see"`,
		},
		{"a title in HTML", "json://h?format=html", notifier.Message{Title: "a < b", Body: `<p> </p>`, Format: notifier.HTML}, "a < b"},
	} {
		r := dryRun(t, tt.url, &tt.message)
		got := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(strings.Join(r.Requests, "\n"))
		if r.Err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s: want %s\n%v\n%s", tt.name, tt.want, r.Err, got)
		}
		for _, m := range r.Messages {
			if strings.TrimSpace(m.Body) == "" && len(m.Attachments) == 0 {
				t.Errorf("%s: the text is empty: %+v", tt.name, m)
			}
		}
	}
}
