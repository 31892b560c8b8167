package services

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// A long text is sent on its own and not in the address of a file, where a server
// could refuse it. A retry of the file does not repeat the text.
func TestNtfyLongTextWithFiles(t *testing.T) {
	var got []string
	tries := 0
	service := servicetest.API(func(q *http.Request, body string) (int, string) {
		if len(q.URL.String()) > 2200 {
			t.Errorf("an address of %d bytes", len(q.URL.String()))
		}
		if q.URL.Query().Get("filename") == "" {
			got = append(got, "text")
			if !strings.Contains(body, `"title":"Disk almost full"`) {
				t.Errorf("no title: %.100s", body)
			}
			return 200, "{}"
		}
		if tries++; tries == 1 {
			return 500, ""
		}
		got = append(got, q.URL.Query().Get("filename")+" "+q.URL.Query().Get("message"))
		return 200, "{}"
	})
	for _, c := range []struct {
		body string
		want []string
	}{
		{strings.Repeat("ä", 300), []string{"a.txt " + strings.Repeat("ä", 300), "b.txt "}},
		{strings.Repeat("ä", 600), []string{"text", "a.txt ", "b.txt "}},
	} {
		got, tries = nil, 0
		err := service.Destination(t, "ntfys://push.example.org/ops?retry=1&wait=0")(&notifier.Message{
			Title: "Disk almost full", Body: c.body, Attachments: []*notifier.Attachment{
				notifier.NewAttachment("a.txt", "text/plain", []byte("a")), notifier.NewAttachment("b.txt", "text/plain", []byte("b")),
			},
		})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d characters: %.60q, %v; want %.60q", len(c.body)/2, got, err, c.want)
		}
	}
}

// A text that ntfy takes for no message is a file, and its beginning is the message beside
// it: without that, a phone shows the name of a file.
func TestNtfyLongTextShowsItsBeginning(t *testing.T) {
	var got *http.Request
	var sent string
	service := servicetest.API(func(q *http.Request, body string) (int, string) {
		got, sent = q, body
		return 200, "{}"
	})
	for _, c := range []struct {
		body string
		file bool
	}{
		{strings.Repeat("a", 4096), false},
		{strings.Repeat("a", 4097), true},
		{strings.Repeat("漢", 1366), true},
		{strings.Repeat("\x01", 4000), true}, // six bytes each in JSON
		{strings.Repeat("&%\n", 3000), true},
	} {
		if err := service.Destination(t, "ntfys://push.example.org/ops")(&notifier.Message{Title: "Disk almost full", Body: c.body}); err != nil {
			t.Fatal(err)
		}
		query := got.URL.Query()
		if isFile := query.Get("filename") == "message.txt"; isFile != c.file {
			t.Errorf("%d bytes %.3q: a file: %v, want %v", len(c.body), c.body, isFile, c.file)
		}
		if !c.file {
			continue
		}
		beginning, cut := strings.CutSuffix(query.Get("message"), "…")
		if !cut || len(beginning) < 100 || !strings.HasPrefix(c.body, beginning) || len(got.URL.RawQuery) > 2200 {
			t.Errorf("%d bytes %.3q: beside the file is %.50q, in an address of %d bytes", len(c.body), c.body, beginning, len(got.URL.RawQuery))
		}
		if strings.TrimSpace(sent) != strings.TrimSpace(c.body) || query.Get("title") != "Disk almost full" {
			t.Errorf("%d bytes %.3q: the file has %d bytes, the title is %q", len(c.body), c.body, len(sent), query.Get("title"))
		}
	}
}

// The emoji of a type is not shown twice.
func TestNtfyEmojiOnce(t *testing.T) {
	tags := ""
	service := servicetest.API(func(q *http.Request, _ string) (int, string) {
		tags = q.Header.Get("X-Tags")
		return 200, "{}"
	})
	for title, want := range map[string]string{"Disk": "rotating_light", "🚨 Disk": "", "💀 Disk": "rotating_light"} {
		err := service.Destination(t, "ntfys://push.example.org/ops")(&notifier.Message{Title: title, Body: "x", Type: notifier.Failure})
		if err != nil || tags != want {
			t.Errorf("%s: %q, %v; want %q", title, tags, err, want)
		}
	}
}
