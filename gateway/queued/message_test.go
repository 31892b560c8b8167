package queued

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestMessageOfText checks that a stored message equals the original, with its files.
func TestMessageOfText(t *testing.T) {
	text := exampleText()
	text.Files = text.Files[:1]
	content := strings.NewReader("content")
	m, err := text.Message(&queue.Message{Files: []queue.File{{Size: content.Size(), ReaderAt: content}}})
	if err != nil {
		t.Fatal(err)
	}
	a := m.Attachments[0]
	b, err := io.ReadAll(io.NewSectionReader(a.ReaderAt(), 0, a.Size))
	if err != nil || string(b) != "content" || a.Name != "a.txt" || a.ContentType != "text/plain" {
		t.Errorf("the file is %q, %+v, %v", b, a, err)
	}
	want := &notifier.Message{
		Title: text.Title, Body: text.Body, Type: text.Type, Format: text.Format, Time: text.Time, Hops: 300, Incident: text.Incident,
		Foreign: true, Dialect: text.Dialect, Thread: text.Thread,
		Attachments: m.Attachments,
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, want %+v", m, want)
	}
	if _, err := text.Message(&queue.Message{}); err == nil {
		t.Error("a message without its file is read")
	}
}

// TestJobResults checks how clients see a job in each of its states, and how the response to a
// repeated request describes it.
func TestJobResults(t *testing.T) {
	due, by := time.Unix(1_790_000_000, 0), queue.JobID{Message: uuid.UUID{7}}
	failed := AppendResult(nil, notifier.Result{
		Service: "JSON", Status: notifier.Failed, Err: errors.New("the service answered 503"),
		Attempts: 2, Elapsed: time.Second,
	})
	ruled := Ruled{Incident: queue.Hash{1}, Step: 3}
	for name, test := range map[string]struct {
		job  queue.Job
		want notifier.Result
	}{
		"queued": {queue.Job{Status: queue.Queued, Due: due}, notifier.Result{Status: message.StatusQueued}},
		"held": {
			queue.Job{Status: queue.Held, Due: due, Rule: string(notifier.RuleHeld)},
			notifier.Result{Status: message.StatusQueued, Rule: notifier.RuleHeld, Until: due},
		},
		"in order": {queue.Job{Status: queue.Held, Due: due}, notifier.Result{Status: message.StatusQueued}},
		"escalating": {
			queue.Job{Status: queue.Held, Due: due, Rule: string(notifier.RuleEscalating), Ruled: ruled.Encode()},
			notifier.Result{Status: message.StatusQueued, Rule: notifier.RuleEscalating, Until: due, Step: 3},
		},
		"replaced": {
			queue.Job{Status: queue.Superseded, By: by, Result: failed},
			notifier.Result{
				Service: "JSON", Status: notifier.Skipped, Rule: notifier.RuleSuperseded, By: by.Message.String(), Attempts: 2,
				Elapsed: time.Second,
			},
		},
		"suppressed": {
			queue.Job{Status: queue.Superseded, Rule: string(notifier.RuleSuppressed)},
			notifier.Result{Status: notifier.Skipped, Rule: notifier.RuleSuppressed},
		},
		"cancelled": {queue.Job{Status: queue.Cancelled}, notifier.Result{Status: message.StatusCancelled}},
		"failed": {
			queue.Job{Status: queue.Failed, Result: failed},
			notifier.Result{
				Service: "JSON", Status: notifier.Failed, Err: errors.New("the service answered 503"), Attempts: 2,
				Elapsed: time.Second,
			},
		},
		"dead": {
			queue.Job{Status: queue.Dead, Result: failed, Reason: "too old"},
			notifier.Result{
				Service: "JSON", Status: notifier.Failed, Err: errors.New("the service answered 503"), Attempts: 2,
				Elapsed: time.Second,
			},
		},
		"never tried": {queue.Job{Status: queue.Dead, Reason: "too old"}, notifier.Result{Status: notifier.Failed, Err: errors.New("too old")}},
		"lost": {
			queue.Job{Status: queue.Lost, Result: failed, Reason: "damaged"},
			notifier.Result{Service: "JSON", Status: notifier.Failed, Err: errors.New("damaged"), Attempts: 2, Elapsed: time.Second},
		},
		"not repeated": {
			queue.Job{Status: queue.Delivered, Result: AppendResult(nil, notifier.Result{Status: notifier.Delivered})},
			notifier.Result{Status: notifier.Delivered},
		},
	} {
		r := JobResult(&test.job)
		if waits := test.job.Status == queue.Queued; waits != (r.NextAttempt != nil) || waits && !r.NextAttempt.Equal(due) {
			t.Errorf("%s: the next attempt is at %v", name, r.NextAttempt)
		}
		test.want.Tags = []string{}
		got := Results(&message.QueuedMessage{Results: []message.QueuedResult{r}})
		if len(got) != 1 || !reflect.DeepEqual(got[0], test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// TestMessageOfEntry checks that clients see the incident of a message.
func TestMessageOfEntry(t *testing.T) {
	m := Message(&queue.Entry{
		Message: &queue.Message{ID: uuid.UUID{1}, Created: at, Summary: exampleSummary().Encode()},
		Jobs:    []queue.Job{{Status: queue.Queued}},
	})
	if m.ID != (uuid.UUID{1}).String() || !m.Created.Equal(at) || m.Incident != "disk db1" || m.State != "queued" || len(m.Results) != 1 {
		t.Errorf("%+v", m)
	}
}
