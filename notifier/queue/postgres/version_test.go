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

// TestCompatibleTables checks what a gateway does with tables that another version has brought up to
// date in a way that it can live with: it opens them, goes on to use them, and leaves their numbers
// as they are. Tables of before there were two numbers get the second one, which a program of that
// time does not see.
func TestCompatibleTables(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	running := open(t, dsn)
	numbers := func(want string) {
		t.Helper()
		results := execute(t, dsn, "SELECT string_agg(id || '=' || version, ' ' ORDER BY id) FROM notify_queue_version")
		if got := string(results[0].Rows[0][0]); got != want {
			t.Errorf("the tables have %s, want %s", got, want)
		}
	}
	accept := func(what string, s *Store) {
		t.Helper()
		if err := s.Accept(t.Context(), 1<<30, newEntry("text", "d")); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	today := fmt.Sprintf("1=%d 2=%d", len(migrations), needs)
	numbers(today)
	execute(t, dsn, "DELETE FROM notify_queue_version WHERE id = 2")
	accept("tables without the second number", open(t, dsn))
	numbers(today)
	execute(t, dsn, fmt.Sprintf("UPDATE notify_queue_version SET version = %d WHERE id = 2", needs-1))
	accept("tables for earlier programs", open(t, dsn))
	numbers(today)

	execute(t, dsn, "UPDATE notify_queue_version SET version = 99 WHERE id = 1")
	time.Sleep(versionEvery + time.Second)
	accept("a gateway that ran before", running)
	accept("a gateway that starts later", open(t, dsn))
	if running.newer.Load() != nil {
		t.Error("the gateway takes the tables for too new")
	}
	numbers(fmt.Sprintf("1=99 2=%d", needs))

	execute(t, dsn, "DELETE FROM notify_queue_version WHERE id = 2")
	if s, err := openReady(t.Context(), Options{DSN: dsn, Secret: secret}); err == nil || !strings.Contains(err.Error(), "form 99") {
		s.Close()
		t.Errorf("newer tables without the second number: %v", err)
	}
}
