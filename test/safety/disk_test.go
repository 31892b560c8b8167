package safety

import (
	"bytes"
	"encoding/base64"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestFullDisk checks that a message with a file that does not fit on the disk is
// answered with 507 and logged as an error. A file fetched from a URL was once
// answered with 400.
func TestFullDisk(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	tmp, inside := smallDisk(t, 3)
	if !inside {
		return
	}
	file := bytes.Repeat([]byte("x"), 5<<20)
	web := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(file)
	})
	fine := newRecorder(t)
	g := start(t, "", "key k {\nurl "+fine.url+"\n}\negress {\nallow 127.0.0.1\n}", "TMPDIR="+tmp)
	upload := func(size int) reply {
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		part, _ := w.CreateFormFile("attach", "f.bin")
		_, _ = part.Write(file[:size])
		_ = w.Close()
		return g.do("/notify/k", w.FormDataContentType(), &form)
	}
	for name, send := range map[string]func() reply{
		"fetched":  func() reply { return g.post("/notify/k", message{"body": "x", "attach": web.URL + "/f.bin"}) },
		"uploaded": func() reply { return upload(len(file)) },
		"in base64": func() reply {
			return g.post("/notify/k", message{"body": "x", "attach": message{"base64": base64.StdEncoding.EncodeToString(file)}})
		},
	} {
		before := len(g.log())
		got := send()
		if got.Status != http.StatusInsufficientStorage || !strings.Contains(got.Error, "no disk space left") || strings.Contains(got.Body, tmp) {
			t.Errorf("%s: %d %s", name, got.Status, got.Body)
		}
		entry := g.log()[before:]
		if !strings.Contains(entry, `"level":"error"`) || !strings.Contains(entry, "no space left on device") {
			t.Errorf("%s: the log has %s", name, entry)
		}
	}
	if n := fine.take(); len(n) > 0 {
		t.Errorf("%d messages were sent", len(n))
	}
	// The space is free again.
	for name, got := range map[string]reply{"a file that fits": upload(2 << 20), "an alert": g.post("/notify/k", message{"body": "x"})} {
		if got.Status != http.StatusOK {
			t.Errorf("%s: %d %s", name, got.Status, got.text())
		}
	}
}
