package bolt

import (
	"slices"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestPostpone checks that a failed attempt to a destination that is down also
// postpones the jobs that were due before it began, unless they need attempts of
// their own or have expired.
func TestPostpone(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second)
	for _, test := range []struct {
		name   string
		change func(e *queue.Entry)
		want   time.Time // when the second job is due
	}{
		{"due before", func(*queue.Entry) {}, now.Add(time.Hour)},
		{"due after", func(e *queue.Entry) { e.Jobs[0].Due = now }, now},
		{"own attempts", func(e *queue.Entry) { e.Jobs[0].OwnAttempts = true }, now.Add(-time.Minute)},
		{"expired", func(e *queue.Entry) { e.Jobs[0].Expires = now.Add(-2 * time.Second) }, now.Add(-time.Minute)},
		{"expires soon", func(e *queue.Entry) { e.Jobs[0].Expires = now.Add(time.Minute) }, now.Add(time.Minute + time.Second)},
		{"after a Retry-After", func(e *queue.Entry) { e.Jobs[0].NotBefore = e.Jobs[0].Due }, now.Add(time.Hour)},
		{"of another destination", func(e *queue.Entry) { e.Jobs[0].Destination = "json://other" }, now.Add(-time.Minute)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(Options{Path: t.TempDir(), NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			first, second := newEntry([]byte("first"), "json://host"), newEntry([]byte("second"), "json://host")
			first.Jobs[0].Due, second.Jobs[0].Due = now.Add(-2*time.Minute), now.Add(-time.Minute)
			first.Jobs[0].Updated, second.Jobs[0].Updated = now, now
			test.change(second)
			if err := s.Accept(t.Context(), 1<<40, first, second); err != nil {
				t.Fatal(err)
			}
			jobs, _, err := s.Claim(t.Context(), queue.Claim{Now: now, Max: 1})
			if err != nil || len(jobs) != 1 || jobs[0].Message != first.Message.ID {
				t.Fatalf("claimed %+v, %v", jobs, err)
			}
			j := jobs[0]
			j.Status, j.Due, j.Updated = queue.Queued, now.Add(time.Hour), now
			f := &queue.SharedFailure{Began: now.Add(-time.Second), Until: now.Add(time.Hour)}
			if err := s.Settle(t.Context(), &queue.Settlement{Job: &j, Shared: f}); err != nil {
				t.Fatal(err)
			}
			all, err := s.List(t.Context(), queue.JobID{}, 10, queue.Queued)
			i := slices.IndexFunc(all, func(j queue.Job) bool { return j.Message == second.Message.ID })
			if err != nil || len(all) != 2 || !all[i].Due.Equal(test.want) {
				t.Errorf("%+v, %v, want %s", all, err, test.want)
			}
			jobs, next, err := s.Claim(t.Context(), queue.Claim{Now: now, Max: 2})
			if err != nil || (len(jobs) == 1) == test.want.After(now) || len(jobs) == 0 && !next.Equal(test.want) {
				t.Errorf("claimed %+v, the next at %s, %v", jobs, next, err)
			}
		})
	}
}
