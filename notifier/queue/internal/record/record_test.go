package record

import (
	"errors"
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
	}
	got, size, err := DecodeJob(id, EncodeJob(&job, 1<<33))
	if err != nil || size != 1<<33 || !reflect.DeepEqual(*got, job) {
		t.Errorf("%+v, %d, %v", got, size, err)
	}
	job.Status = queue.Delivered
	got, _, err = DecodeJob(id, EncodeJob(&job, 0))
	if err != nil || got.Destination != "" || got.State != nil || string(got.Result) != "result" {
		t.Errorf("a job that has ended: %+v, %v", got, err)
	}
}

func TestRecordsOfLaterVersions(t *testing.T) {
	b := EncodeJob(&queue.Job{}, 0)
	b[0]++
	if _, _, err := DecodeJob(queue.JobID{}, b); !errors.Is(err, ErrFormat) {
		t.Error(err)
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
