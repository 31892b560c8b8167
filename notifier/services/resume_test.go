package services

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// interrupter fails the request with the given number with 503 and lets a
// Recorder answer all others.
type interrupter struct {
	*servicetest.Recorder
	fails int // from 0; -1 for none

	mu    sync.Mutex
	lines []string
}

func (x *interrupter) RoundTrip(q *http.Request) (*http.Response, error) {
	resp, err := x.Recorder.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.lines) == x.fails {
		resp.StatusCode, resp.Header = http.StatusServiceUnavailable, http.Header{}
	}
	x.lines = append(x.lines, q.Method+" "+q.URL.Host+q.URL.Path)
	return resp, nil
}

var anyUUID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// requests returns the sorted requests. Random IDs in them that are not in the
// saved Progress are masked.
func (x *interrupter) requests(saved []byte) []string {
	lines := make([]string, len(x.lines))
	for i, line := range x.lines {
		lines[i] = anyUUID.ReplaceAllStringFunc(line, func(id string) string {
			if bytes.Contains(saved, []byte(id)) {
				return id
			}
			return "NEW"
		})
	}
	slices.Sort(lines)
	return lines
}

// A delivery that one request has failed continues from a Progress that was
// saved as JSON exactly as from the Progress itself, for each service and each
// of its requests: nothing that services keep between steps is lost.
func TestResume(t *testing.T) {
	racetest.SkipIfSlow(t)
	resumed := 0
	for _, file := range racetest.Part(servicetest.Files(t, "."), 5) {
		for _, c := range servicetest.ReadCases(t, file) {
			if !strings.Contains(c.Want, "\ndelivered\n") {
				continue
			}
			run := func(fails int, p *notifier.Progress) (*interrupter, notifier.Result) {
				x := &interrupter{Recorder: c.Recorder(), fails: fails}
				sender := servicetest.NewSenderOver(t, x)
				d, err := sender.ParseWithFiles(c.URL, nil, notifier.Files{Dir: c.Files})
				if err != nil {
					t.Fatal(err)
				}
				return x, sender.Send(t.Context(), servicetest.Message(t, c.Message),
					[]notifier.Target{{Destination: d, Progress: p}}, notifier.Options{}).Results[0]
			}
			all, _ := run(-1, nil)
			for i := range min(len(all.lines), 12) {
				_, failed := run(i, nil)
				if failed.Status != notifier.Failed {
					continue // a request that does not matter, or one that the service repeats
				}
				saved, err := json.Marshal(failed.Progress)
				if err != nil {
					t.Fatal(err)
				}
				var restored notifier.Progress
				if err := json.Unmarshal(saved, &restored); err != nil {
					t.Fatal(err)
				}
				after, result := run(-1, &restored)
				if result.Status != notifier.Delivered {
					t.Errorf("%s: request %d failed; the next attempt: %v; %s", result.Destination, i, result.Err, saved)
				}
				same, _ := run(-1, failed.Progress)
				if a, b := after.requests(saved), same.requests(saved); !slices.Equal(a, b) {
					t.Errorf("%s: request %d failed; from JSON:\n%q\nfrom memory:\n%q\n%s", result.Destination, i, a, b, saved)
				}
				if len(after.lines) < len(all.lines) {
					resumed++
				}
			}
		}
	}
	want := 5
	if racetest.All() {
		want = 50
	}
	if resumed < want {
		t.Errorf("only %d deliveries continued where they had failed, want %d or more", resumed, want)
	}
}
