package services

import (
	"bytes"
	"encoding/base64"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// refuser takes so many requests with files, refuses those behind them, and
// has a recorder answer all else.
type refuser struct {
	*recorder
	takes int
	files int // requests with files
	texts int // requests with the message's text that were taken
}

func (x *refuser) RoundTrip(q *http.Request) (*http.Response, error) {
	var body []byte
	if q.Body != nil {
		var err error
		if body, err = io.ReadAll(q.Body); err != nil {
			return nil, err
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := x.recorder.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if holdsFile(body) {
		if x.files++; x.files > x.takes {
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

func holdsFile(body []byte) bool {
	report := []byte("disk report: 91% used")
	for _, file := range [][]byte{pixel, report} {
		if bytes.Contains(body, file) || bytes.Contains(body, []byte(base64.StdEncoding.EncodeToString(file)[:24])) {
			return true
		}
	}
	return false
}

// Where a service refuses the files of a message, its text arrives
// nevertheless, and once; and the client hears of it.
func TestTextWithoutFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	sent := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range strings.Split(string(data), "===\n") {
			top, want, _ := strings.Cut(text, "---\n")
			if !strings.Contains(top, "message: attach\n") || !strings.Contains(want, "\ndelivered\n") {
				continue
			}
			run := func(takes int) (*refuser, notifier.Result) {
				r, address, name := goldenCase(t, top)
				x := &refuser{recorder: r, takes: takes}
				sender := notifier.NewSender(egress.NewPoolWithTransport("test", x), 0)
				d, err := sender.Parse(address, nil)
				if err != nil {
					t.Fatal(err)
				}
				return x, sender.Send(t.Context(), message(t, name), []notifier.Target{{Destination: d}}, notifier.Options{}).Results[0]
			}
			all, result := run(math.MaxInt)
			if all.files == 0 {
				continue // a mode without files, or with their addresses
			}
			sent[result.Service] = true
			for takes := range all.files {
				x, result := run(takes)
				picture := strings.Contains(result.Destination, "/image?") // which is the message
				if x.texts > all.texts || x.texts == 0 && !picture {
					t.Errorf("%s: %d texts with %d of %d files, %d with all", result.Destination, x.texts, takes, all.files, all.texts)
				}
				if result.Status != notifier.Failed {
					t.Errorf("%s: %s with %d of %d files", result.Destination, result.Status, takes, all.files)
				}
			}
		}
	}
	if len(sent) < 40 {
		t.Errorf("only %d services sent a file", len(sent))
	}
}
