package record

import (
	"encoding/hex"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

func TestMessages(t *testing.T) {
	id := queue.NewID()
	now := time.UnixMicro(1_790_000_000_123_456)
	m := &Message{
		Created: now, Size: 77, Jobs: 3, Summary: []byte("summary"), Request: []byte("request"), Key: seal.Hash{1, 2},
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
		Host: "host:443", Client: true, Text: 77, NotBefore: now.Add(time.Minute), Spared: true, OwnAttempts: true,
		UnknownSince: now.Add(time.Second),
		Incident:     "incident", NewState: true, Note: []byte("note"), Rule: "held", Ruled: []byte("ruled"),
	}
	got, size, err := DecodeJob(id, AppendJob(nil, &job, 1<<33))
	if err != nil || size != 1<<33 || !reflect.DeepEqual(*got, job) {
		t.Errorf("%+v, %d, %v", got, size, err)
	}
	by := queue.JobID{Message: queue.NewID(), Index: 7}
	job.Status, job.By = queue.Superseded, by
	if got, _, err = DecodeJob(id, EncodeJob(&job)); err != nil || got.By != by || got.Incident != "" || got.Rule != "held" ||
		got.Ruled != nil {
		t.Errorf("a job that was replaced: %+v, %v", got, err)
	}
	job.Status = queue.Failed
	if got, _, err = DecodeJob(id, EncodeJob(&job)); err != nil || got.Status != queue.Failed || got.By != by {
		t.Errorf("a job in whose place another is kept: %+v, %v", got, err)
	}
	job.Status = queue.Delivered
	got, _, err = DecodeJob(id, EncodeJob(&job))
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

// TestStored reads records as earlier versions have stored them.
func TestStored(t *testing.T) {
	stored := func(text string) []byte {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	id := uuid.MustParse("01990000-0000-7000-8000-000000000001")
	now := time.UnixMicro(1_790_000_000_123_456)
	m, err := DecodeMessage(id, stored("088089bea2dbffad06104d1803220773756d6d6172792a0772657175657374321001020000000000000000000000000000"+
		"380038808080808020422088010208041803308089bea2dbffad064a06726573756c745206726561736f6e"))
	wantMessage := &Message{
		Created: now, Size: 77, Jobs: 3, Summary: []byte("summary"), Request: []byte("request"), Key: seal.Hash{1, 2}, Files: []int64{0, 1 << 40},
		Done: []queue.Job{{
			JobID: queue.JobID{Message: id, Index: 2}, Status: queue.Failed, Result: []byte("result"), Reason: "reason", Attempts: 3, Updated: now,
		}},
	}
	if err != nil || !reflect.DeepEqual(m, wantMessage) {
		t.Errorf("message: %+v, %v", m, err)
	}
	jid := queue.JobID{Message: id, Index: 1}
	j, size, err := DecodeJob(jid,
		stored("080510808080802018e807208089bea2dbffad06288099db8bf6ffad06308089bea2dbffad063a0b6a736f6e3a2f2f686f737442057374617465"+
			"9a0108696e636964656e74a00101aa01046e6f7465ca010572756c6564c2010468656c644a06726573756c745206726561736f6e"+
			"5a08686f73743a3434336001684d7080a5dadbdbffad06780190010180018092b8a3dbffad06"))
	wantJob := &queue.Job{
		JobID: jid, Status: queue.Dead, Destination: "json://host", State: []byte("state"), Result: []byte("result"), Reason: "reason",
		Attempts: 1000,
		Due:      now, Expires: now.Add(time.Hour), Updated: now, Host: "host:443", Client: true, Text: 77, NotBefore: now.Add(time.Minute),
		Spared:      true,
		OwnAttempts: true, UnknownSince: now.Add(time.Second), Incident: "incident", NewState: true, Note: []byte("note"), Rule: "held",
		Ruled: []byte("ruled"),
	}
	if err != nil || size != 1<<33 || !reflect.DeepEqual(j, wantJob) {
		t.Errorf("job: %+v, %d, %v", j, size, err)
	}
	h, err := DecodeHealth(queue.Hash{1},
		stored("0a05683a343433100118012003288089bea2dbffad063080f9a0b9c0ffad063a056572726f72408099db8bf6ffad064a0561626f7574"))
	wantHealth := queue.Health{
		Destination: queue.Hash{1}, Host: "h:443", Client: true, Known: true, Failures: 3, DownSince: now, LastSuccess: now.Add(-time.Hour),
		LastError: "error", Changed: now.Add(time.Hour), About: "about",
	}
	if err != nil || *h != wantHealth {
		t.Errorf("state of a destination: %+v, %v", h, err)
	}
}

func FuzzDecode(f *testing.F) {
	id := queue.NewID()
	f.Add(AppendJob(nil, &queue.Job{Destination: "d", Due: time.Now()}, 5))
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
