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
