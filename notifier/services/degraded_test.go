package services

import (
	"bytes"
	"encoding/base64"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// fileRefuser refuses requests with files after the first few. Its Recorder
// answers all other requests.
type fileRefuser struct {
	*servicetest.Recorder
	accept int // number of requests with files that succeed

	mu    sync.Mutex
	files int // requests with files
	texts int // successful requests with the message's text
}

func (x *fileRefuser) RoundTrip(q *http.Request) (*http.Response, error) {
	var body []byte
	if q.Body != nil {
		var err error
		if body, err = io.ReadAll(q.Body); err != nil {
			return nil, err
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := x.Recorder.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if containsFile(body) {
		if x.files++; x.files > x.accept {
			resp.StatusCode, resp.Body = 413, io.NopCloser(strings.NewReader("too large"))
			return resp, nil
		}
	}
	text := q.URL.String() + "\n" + string(body)
	if strings.Contains(text, "see attached") || strings.Contains(text, "see+attached") || strings.Contains(text, "see%20attached") {
		x.texts++
	}
	return resp, nil
}

// containsFile reports whether body contains an attachment of the test messages.
func containsFile(body []byte) bool {
	report := []byte("disk report: 91% used")
	for _, file := range [][]byte{servicetest.Picture, report} {
		if bytes.Contains(body, file) || bytes.Contains(body, []byte(base64.StdEncoding.EncodeToString(file)[:24])) {
			return true
		}
	}
	return false
}

// If a service refuses the files of a message, its text arrives once, and the
// delivery fails.
func TestTextWithoutFiles(t *testing.T) {
	sent := map[string]bool{}
	for _, file := range servicetest.Files(t, ".") {
		for _, c := range servicetest.ReadCases(t, file) {
			if c.Message != "attach" || !strings.Contains(c.Want, "\ndelivered\n") {
				continue
			}
			run := func(accept int) (*fileRefuser, notifier.Result) {
				x := &fileRefuser{Recorder: c.Recorder(), accept: accept}
				sender := servicetest.NewSenderOver(t, x)
				d, err := sender.ParseWithFiles(c.URL, nil, notifier.Files{Dir: c.Files})
				if err != nil {
					t.Fatal(err)
				}
				return x, sender.Send(t.Context(), servicetest.Message(t, c.Message),
					[]notifier.Target{{Destination: d}}, notifier.Options{}).Results[0]
			}
			all, result := run(math.MaxInt)
			if all.files == 0 {
				continue // this case sends no files, or only their addresses
			}
			sent[result.Service] = true
			for accept := range all.files {
				x, result := run(accept)
				picture := strings.Contains(result.Destination, "/image?") // the message is a picture
				if x.texts > all.texts || x.texts == 0 && !picture {
					t.Errorf("%s: %d texts with %d of %d files, %d with all", result.Destination, x.texts, accept, all.files, all.texts)
				}
				if result.Status != notifier.Failed {
					t.Errorf("%s: %s with %d of %d files", result.Destination, result.Status, accept, all.files)
				}
			}
		}
	}
	if len(sent) < 40 {
		t.Errorf("only %d services sent a file", len(sent))
	}
}
