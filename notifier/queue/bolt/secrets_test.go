package bolt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/queuetest"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	queuetest.Secrets(t, func(_ *testing.T, _ bool, secret string, older ...string) (queue.Store, error) {
		s, err := Open(Options{Path: dir, Secret: secret, OldSecrets: older, NoSync: true})
		if err != nil {
			return nil, err
		}
		return s, nil
	})
}

// TestSecretsOfDamagedDatabase checks that the records of a database keep their names when the
// secret has changed, and the record that has the key of the names is damaged.
func TestSecretsOfDamagedDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const first, second = "the first secret, of the tests", "the second secret, of the tests"
	open := func(secret string, older ...string) (*Store, *observer.ObservedLogs) {
		t.Helper()
		core, logs := observer.New(zap.WarnLevel)
		s, err := Open(Options{Path: dir, Secret: secret, OldSecrets: older, NoSync: true, Logger: zap.New(core)})
		if err != nil {
			t.Fatal(err)
		}
		return s, logs
	}
	s, _ := open(first)
	name := s.Hash("a record")
	put := &queue.Update{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
		tx.Put(name, queue.Record{Data: []byte("content"), Due: time.Now().Add(time.Hour)})
		return nil
	}}
	if err := s.Update(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s, _ = open(second, first)
	if _, err := s.Reseal(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Close()

	db, err := os.ReadFile(filepath.Join(dir, "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := os.ReadFile(filepath.Join(dir, "ring"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(db), string(ring), strings.Repeat("x", len(ring)))
	if text == string(db) {
		t.Fatal("the database does not have the ring")
	}
	if err := os.WriteFile(filepath.Join(dir, "queue.db"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, logs := open(second)
	defer s.Close()
	if logs.FilterMessageSnippet("was damaged").Len() != 1 {
		t.Errorf("the log has %v", logs.All())
	}
	if data, err := s.Record(t.Context(), s.Hash("a record")); err != nil || string(data) != "content" {
		t.Errorf("the record is %q, %v", data, err)
	}
}
