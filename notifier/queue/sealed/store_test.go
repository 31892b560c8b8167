package sealed

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
	"github.com/caddy-notify/caddy-notify/notifier/queue/queuetest"
)

const secret = "a secret of the tests"

// TestConformance runs the tests of stores with one that is sealed.
func TestConformance(t *testing.T) {
	t.Parallel()
	const sizes = "what is sealed is larger than the sizes that the test expects"
	skip := map[string]string{"Full": sizes, "RecordSizes": sizes, "ForgetBySize": sizes, "Stats": sizes}
	queuetest.Run(t, queuetest.Engine{Skip: skip, New: func(t *testing.T) func(log *zap.Logger) (queue.Store, error) {
		dir := t.TempDir()
		return func(log *zap.Logger) (queue.Store, error) {
			store, err := bolt.Open(bolt.Options{Path: dir, Logger: log, NoSync: true})
			if err != nil {
				return nil, err
			}
			return New(context.Background(), store, log, secret)
		}
	}})
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	queuetest.Secrets(t, func(t *testing.T, later bool, secret string, older ...string) (queue.Store, error) {
		store, err := bolt.Open(bolt.Options{Path: dir, NoSync: true})
		if err != nil {
			return nil, err
		}
		s, err := New(t.Context(), store, nil, secret, older...)
		if err != nil {
			store.Close()
			return nil, err
		}
		if later {
			s.later = time.Hour
		}
		return s, nil
	})
}

// TestMessagesNeedOldSecret checks that messages, which the other store cannot seal again, count until they
// are forgotten.
func TestMessagesNeedOldSecret(t *testing.T) {
	t.Parallel()
	store, err := bolt.Open(bolt.Options{Path: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	const next = "the next secret of the tests"
	s, err := New(t.Context(), store, nil, secret)
	if err != nil {
		t.Fatal(err)
	}
	accept := func() {
		t.Helper()
		id := uuid.Must(uuid.NewV7())
		e := &queue.Entry{
			Message: &queue.Message{ID: id, Created: time.Now(), Body: []byte("text")},
			Jobs: []queue.Job{{
				JobID: queue.JobID{Message: id}, Status: queue.Queued, Destination: "d", Due: time.Now(), Expires: time.Now().Add(time.Hour),
			}},
		}
		if err := s.Accept(t.Context(), 1<<30, e); err != nil {
			t.Fatal(err)
		}
	}
	for range messagesAtOnce + 2 {
		accept()
	}
	if err := s.SetSecrets(t.Context(), next, secret); err != nil {
		t.Fatal(err)
	}
	accept()
	s.later = time.Hour // no other process seals under the old one
	reseal := func(want int) {
		t.Helper()
		old, err := s.Reseal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if old.Records != want || old.Needed() != (want > 0) {
			t.Errorf("%+v, want %d", old, want)
		}
	}
	reseal(messagesAtOnce + 2)
	jobs, _, err := s.Claim(t.Context(), queue.Claim{Now: time.Now(), Max: messagesAtOnce + 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs {
		jobs[i].Status, jobs[i].Updated = queue.Delivered, time.Now()
		if err := s.Settle(t.Context(), &queue.Settlement{Job: &jobs[i]}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Forget(t.Context(), time.Now().Add(time.Hour), 0); err != nil {
		t.Fatal(err)
	}
	reseal(1)
	if err := s.SetSecrets(t.Context(), next); err == nil {
		t.Error("the old secret can be removed while a message needs it")
	}
}
