package configstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTokens checks that two processes agree on which keys have tokens, that saving and
// importing a key keeps its tokens, also with a secret, and that deleting it removes
// them.
func TestTokens(t *testing.T) {
	dir := t.TempDir()
	s, other := newStore(t, dir, "a secret of this test"), newStore(t, dir, "a secret of this test")
	save(t, s, "ops", "json://a")
	if s.HasTokens(t.Context(), 0) || other.HasTokens(t.Context(), 0) {
		t.Error("a token before there is one")
	}
	for i := range 3 {
		if n, err := s.AddToken(t.Context(), "ops", TokenHash{byte(i)}); n != i+1 || err != nil {
			t.Fatal(n, err)
		}
	}
	save(t, other, "ops", "json://b")
	if _, err := other.Import(t.Context(), map[string]Config{"ops": {Format: FormatText, Text: "json://c"}}, 10, true); err != nil {
		t.Fatal(err)
	}
	if n, err := other.RemoveOldTokens(t.Context(), "ops"); n != 2 || err != nil {
		t.Error(n, err)
	}
	c, err := s.Load(t.Context(), "ops")
	if err != nil || c.Text != "json://c" || len(c.Tokens) != 1 || c.Tokens[0] != (TokenHash{2}) {
		t.Errorf("%+v %v", c, err)
	}
	if !s.HasTokens(t.Context(), 0) || !other.HasTokens(t.Context(), 0) || !newStore(t, dir, "").HasTokens(t.Context(), 0) {
		t.Error("the token is not known everywhere")
	}
	if _, err := s.Delete(t.Context(), "ops"); err != nil {
		t.Fatal(err)
	}
	save(t, other, "ops", "json://a")
	if c, err := s.Load(t.Context(), "ops"); err != nil || len(c.Tokens) > 0 || s.HasTokens(t.Context(), 0) ||
		other.HasTokens(t.Context(), 0) {
		t.Errorf("after deleting the key: %+v %v", c, err)
	}
	if _, err := s.AddToken(t.Context(), "none", TokenHash{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a token of a key that does not exist: %v", err)
	}
}

// TestDamagedTokens checks that saving a key whose object is damaged does not open it
// to everyone.
func TestDamagedTokens(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, "")
	save(t, s, "ops", "json://a")
	if _, err := s.AddToken(t.Context(), "ops", TokenHash{1}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(s.folder.objectName("ops"))), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(t.Context(), "ops", FormatText, "json://b", 10); err == nil || !strings.Contains(err.Error(), "delete the key first") {
		t.Errorf("saving: %v", err)
	}
	if _, err := s.Delete(t.Context(), "ops"); err != nil {
		t.Fatal(err)
	}
	save(t, s, "ops", "json://b")
}
