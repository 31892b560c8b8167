package configstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-notify/caddy-notify/internal/storagetest"
)

func newStore(t *testing.T, dir, secret string) *Store {
	t.Helper()
	s, err := New(Options{Storage: &certmagic.FileStorage{Path: dir}, Index: new(Index), Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func save(t *testing.T, s *Store, key, text string) {
	t.Helper()
	if err := s.Save(t.Context(), key, FormatText, text, 10); err != nil {
		t.Fatalf("saving %s: %v", key, err)
	}
}

func TestStore(t *testing.T) {
	s := newStore(t, t.TempDir(), "")
	const text = "# tabs\tand ends of lines\r\njson://host/ä\n"
	if err := s.Save(t.Context(), "Ops", FormatYAML, text, 10); err != nil {
		t.Fatal(err)
	}
	save(t, s, "ops", "json://other\n")
	c, err := s.Load(t.Context(), "Ops")
	if err != nil || c.Text != text || c.Format != FormatYAML || c.Changed.IsZero() {
		t.Errorf("Load returns %+v, %v; the text must be there byte for byte", c, err)
	}
	keys, err := s.Keys(t.Context())
	if slices.Sort(keys); err != nil || !slices.Equal(keys, []string{"Ops", "ops"}) {
		t.Errorf("the keys are %q, %v", keys, err)
	}
	if _, err := s.Delete(t.Context(), "Ops"); err != nil {
		t.Error(err)
	}
	if _, err := s.Delete(t.Context(), "Ops"); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleting twice: %v", err)
	}
	if _, err := s.Load(t.Context(), "Ops"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a deleted key: %v", err)
	}
	if _, err := s.Load(t.Context(), "ops"); err != nil {
		t.Errorf("the key that differs in case: %v", err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestNames checks that the names of objects are in lower case, and no longer
// than file systems allow.
func TestNames(t *testing.T) {
	s := newStore(t, t.TempDir(), "")
	for _, key := range []string{"a", "A", "messages_", strings.Repeat("Z", 128), "-_-"} {
		name := s.folder.objectName(key)
		base := filepath.Base(name)
		if base != strings.ToLower(base) || len(base) > 255 {
			t.Errorf("the name of %s is %s", key, base)
		}
		if got, ok := s.folder.keyOf(name); !ok || got != key {
			t.Errorf("the name of %s is read back as %q", key, got)
		}
	}
	if _, ok := s.folder.keyOf(defaultFolder + "/check.tmp"); ok {
		t.Error("another file counts as a key")
	}
}

// TestSpaces checks that spaces of one storage have no key, text or ID in common.
func TestSpaces(t *testing.T) {
	dir := t.TempDir()
	storage := &certmagic.FileStorage{Path: dir}
	for _, secret := range []string{"", "sixteen characters"} {
		stores, ids, files := map[string]*Store{}, map[string]string{}, map[string][]byte{}
		for _, space := range []string{"", "team", "team2", "configs"} {
			s, err := New(Options{Storage: storage, Space: space, Index: new(Index), Secret: secret})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Save(t.Context(), "ops", FormatText, "of "+space, 1); err != nil {
				t.Errorf("the only key of the space %q: %v", space, err)
			}
			id, err := s.IDKey(t.Context())
			if other, ok := ids[string(id)]; ok || err != nil {
				t.Errorf("%q and %q have the same key for IDs, %v", space, other, err)
			}
			ids[string(id)], stores[space] = space, s
		}
		for space, s := range stores {
			keys, err := s.Keys(t.Context())
			if err != nil || !slices.Equal(keys, []string{"ops"}) {
				t.Errorf("the space %q has the keys %q, %v", space, keys, err)
			}
			if c, err := s.Load(t.Context(), "ops"); err != nil || c.Text != "of "+space {
				t.Errorf("the space %q: %+v, %v", space, c, err)
			}
			file := filepath.Join(dir, filepath.FromSlash(s.folder.objectName("ops")))
			if files[file], err = os.ReadFile(file); err != nil {
				t.Error(err)
			}
		}
		if secret != "" { // an encrypted object that is moved to another space cannot be read
			from := filepath.Join(dir, filepath.FromSlash(stores["team"].folder.objectName("ops")))
			to := filepath.Join(dir, filepath.FromSlash(stores[""].folder.objectName("ops")))
			if err := os.WriteFile(to, files[from], 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := stores[""].Load(t.Context(), "ops"); !errors.Is(err, ErrSealed) {
				t.Errorf("an object of another space: %v", err)
			}
		}
		for _, s := range stores {
			if _, err := s.Delete(t.Context(), "ops"); err != nil {
				t.Error(err)
			}
		}
	}
	for _, name := range []string{"Team", "..", "a/b", `a\b`, "a.b", " ", "ä", DefaultSpace, strings.Repeat("a", 65)} {
		if _, err := New(Options{Storage: storage, Space: name, Index: new(Index)}); err == nil {
			t.Errorf("a space has the name %q", name)
		}
	}
	// Storages may list folders whose names begin alike.
	s, err := New(Options{Storage: storage, Space: "team", Index: new(Index)})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.folder.keyOf("notify/spaces/team2/n5yhg.json"); ok {
		t.Error("an object of another space counts as a key")
	}
}

func TestMaxKeys(t *testing.T) {
	s := newStore(t, t.TempDir(), "")
	for i := range 3 {
		if err := s.Save(t.Context(), fmt.Sprint("key", i), FormatText, "x", 3); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Save(t.Context(), "more", FormatText, "x", 3); !errors.Is(err, ErrTooMany) {
		t.Errorf("the fourth of three keys: %v", err)
	}
	if err := s.Save(t.Context(), "key0", FormatText, "changed", 3); err != nil {
		t.Errorf("changing one of three keys: %v", err)
	}
}

// TestCountKeys checks that saving new keys does not list all keys each time while there is room,
// and that the limit holds.
func TestCountKeys(t *testing.T) {
	storage := storagetest.New(t.TempDir())
	s, err := New(Options{Storage: storage, Index: new(Index)})
	if err != nil {
		t.Fatal(err)
	}
	const maxKeys = 100
	for i := range 80 {
		if err := s.Save(t.Context(), fmt.Sprint("key", i), FormatText, "x", maxKeys); err != nil {
			t.Fatal(err)
		}
	}
	if n := storage.Lists.Load(); n != 1 {
		t.Errorf("80 new keys took %d lists", n)
	}
	for i := 80; i < maxKeys; i++ {
		if err := s.Save(t.Context(), fmt.Sprint("key", i), FormatText, "x", maxKeys); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Save(t.Context(), "more", FormatText, "x", maxKeys); !errors.Is(err, ErrTooMany) {
		t.Errorf("one key too many: %v", err)
	}
}

// TestImport checks that an import replaces keys only with replace, and
// stores nothing if there would be too many.
func TestImport(t *testing.T) {
	for _, replace := range []bool{false, true} {
		s := newStore(t, t.TempDir(), "0123456789abcdef")
		save(t, s, "a", "old")
		configs := map[string]Config{"a": {Format: FormatText, Text: "new"}, "b": {Format: FormatYAML, Text: "new"}}
		if _, err := s.Import(t.Context(), configs, 1, replace); !errors.Is(err, ErrTooMany) {
			t.Errorf("one key too many: %v", err)
		}
		if _, err := s.Load(t.Context(), "b"); !errors.Is(err, ErrNotFound) {
			t.Errorf("after an import that failed: %v", err)
		}
		existing, err := s.Import(t.Context(), configs, 2, replace)
		if err != nil || slices.Equal(existing, []string{"a"}) == replace {
			t.Errorf("replace %v: %q, %v", replace, existing, err)
		}
		want := map[bool]string{false: "old", true: "new"}[replace]
		if c, err := s.Load(t.Context(), "a"); err != nil || c.Text != want {
			t.Errorf("replace %v: %+v, %v", replace, c, err)
		}
		if c, err := s.Load(t.Context(), "b"); err != nil || c.Text != "new" || c.Format != FormatYAML {
			t.Errorf("the new key: %+v, %v", c, err)
		}
	}
}

// TestConcurrentWriters lets many writers in two processes write to one key and checks that a whole
// text of one of them remains.
func TestConcurrentWriters(t *testing.T) {
	dir := t.TempDir()
	stores := []*Store{newStore(t, dir, ""), newStore(t, dir, "")}
	texts := map[string]bool{}
	var wg sync.WaitGroup
	for i := range 50 {
		text := strings.Repeat(fmt.Sprint(i, "\n"), 10_000)
		texts[text] = true
		s := stores[0]
		if i%25 == 0 { // few, because a process waits a second for the lock of another
			s = stores[1]
		}
		wg.Go(func() {
			if err := s.Save(context.Background(), "ops", FormatText, text, 1); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if c, err := stores[0].Load(t.Context(), "ops"); err != nil || !texts[c.Text] {
		t.Errorf("no whole text remains: %v", err)
	}
}

// TestSecret checks that no text is stored unencrypted, and that a text can be
// decrypted only with its own key and secret.
func TestSecret(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, "sixteen characters")
	save(t, s, "ops", "json://host/t0ken")
	content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(s.folder.objectName("ops"))))
	if err != nil || strings.Contains(string(content), "t0ken") {
		t.Errorf("the file is %q, %v", content, err)
	}
	if c, err := s.Load(t.Context(), "ops"); err != nil || c.Text != "json://host/t0ken" {
		t.Errorf("Load returns %+v, %v", c, err)
	}
	for name, secret := range map[string]string{"another secret": "sixteen other characters", "none": ""} {
		if _, err := newStore(t, dir, secret).Load(t.Context(), "ops"); !errors.Is(err, ErrSealed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Options{Secret: "short"}); err == nil {
		t.Error("a short secret is accepted")
	}
	// A configuration that was saved before there was a secret can be read.
	save(t, newStore(t, dir, ""), "old", "json://old")
	if c, err := s.Load(t.Context(), "old"); err != nil || c.Text != "json://old" {
		t.Errorf("Load returns %+v, %v", c, err)
	}
}

func TestDamagedObject(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, "")
	save(t, s, "ops", "x")
	file := filepath.Join(dir, filepath.FromSlash(s.folder.objectName("ops")))
	for _, content := range []string{"", "{", `{"version":1,"key":"other"}`, `{"version":2,"key":"ops"}`} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(t.Context(), "ops"); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// TestHas checks that requests for unknown keys cost one list within the
// refresh time, and that changes of another process are seen after it.
func TestHas(t *testing.T) {
	dir := t.TempDir()
	storage := storagetest.New(dir)
	s, err := New(Options{Storage: storage, Index: new(Index)})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if s.Has(t.Context(), "unknown", time.Hour) {
			t.Fatal("an unknown key exists")
		}
	}
	if n := storage.Lists.Load(); n != 1 {
		t.Errorf("1000 requests made %d lists", n)
	}
	save(t, newStore(t, dir, ""), "ops", "x")
	if s.Has(t.Context(), "ops", time.Hour) || !s.Has(t.Context(), "ops", 0) {
		t.Error("a key of another process is seen before its time, or not afterwards")
	}
	save(t, s, "mine", "x")
	if !s.Has(t.Context(), "mine", time.Hour) {
		t.Error("a key of this process is not seen at once")
	}
	storage.Down.Store(true)
	if !s.Has(t.Context(), "mine", 0) || s.Has(t.Context(), "unknown", 0) {
		t.Error("while the storage is down, the keys are not those of the last list")
	}
	fresh, err := New(Options{Storage: storage, Index: new(Index)})
	if err != nil {
		t.Fatal(err)
	}
	if !fresh.Has(t.Context(), "ops", 0) {
		t.Error("a key counts as unknown although nothing could be listed")
	}
}
