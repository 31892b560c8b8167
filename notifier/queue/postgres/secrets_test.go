package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/queuetest"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	queuetest.Secrets(t, func(t *testing.T, later bool, secret string, older ...string) (queue.Store, error) {
		o := Options{DSN: dsn, Secret: secret, OldSecrets: older}
		if later {
			o.later = time.Hour
		}
		s, err := openReady(t.Context(), o)
		if err != nil {
			return nil, err
		}
		return s, nil
	})
}

// TestForeignSecret checks that a gateway leaves alone what another one has sealed under a secret that it
// does not have, and goes on when it gets the secret.
func TestForeignSecret(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	const next = "the next secret, of the tests"
	behind := open(t, dsn)
	name := behind.Hash("a record")
	put := func(s *Store, text string) error {
		return s.Update(t.Context(), &queue.Update{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
			if text == "" && tx.Get(name) == nil {
				t.Error("a record that cannot be read counts as missing")
			}
			tx.Put(name, queue.Record{Data: []byte(text + "."), Due: time.Now().Add(-time.Second)})
			return nil
		}})
	}
	if err := put(behind, "before"); err != nil {
		t.Fatal(err)
	}
	ahead, err := openReady(t.Context(), Options{DSN: dsn, Secret: next, OldSecrets: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	defer ahead.Close()
	e := newEntry("text", "d")
	if err := errors.Join(ahead.Accept(t.Context(), 1<<30, e), put(ahead, "after")); err != nil {
		t.Fatal(err)
	}
	foreign := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, errForeign) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = behind.Record(t.Context(), name)
	foreign("a record", err)
	foreign("an update", put(behind, ""))
	_, _, err = behind.DueRecords(t.Context(), time.Now(), queue.DuePlace{}, 10)
	foreign("what is due", err)
	_, _, err = behind.Load(t.Context(), e.Message.ID)
	foreign("a text", err)
	behind.due.changed()
	if jobs, _, err := behind.Claim(t.Context(), queue.Claim{Now: time.Now(), Max: 10, Lease: time.Minute}); len(jobs) > 0 {
		t.Errorf("claimed %v, %v", jobs, err)
	}
	for end := time.Now().Add(10 * time.Second); !behind.foreign.Load(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the gateway does not notice the other secret")
		}
	}
	foreign("a message", behind.Accept(t.Context(), 1<<30, newEntry("text", "d")))
	if got, err := ahead.Get(t.Context(), e.Message.ID); err != nil || !got.Jobs[0].Status.Waits() {
		t.Errorf("the message is %+v, %v", got, err)
	}

	if err := behind.SetSecrets(t.Context(), secret, next); err != nil {
		t.Fatal(err)
	}
	if data, err := behind.Record(t.Context(), name); err != nil || string(data) != "after." {
		t.Errorf("with the secret, the record is %q, %v", data, err)
	}
	end := time.Now().Add(10 * time.Second)
	for ; behind.Accept(t.Context(), 1<<30, newEntry("text", "d")) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the gateway does not go on")
		}
	}
	if old, err := ahead.Reseal(t.Context()); err != nil || !old.Used {
		t.Errorf("while another gateway seals under the old secret: %+v, %v", old, err)
	}
}
