package record

import (
	"reflect"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

func TestMessages(t *testing.T) {
	id := queue.NewID()
	now := time.UnixMicro(1_790_000_000_123_456)
	m := &Message{
		Created: now, Size: 77, Jobs: 3, Summary: []byte("summary"), Request: []byte("request"), Key: &seal.Hash{1, 2},
		Files: []int64{0, 1 << 40},
		Done: []queue.Job{{
			JobID: queue.JobID{Message: id, Index: 2}, Status: queue.Failed, Result: []byte("result"), Reason: "reason", Attempts: 3, Updated: now,
		}},
	}
	for _, want := range []*Message{m, {Created: now}} {
		got, err := DecodeMessage(id, want.Encode())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
}

func TestJobs(t *testing.T) {
	id := queue.JobID{Message: queue.NewID(), Index: queue.MaxJobs - 1}
	if got := ParseJobKey(JobKey(id)); got != id {
		t.Errorf("%v, want %v", got, id)
	}
	now := time.UnixMicro(1_790_000_000_123_456)
	job := queue.Job{
		JobID: id, Status: queue.Dead, Destination: "json://host", State: []byte("state"), Result: []byte("result"),
		Reason: "reason", Attempts: 1000, Due: now, Expires: now.Add(time.Hour), Updated: now,
		Host: "host:443", Client: true, Text: 77, NotBefore: now.Add(time.Minute), Spared: true, OwnAttempts: true, UnknownSince: now.Add(time.Second),
		Incident: "incident", NewState: true, Note: []byte("note"), Rule: "held", Ruled: []byte("ruled"),
	}
	got, size, err := DecodeJob(id, EncodeJob(&job, 1<<33))
	if err != nil || size != 1<<33 || !reflect.DeepEqual(*got, job) {
		t.Errorf("%+v, %d, %v", got, size, err)
	}
	by := queue.JobID{Message: queue.NewID(), Index: 7}
	job.Status, job.By = queue.Superseded, by
	if got, _, err = DecodeJob(id, EncodeJob(&job, 0)); err != nil || got.By != by || got.Incident != "" || got.Rule != "held" || got.Ruled != nil {
		t.Errorf("a job that was replaced: %+v, %v", got, err)
	}
	job.Status = queue.Failed
	if got, _, err = DecodeJob(id, EncodeJob(&job, 0)); err != nil || got.Status != queue.Failed || got.By != by {
		t.Errorf("a job in whose place another is kept: %+v, %v", got, err)
	}
	job.Status = queue.Delivered
	got, _, err = DecodeJob(id, EncodeJob(&job, 0))
	if err != nil || got.Destination != "" || got.State != nil || string(got.Result) != "result" {
		t.Errorf("a job that has ended: %+v, %v", got, err)
	}
}

func TestHealth(t *testing.T) {
	now := time.UnixMicro(1_790_000_000_123_456)
	want := queue.Health{
		Destination: queue.Hash{1}, Host: "h:443", Client: true, Known: true, Failures: 3, DownSince: now, LastSuccess: now.Add(-time.Hour),
		LastError: "error", Changed: now.Add(time.Hour),
	}
	got, err := DecodeHealth(want.Destination, AppendHealth(nil, &want))
	if err != nil || *got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzDecode(f *testing.F) {
	id := queue.NewID()
	f.Add(EncodeJob(&queue.Job{Destination: "d", Due: time.Now()}, 5))
	f.Add((&Message{Created: time.Now(), Done: []queue.Job{{}}, Files: []int64{1}}).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := DecodeMessage(id, b); err == nil {
			if _, err := DecodeMessage(id, m.Encode()); err != nil {
				t.Error(err)
			}
		}
		_, _, _ = DecodeJob(queue.JobID{}, b)
	})
}
