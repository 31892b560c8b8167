package configstore

import (
	"errors"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/storagetest"
)

// TestID checks that a key gets an ID when it is made, and keeps it until it is deleted, even if
// another process changes it.
func TestID(t *testing.T) {
	storage := storagetest.New(t.TempDir())
	newStore := func() *Store {
		s, err := New(Options{Storage: storage, Index: new(Index)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, other := newStore(), newStore()
	id := func(refresh time.Duration) string {
		t.Helper()
		id, _, err := s.ID(t.Context(), "ops", refresh)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := s.Load(t.Context(), "ops"); refresh == 0 && (err != nil || c.ID != id) {
			t.Errorf("the configuration has another ID: %v", err)
		}
		return id
	}
	save := func(s *Store) {
		t.Helper()
		if err := s.Save(t.Context(), "ops", FormatText, "json://h", 9); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.ID(t.Context(), "ops", time.Hour); !errors.Is(err, ErrNotFound) {
		t.Errorf("there is none: %v", err)
	}
	save(s)
	first := id(0)
	if first == "" {
		t.Fatal("a key has no ID")
	}
	save(other)
	if _, err := other.AddToken(t.Context(), "ops", TokenHash{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(t.Context(), map[string]Config{"ops": {Format: FormatText, Text: "json://i"}}, 9, true); err != nil {
		t.Fatal(err)
	}
	if got := id(0); got != first {
		t.Errorf("saved again it has the ID %s, before %s", got, first)
	}
	if got, err := other.Delete(t.Context(), "ops"); err != nil || got != (Deleted{first, "ops"}) {
		t.Errorf("deleted: %q, %v", got, err)
	}
	save(other)
	if got := id(time.Hour); got != first {
		t.Error("the ID is read each time")
	}
	if got := id(0); got == first {
		t.Error("a key that was deleted and saved again has the ID of before")
	}
	second := id(0)
	if _, err := s.Delete(t.Context(), "ops"); err != nil {
		t.Fatal(err)
	}
	save(s)
	if got := id(time.Hour); got == second {
		t.Error("after a change of its own, a store has the ID of before")
	}
}
