package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/queuetest"
)

// TestStore runs the tests that every store passes.
func TestStore(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, queuetest.Engine{New: func(t *testing.T) func(*zap.Logger) (queue.Store, error) {
		path := filepath.Join(t.TempDir(), "queue.journal")
		return func(log *zap.Logger) (queue.Store, error) { return Open(path, log) }
	}})
}

func entry() *queue.Entry {
	id, now := queue.NewID(), time.Now()
	return &queue.Entry{
		Message: &queue.Message{ID: id, Created: now, Body: []byte("text")},
		Jobs: []queue.Job{{
			JobID: queue.JobID{Message: id}, Status: queue.Queued, Destination: "a", Host: "a", Due: now, Updated: now, Expires: now.Add(time.Hour),
		}},
	}
}

// TestCrash checks that a change which a crash has cut off is not there, that those before it are, and that
// the file can be used further. Damage within the file is an error.
func TestCrash(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "queue.journal")
	var entries []*queue.Entry
	var sizes []int
	with := func(f func(s *Store)) {
		t.Helper()
		s, err := Open(path, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		f(s)
	}
	accept := func(s *Store) {
		t.Helper()
		e := entry()
		if err := s.Accept(t.Context(), noLimit, e); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		entries, sizes = append(entries, e), append(sizes, int(info.Size()))
	}
	with(func(s *Store) {
		for range 3 {
			accept(s)
		}
	})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int{sizes[1] + 1, sizes[1] + headSize, sizes[1] + headSize + 1, sizes[2] - 40} {
		zeros := append(bytes.Clone(whole[:size]), make([]byte, sizes[2]-size)...) // room that was not written
		for _, b := range [][]byte{whole[:size], zeros} {
			write(b)
			with(func(s *Store) {
				for i, e := range entries[:3] {
					if _, err := s.Get(t.Context(), e.Message.ID); (err == nil) != (i < 2) {
						t.Errorf("after a crash at byte %d of %d, message %d: %v", size, sizes[2], i, err)
					}
				}
				accept(s)
			})
			with(func(s *Store) {
				if _, err := s.Get(t.Context(), entries[len(entries)-1].Message.ID); err != nil {
					t.Error(err)
				}
			})
		}
	}
	damaged := bytes.Clone(whole)
	damaged[sizes[0]+headSize+3]++
	write(damaged)
	if s, err := Open(path, zap.NewNop()); err == nil || !strings.Contains(err.Error(), fmt.Sprint("damaged at byte ", sizes[0])) {
		t.Errorf("a damaged file: %v, %v", s, err)
	}
}

// TestOneProcess checks that no other process can use the file meanwhile.
func TestOneProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "queue.journal")
	s, err := Open(path, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Open(path, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "another process uses") {
		t.Errorf("it is opened twice: %v", err)
	}
}
