package bolt

import (
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestKeptFromClaim checks that the store tells when a job can be claimed which an update
// has kept from it, and leaves as it was. The scheduler did not hear of it, and sent the job
// up to a minute later.
func TestKeptFromClaim(t *testing.T) {
	t.Parallel()
	s, err := Open(Options{Path: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := newEntry([]byte("body"), "json://host")
	if err := s.Accept(t.Context(), 1<<40, e); err != nil {
		t.Fatal(err)
	}
	claim := queue.Claim{Now: time.Now().Add(time.Minute), Max: 1}
	u := &queue.Update{Decide: func(tx *queue.Tx) error {
		if _, err := tx.StatusOf(queue.JobID{Message: e.Message.ID}); err != nil {
			return err
		}
		select {
		case <-s.Changed():
		default:
		}
		if jobs, next, err := s.Claim(t.Context(), claim); err != nil || len(jobs) > 0 || !next.IsZero() {
			t.Errorf("during the update, claimed %v, next %s, %v", jobs, next, err)
		}
		return nil
	}}
	if err := s.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Changed():
	case <-time.After(time.Minute):
		t.Fatal("nothing tells that the job can be claimed")
	}
	if jobs, _, err := s.Claim(t.Context(), claim); err != nil || len(jobs) != 1 {
		t.Errorf("after the update, claimed %v, %v", jobs, err)
	}
}
