package bolt

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// unpack unpacks a back-up into a new folder and, unless from is "", adds the key of that folder.
func unpack(t *testing.T, archive []byte, from string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "files"), 0o700); err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode != 0o600 {
			t.Errorf("%s has mode %o", h.Name, h.Mode)
		}
		if h.Name == "key" || bytes.Contains(data, []byte("text of the message")) {
			t.Errorf("%s is in the back-up", h.Name)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(h.Name)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if from == "" {
		return dir
	}
	key, err := os.ReadFile(filepath.Join(from, "key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// hooked is a writer that calls a function before its first write.
type hooked struct {
	bytes.Buffer
	first func()
}

func (h *hooked) Write(b []byte) (int, error) {
	if h.first != nil {
		h.first()
		h.first = nil
	}
	return h.Buffer.Write(b)
}

// TestBackup checks that a back-up has what the store had when it began, though
// everything is delivered meanwhile and the attachments are removed.
func TestBackup(t *testing.T) {
	t.Parallel()
	s, err := Open(Options{Path: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ids []uuid.UUID
	for range 50 {
		e := withFile(newEntry(append([]byte("text of the message "), randomText(3000)...), "a"))
		if err := s.Accept(t.Context(), 1<<40, e); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.Message.ID)
	}
	var archive hooked
	archive.first = func() {
		for range 2 { // the second time, pages would be used again
			jobs, _, err := s.Claim(t.Context(), queue.Claim{Now: time.Now(), Max: 100})
			if err != nil {
				t.Error(err)
			}
			for _, j := range jobs {
				j.Status, j.Updated = queue.Delivered, time.Now()
				if err := s.Settle(t.Context(), &queue.Settlement{Job: &j}); err != nil {
					t.Error(err)
				}
			}
			for range 100 {
				if err := s.Accept(t.Context(), 1<<40, withFile(newEntry(randomText(3000), "a"))); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if err := s.Backup(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	log, text := logged()
	restored, err := Open(Options{Path: unpack(t, archive.Bytes(), s.path), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	defer restored.Close()
	if text() != "" {
		t.Error(text())
	}
	if st, err := restored.Stats(t.Context()); err != nil || st.Queued != len(ids) {
		t.Errorf("%+v, %v", st, err)
	}
	for _, id := range ids {
		m, release, err := restored.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if b := make([]byte, 4); len(m.Files) != 1 {
			t.Errorf("%d files", len(m.Files))
		} else if _, err := m.Files[0].ReadAt(b, 0); err != nil || string(b) != "file" {
			t.Errorf("the file has %q, %v", b, err)
		}
		release()
		// In the store itself, the attachments are gone.
		if _, err := os.Stat(s.filePath(id, 0)); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}

// stalled is a client that does not read on after the first bytes.
type stalled struct {
	begun, end chan struct{}
	once       sync.Once
}

func (s *stalled) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.end
	return len(b), nil
}

// TestBackupEnds checks that a back-up to a client that does not read delays
// nothing, and ends when the store needs the space or is closed.
func TestBackupEnds(t *testing.T) {
	d := newFullDisk(t, small)
	for range 1000 {
		if !d.accept(newEntry(randomText(1000), "a")) {
			t.Fatal("the disk is full")
		}
	}
	backup := func() (end func() error) {
		client := &stalled{begun: make(chan struct{}), end: make(chan struct{})}
		result := make(chan error)
		go func() { result <- d.store.Backup(context.Background(), client) }()
		<-client.begun
		return func() error {
			close(client.end)
			return <-result
		}
	}
	end := backup()
	for d.accept(newEntry(randomText(1000), "a")) {
	}
	free := d.fill()
	d.drain()
	if err := end(); !errors.Is(err, errBackupSpace) {
		t.Error(err)
	}
	free()
	end = backup()
	if err := d.store.Close(); err != nil {
		t.Error(err)
	}
	if err := end(); !errors.Is(err, queue.ErrClosed) {
		t.Error(err)
	}
}
