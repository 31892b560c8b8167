package configstore

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/caddyserver/certmagic"
)

// TestMove checks that a moved key keeps all its data, also encrypted, that its old name is free at
// once, and that all its former names lead to it.
func TestMove(t *testing.T) {
	for _, secret := range []string{"", "a secret of this test"} {
		dir := t.TempDir()
		s, other := newStore(t, dir, secret), newStore(t, dir, secret)
		const text = "# tabs\tand ends of lines\r\njson://host/ä\n"
		if err := s.Save(t.Context(), "a", FormatYAML, text, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := s.AddToken(t.Context(), "a", TokenHash{7}); err != nil {
			t.Fatal(err)
		}
		before, err := s.Load(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Move(t.Context(), "a", "b"); err != nil {
			t.Fatal(err)
		}
		if err := other.Save(t.Context(), "a", FormatText, "json://new", 9); err != nil {
			t.Fatal(err)
		}
		fresh, err := s.Load(t.Context(), "a")
		if err != nil || fresh.ID == before.ID || len(fresh.Tokens) > 0 || fresh.First != "a" {
			t.Errorf("the new key under the old name: %+v, %v", fresh, err)
		}
		if err := other.Move(t.Context(), "b", "c"); err != nil {
			t.Fatal(err)
		}
		after, err := s.Load(t.Context(), "c")
		if err != nil || after.Text != text || after.Format != FormatYAML || after.ID != before.ID || after.First != "a" ||
			!after.Created.Equal(before.Created) || !after.Changed.Equal(before.Changed) || !slices.Equal(after.Tokens, before.Tokens) {
			t.Errorf("secret %q: %+v is now %+v, %v", secret, before, after, err)
		}
		if !s.HasTokens(t.Context(), 0) || s.Has(t.Context(), "b", 0) {
			t.Error("the token or the name did not move")
		}
		for _, name := range []string{"a", "b"} {
			if now, err := other.Moved(t.Context(), name); err != nil || !slices.Equal(now, []string{"c"}) {
				t.Errorf("%s leads to %q, %v", name, now, err)
			}
		}
		if id, first, err := s.ID(t.Context(), "c", 0); id != before.ID || first != "a" || err != nil {
			t.Errorf("the ID is %q of %q, %v", id, first, err)
		}
		for _, c := range []struct {
			from, to string
			want     error
		}{{"b", "d", ErrNotFound}, {"a", "c", ErrExists}, {"c", "a", ErrExists}} {
			if err := s.Move(t.Context(), c.from, c.to); !errors.Is(err, c.want) {
				t.Errorf("%s to %s: %v, want %v", c.from, c.to, err, c.want)
			}
		}
		if was, err := s.Delete(t.Context(), "c"); err != nil || was != (Deleted{before.ID, "a"}) {
			t.Errorf("deleted %+v, %v", was, err)
		}
		for _, name := range []string{"a", "b"} {
			if now, err := s.Moved(t.Context(), name); err != nil || len(now) > 0 {
				t.Errorf("%s leads to %q after the key is deleted, %v", name, now, err)
			}
		}
	}
}

// TestMoveBack checks that a key can be moved in a circle, and that nothing leads from a name
// to itself.
func TestMoveBack(t *testing.T) {
	s := newStore(t, t.TempDir(), "")
	save(t, s, "a", "json://a")
	for _, name := range []string{"b", "c", "a", "b", "a"} {
		from, err := s.Keys(t.Context())
		if err != nil || len(from) != 1 {
			t.Fatal(from, err)
		}
		if err := s.Move(t.Context(), from[0], name); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string][]string{"a": nil, "b": {"a"}, "c": {"a"}} {
		if now, err := s.Moved(t.Context(), name); err != nil || !slices.Equal(now, want) {
			t.Errorf("%s leads to %q, %v", name, now, err)
		}
	}
}

// TestMoveFails checks every point at which the storage can fail during a move: the key is always
// under one name with all its data, its old name leads to it, and the same call finishes the move.
// The same holds for the way back.
func TestMoveFails(t *testing.T) {
	for _, back := range []bool{false, true} {
		for n := 1; ; n++ {
			storage := &failingStorage{FileStorage: certmagic.FileStorage{Path: t.TempDir()}}
			s, err := New(Options{Storage: storage, Index: new(Index)})
			if err != nil {
				t.Fatal(err)
			}
			from, to := "a", "b"
			save(t, s, from, "json://a")
			if _, err := s.AddToken(t.Context(), from, TokenHash{7}); err != nil {
				t.Fatal(err)
			}
			if back {
				if err := s.Move(t.Context(), from, to); err != nil {
					t.Fatal(err)
				}
				from, to = to, from
			}
			storage.failFrom = n
			failed := s.Move(t.Context(), from, to)
			storage.failFrom = 0
			fresh, err := New(Options{Storage: storage, Index: new(Index)}) // of the next process
			if err != nil {
				t.Fatal(err)
			}
			checkOneKey(t, fresh, from, to)
			if failed == nil {
				break
			}
			if err := fresh.Move(t.Context(), from, to); err != nil && !errors.Is(err, ErrNotFound) {
				t.Errorf("failure %d: again: %v", n, err)
			}
			if c, err := s.Load(t.Context(), to); err != nil || len(c.Tokens) != 1 || !fresh.HasTokens(t.Context(), 0) {
				t.Errorf("failure %d: after the second call: %+v, %v", n, c, err)
			}
			if keys, err := fresh.Keys(t.Context()); err != nil || !slices.Equal(keys, []string{to}) {
				t.Errorf("failure %d: the keys are %q, %v", n, keys, err)
			}
			if _, err := fresh.Delete(t.Context(), to); err != nil {
				t.Error(err)
			}
			if keys, err := fresh.Keys(t.Context()); err != nil || len(keys) > 0 {
				t.Errorf("failure %d: after deleting the key there is %q, %v", n, keys, err)
			}
		}
	}
}

// checkOneKey checks that one of two names has the key with its token, and that the other leads
// there if it is the old one.
func checkOneKey(t *testing.T, s *Store, from, to string) {
	t.Helper()
	there := 0
	for _, name := range []string{from, to} {
		c, err := s.Load(t.Context(), name)
		switch {
		case errors.Is(err, ErrNotFound) && name == from:
			if now, err := s.Moved(t.Context(), from); err != nil || !slices.Equal(now, []string{to}) {
				t.Errorf("the old name leads to %q, %v", now, err)
			}
		case errors.Is(err, ErrNotFound):
		case err != nil || len(c.Tokens) != 1 || c.Text != "json://a":
			t.Errorf("%s: %+v, %v", name, c, err)
		default:
			there++
		}
	}
	if there != 1 {
		t.Errorf("%d names have the key", there)
	}
}

// failingStorage fails from its nth change on.
type failingStorage struct {
	certmagic.FileStorage

	failFrom int // 0 for never
	changes  int
}

var errStorage = errors.New("the storage fails")

func (s *failingStorage) fails() bool {
	if s.failFrom == 0 {
		s.changes = 0
		return false
	}
	s.changes++
	return s.changes >= s.failFrom
}

func (s *failingStorage) Store(ctx context.Context, key string, value []byte) error {
	if s.fails() {
		return errStorage
	}
	return s.FileStorage.Store(ctx, key, value)
}

func (s *failingStorage) Delete(ctx context.Context, key string) error {
	if s.fails() {
		return errStorage
	}
	return s.FileStorage.Delete(ctx, key)
}
