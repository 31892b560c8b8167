package services

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// Files are uploaded before they are pushed. A retry does not repeat a push that
// a target has received.
func TestPushbulletFiles(t *testing.T) {
	uploaded := map[string]bool{}
	pushed := map[string]int{}
	failures := 1
	service := servicetest.API(func(q *http.Request, body string) (int, string) {
		if user, _, _ := q.BasicAuth(); user != "access-token-1" {
			return 401, ""
		}
		switch {
		case q.URL.Path == "/v2/upload-request":
			var file map[string]string
			_ = json.Unmarshal([]byte(body), &file)
			name := file["file_name"]
			return 200, fmt.Sprintf(`{"file_name": %q, "file_type": %q, "file_url": `+
				`"https://dl.example.com/%s", "upload_url": "https://upload.example.com/%s"}`,
				name, file["file_type"], name, name)
		case q.URL.Host == "upload.example.com":
			uploaded["https://dl.example.com"+q.URL.Path] = strings.Contains(body, `name="file"`)
			return 204, ""
		}
		var push map[string]string
		_ = json.Unmarshal([]byte(body), &push)
		if push["type"] == "file" && !uploaded[push["file_url"]] {
			return 400, "no such file"
		}
		if push["email"] != "" && push["type"] == "file" && failures > 0 {
			failures--
			return 500, ""
		}
		pushed[push["email"]+push["device_iden"]+" "+push["type"]+" "+push["file_name"]]++
		return 200, "{}"
	})
	send := service.Destination(t, "pbul://access-token-1/device1/user@example.com?retry=1&wait=0")
	if err := send(servicetest.Message(t, "attach")); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"device1", "user@example.com"} {
		for _, push := range []string{"note ", "file report.txt", "file graph.png"} {
			if n := pushed[target+" "+push]; n != 1 {
				t.Errorf("%s got %q %d times", target, push, n)
			}
		}
	}
	if len(pushed) != 6 {
		t.Errorf("pushed: %v", pushed)
	}
}

// A message of files alone has no note.
func TestPushbulletFilesOnly(t *testing.T) {
	notes := 0
	m := servicetest.Message(t, "attach")
	m.Title, m.Body = "", ""
	m.Attachments = m.Attachments[:1]
	service := servicetest.API(func(q *http.Request, body string) (int, string) {
		if q.URL.Path == "/v2/pushes" && strings.Contains(body, `"note"`) {
			notes++
		}
		return 200, `{"file_name": "f", "file_type": "t", "file_url": "https://dl.example.com/f", "upload_url": "https://upload.example.com/f"}`
	})
	if err := service.Destination(t, "pbul://access-token-1")(m); err != nil {
		t.Fatal(err)
	}
	if notes > 0 {
		t.Error("pushed an empty note")
	}
}
