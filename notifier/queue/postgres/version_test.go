package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestNewerTables checks what a gateway does whose tables another one brings up to date: it says so
// once, takes nothing new, stores the outcome of a delivery under way, and hands over what it holds
// before the lease ends. It goes on when it knows the tables again.
func TestNewerTables(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	core, logs := observer.New(zap.WarnLevel)
	old, err := Open(t.Context(), Options{DSN: dsn, Secret: secret, Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	newer, err := Open(t.Context(), Options{DSN: dsn, Secret: secret, knows: 99})
	if err != nil {
		t.Fatal(err)
	}
	defer newer.Close()
	accept := func(s *Store, destination string) error {
		return s.Accept(t.Context(), 1<<30, newEntry("text", destination))
	}
	for _, destination := range []string{"ends", "hangs"} {
		if err := accept(old, destination); err != nil {
			t.Fatal(err)
		}
	}
	claimed := map[string]*queue.Job{}
	eventually := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	claim := func(s *Store) {
		jobs, _, err := s.Claim(t.Context(), queue.Claim{Now: time.Now(), Max: 10, Lease: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		for i := range jobs {
			claimed[jobs[i].Destination] = &jobs[i]
		}
	}
	eventually("two jobs are not claimed", func() bool { claim(old); return len(claimed) == 2 })

	execute(t, dsn, "UPDATE notify_queue_version SET version = 99")
	eventually("the older gateway still takes messages", func() bool { return accept(old, "refused") != nil })
	update := &queue.Update{Names: []queue.Hash{old.Hash("a")}, Decide: func(tx *queue.Tx) error {
		tx.Put(old.Hash("a"), queue.Record{Data: []byte("x"), Due: time.Now()})
		return nil
	}}
	_, _, claimErr := old.Claim(t.Context(), claimOf(10))
	old.due.changed()
	if claimErr == nil {
		_, _, claimErr = old.Claim(t.Context(), claimOf(10))
	}
	for what, err := range map[string]error{
		"a message": accept(old, "refused"), "a look whether it can store": old.Accept(t.Context(),
			1<<30), "a record": old.Update(t.Context(), update),
		"a state": old.SaveHealth(t.Context(), queue.Health{Destination: old.Hash("ends"), Known: true}), "a claim": claimErr,
	} {
		if err == nil || !strings.Contains(err.Error(), "update it") {
			t.Errorf("the older gateway stores %s: %v", what, err)
		}
	}
	if n := logs.FilterMessageSnippet("too old").Len(); n != 1 {
		t.Errorf("%d lines say that it is too old", n)
	}
	j := *claimed["ends"]
	j.Status, j.Updated = queue.Delivered, time.Now()
	if err := old.Settle(t.Context(), &queue.Settlement{Job: &j}); err != nil {
		t.Errorf("the outcome of a delivery under way: %v", err)
	}
	if e, err := old.Get(t.Context(), j.Message); err != nil || e.Jobs[0].Status != queue.Delivered {
		t.Errorf("what is stored cannot be read: %+v, %v", e, err)
	}
	delete(claimed, "hangs")
	if err := accept(newer, "new"); err != nil {
		t.Errorf("the newer gateway takes no messages: %v", err)
	}
	eventually("what the older gateway holds is not handed over",
		func() bool { claim(newer); return claimed["hangs"] != nil && claimed["new"] != nil })

	execute(t, dsn, fmt.Sprint("UPDATE notify_queue_version SET version = ", len(migrations)))
	eventually("the gateway does not go on", func() bool { return accept(old, "again") == nil })
}
