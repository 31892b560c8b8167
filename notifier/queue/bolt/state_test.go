package bolt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMissingDatabase checks that a store tells how many deliveries are lost
// with its database. It once began empty without a line.
func TestMissingDatabase(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, secret string
		lose         func(t *testing.T, dir string)
		want         string // in the log; empty for no line
	}{
		{"removed", "", func(t *testing.T, dir string) { remove(t, dir, "queue.db") }, "waiting:300"},
		{"removed, with a secret", "a secret of the tests", func(t *testing.T, dir string) { remove(t, dir, "queue.db") }, "waiting:300"},
		{"removed with the state", "", func(t *testing.T, dir string) { remove(t, dir, "queue.db"); remove(t, dir, "state") }, "no queue.db"},
		{"the state only", "", func(t *testing.T, dir string) { remove(t, dir, "state") }, ""},
		{"a state that cannot be read", "", func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, "state"), 20) }, ""},
		{"truncated", "", func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, "queue.db"), 5*pageSize) }, "waited:300"},
		{"empty", "", func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, "queue.db"), 0) }, "waited:300"},
		{"nothing", "", func(*testing.T, string) {}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			log, text := logged()
			s, err := Open(Options{Path: dir, Secret: test.secret, Logger: log})
			if err != nil {
				t.Fatal(err)
			}
			var all []*change
			for range 300 {
				e := newEntry([]byte("text"), "a")
				all = append(all, &change{
					done: make(chan error, 1), check: func(*batch) error { return nil }, write: func(b *batch) error { return b.accept(e) },
				})
			}
			for _, c := range all {
				s.changes.add(c)
			}
			for _, c := range all {
				if err := <-c.done; err != nil {
					t.Fatal(err)
				}
			}
			// It is written while the store is open, because a process may be killed.
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
				if st, _ := s.readState(); st.waiting == 300 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the state is not written")
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if text() != "" {
				t.Error(text())
			}
			test.lose(t, dir)
			if s, err = Open(Options{Path: dir, Secret: test.secret, Logger: log}); err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got := text(); !strings.Contains(got, test.want) || test.want == "" && got != "" {
				t.Errorf("the log has %s", got)
			}
			if err := s.Accept(t.Context(), 1<<40, newEntry([]byte("text"), "a")); err != nil {
				t.Error(err)
			}
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}
