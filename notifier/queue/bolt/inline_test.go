package bolt

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// TestInlineBody checks that a short body is stored in the record of the only
// job until an attempt fails, and that it can be read after each step and each
// start.
func TestInlineBody(t *testing.T) {
	for _, tt := range []struct {
		name         string
		size         int
		destinations []string
		inline       bool
	}{
		{"short", maxInline, []string{"a"}, true},
		{"long", maxInline + 1, []string{"a"}, false},
		{"empty", 0, []string{"a"}, false},
		{"two jobs", 10, []string{"a", "b"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			var s *Store
			open := func() {
				t.Helper()
				var err error
				if s, err = Open(Options{Path: dir}); err != nil {
					t.Fatal(err)
				}
			}
			open()
			defer func() { _ = s.Close() }()
			e := newEntry([]byte(strings.Repeat("x", tt.size)), tt.destinations...)
			if err := s.Accept(t.Context(), 1<<30, e); err != nil {
				t.Fatal(err)
			}
			// check checks what is stored, before and after a start.
			check := func(step string, inline, separate bool) {
				t.Helper()
				for _, when := range []string{"at once", "after a start"} {
					if when != "at once" {
						if err := s.Close(); err != nil {
							t.Fatal(err)
						}
						open()
					}
					if gotInline, gotSeparate := bodies(t, s, e); gotInline != inline || gotSeparate != separate {
						t.Errorf("%s, %s: in the record of the job: %v, separate: %v", step, when, gotInline, gotSeparate)
					}
					m, release, err := s.Load(t.Context(), e.Message.ID)
					if !inline && !separate {
						if !errors.Is(err, queue.ErrNotFound) {
							t.Errorf("%s, %s: loading: %v", step, when, err)
						}
						continue
					}
					if err != nil {
						t.Fatalf("%s, %s: %v", step, when, err)
					}
					release()
					if string(m.Body) != string(e.Message.Body) {
						t.Errorf("%s, %s: the body is %.20q", step, when, m.Body)
					}
				}
			}
			// settle ends an attempt of the first job.
			settle := func(status queue.Status) {
				t.Helper()
				jobs, _, err := s.Claim(t.Context(), queue.Claim{Now: time.Now(), Max: 1, PerDestination: 1, Lease: time.Minute})
				if err != nil || len(jobs) != 1 {
					t.Fatal(jobs, err)
				}
				jobs[0].Status, jobs[0].Updated, jobs[0].Due = status, time.Now(), time.Now()
				if err := s.Settle(t.Context(), &queue.Settlement{Job: &jobs[0]}); err != nil {
					t.Fatal(err)
				}
			}
			check("accepted", tt.inline, !tt.inline)
			if len(tt.destinations) > 1 {
				return
			}
			settle(queue.Queued)
			check("failed", false, true)
			settle(queue.Dead)
			check("dead", false, true)
			if n, err := s.Retry(t.Context(), e.Message.ID, time.Now(), time.Now().Add(time.Hour)); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			check("retried", false, true)
			settle(queue.Delivered)
			check("delivered", false, false)
		})
	}
}

// bodies reports where the body of a message is stored: in the record of its
// first job, or separately.
func bodies(t *testing.T, s *Store, e *queue.Entry) (inline, separate bool) {
	t.Helper()
	err := s.view(func(tx *bbolt.Tx) error {
		separate = tx.Bucket([]byte(bucketBodies)).Get(e.Message.ID[:]) != nil
		key := record.JobKey(queue.JobID{Message: e.Message.ID})
		if sealed := tx.Bucket([]byte(bucketJobs)).Get(key); sealed != nil {
			_, _, body, err := s.openJobWithBody(key, sealed)
			inline = body != nil
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return inline, separate
}
