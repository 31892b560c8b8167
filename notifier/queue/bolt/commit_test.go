package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// failing is a disk whose commits can fail.
type failing struct {
	before atomic.Int32 // so many commits fail before anything is written
	sync   atomic.Int32 // so many commits fail in the last sync: they have taken effect
}

func (f *failing) commit(tx *bbolt.Tx) error {
	if f.before.Add(-1) >= 0 {
		_ = tx.Rollback()
		return syscall.EIO
	}
	err := tx.Commit()
	if f.sync.Add(-1) >= 0 {
		return errors.Join(err, syscall.EIO)
	}
	return err
}

func openFailing(t *testing.T) (*Store, *failing) {
	t.Helper()
	f := new(failing)
	s, err := Open(Options{Path: t.TempDir(), commit: f.commit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, f
}

func withFile(e *queue.Entry) *queue.Entry {
	e.Message.Files = []queue.File{{Size: 4, ReaderAt: bytes.NewReader([]byte("file"))}}
	return e
}

// TestUnclearCommit checks that a message is accepted, with its file, if its
// commit has taken effect although the disk reported an error. Once the
// sender got the error, the file was removed, and the message was there: it
// became a dead delivery.
func TestUnclearCommit(t *testing.T) {
	t.Parallel()
	for failures := range int32(3) {
		s, disk := openFailing(t)
		disk.sync.Store(failures)
		e := withFile(newEntry([]byte("text"), "a", "b"))
		e.Jobs[1].Status = queue.Sending
		if err := s.Accept(t.Context(), 1<<40, e); err != nil {
			t.Fatalf("%d failures: %v", failures, err)
		}
		m, release, err := s.Load(t.Context(), e.Message.ID)
		if err != nil {
			t.Fatalf("%d failures: %v", failures, err)
		}
		if b := make([]byte, 4); len(m.Files) != 1 {
			t.Errorf("%d failures: %d files", failures, len(m.Files))
		} else if _, err := m.Files[0].ReadAt(b, 0); err != nil || string(b) != "file" {
			t.Errorf("%d failures: the file has %q, %v", failures, b, err)
		}
		release()
		// The delivery that the caller makes is not given to others.
		jobs, _, err := s.Claim(t.Context(), queue.Claim{Now: time.Now(), Max: 10})
		if err != nil || len(jobs) != 1 || jobs[0].Index != 0 {
			t.Errorf("%d failures: claimed %v, %v", failures, jobs, err)
		}
		// A settlement is known to be stored, too, so that a dead delivery is reported.
		disk.sync.Store(failures)
		j := e.Jobs[1]
		j.JobID, j.Status, j.Updated = queue.JobID{Message: e.Message.ID, Index: 1}, queue.Dead, time.Now()
		if err := s.Settle(t.Context(), &queue.Settlement{Job: &j}); err != nil {
			t.Errorf("%d failures: %v", failures, err)
		}
		if st, err := s.Stats(t.Context()); err != nil || st.Dead != 1 || st.Sending != 1 || st.Queued != 0 {
			t.Errorf("%d failures: %+v, %v", failures, st, err)
		}
	}
}

// TestFailedCommit checks that a failed commit leaves neither its message nor the file.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	s, disk := openFailing(t)
	disk.before.Store(1)
	e := withFile(newEntry([]byte("text"), "a"))
	err := s.Accept(t.Context(), 1<<40, e)
	if _, ok := errors.AsType[*queue.UnavailableError](err); !ok {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(filepath.Join(s.path, "files")); err != nil || len(files) > 0 {
		t.Errorf("%d files, %v", len(files), err)
	}
	if _, err := s.Get(t.Context(), e.Message.ID); !errors.Is(err, queue.ErrNotFound) {
		t.Error(err)
	}
	if st, err := s.Stats(t.Context()); err != nil || st.Queued != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestCloseWhileUnclear checks that a store whose disk fails for good can be
// closed, and that the files of a message that may be stored remain.
func TestCloseWhileUnclear(t *testing.T) {
	t.Parallel()
	s, disk := openFailing(t)
	disk.sync.Store(1 << 30)
	e := withFile(newEntry([]byte("text"), "a"))
	accepted := make(chan error)
	go func() { accepted <- s.Accept(context.Background(), 1<<40, e) }()
	for s.current() != nil {
		time.Sleep(time.Millisecond)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-accepted; !errors.Is(err, errUnclear) {
		t.Error(err)
	}
	again, err := Open(Options{Path: s.path})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	_, release, err := again.Load(t.Context(), e.Message.ID)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

// TestEqualRequests checks that the refusal of an equal message comes when the
// first one can be read. It once came before the commit, so that 102 of 640
// requests could not be told what became of the first. If the first one's
// commit fails, one of the others is accepted.
func TestEqualRequests(t *testing.T) {
	t.Parallel()
	s, disk := openFailing(t)
	for round := range racetest.Amount(20, 6) {
		if round%2 == 1 {
			disk.before.Store(2) // the common commit, and the commit of the first alone
		}
		var accepted, refused, failed atomic.Int32
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for range 16 {
			e := newEntry([]byte("text"), "a")
			e.Message.Key = fmt.Sprint("key ", round)
			wg.Go(func() {
				<-begin
				err := s.Accept(t.Context(), 1<<40, e)
				if d, ok := errors.AsType[*queue.DuplicateError](err); ok {
					refused.Add(1)
					if _, err := s.Get(t.Context(), d.ID); err != nil {
						t.Error("the first message:", err)
					}
				} else if err == nil {
					accepted.Add(1)
				} else {
					failed.Add(1)
				}
			})
		}
		close(begin)
		wg.Wait()
		disk.before.Store(0)
		if round%2 == 0 && (accepted.Load() != 1 || refused.Load() != 15) {
			t.Errorf("%d accepted, %d refused, %d failed", accepted.Load(), refused.Load(), failed.Load())
		}
		if accepted.Load() > 1 {
			t.Errorf("%d accepted", accepted.Load())
		}
		for s.Accept(t.Context(), 1<<40, newEntry([]byte("text"), "a")) != nil {
			time.Sleep(coolDown / 10)
		}
	}
}

// TestSeveralInOneCommit checks that equal messages in one transaction are
// answered by its outcome.
func TestSeveralInOneCommit(t *testing.T) {
	t.Parallel()
	s, disk := openFailing(t)
	batch := func() (all []*change, errs func() []error) {
		var entries []*queue.Entry
		for range 3 {
			e := newEntry([]byte("text"), "a")
			e.Message.Key = "key"
			entries = append(entries, e)
		}
		for _, e := range entries {
			all = append(all, &change{
				adds: true, done: make(chan error, 1),
				check: func(b *batch) error { return b.checkEntry(e, 1<<40) },
				write: func(b *batch) error { return b.accept(e) },
			})
		}
		waiting := append([]*change(nil), all...)
		return all, func() (errs []error) {
			for _, c := range waiting {
				errs = append(errs, <-c.done)
			}
			return errs
		}
	}
	// End the writer, whose part the test plays.
	close(s.stop)
	<-s.stopped
	s.stop = make(chan struct{})
	s.once.Do(func() {})
	defer func() { s.closeDatabase(); _ = s.unlock() }()

	disk.before.Store(2)
	all, errs := batch()
	if err := s.commitAll(all); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	got := errs()
	_, failed := errors.AsType[*queue.UnavailableError](got[0])
	_, refused := errors.AsType[*queue.DuplicateError](got[2])
	if !failed || got[1] != nil || !refused {
		t.Errorf("%v", got)
	}
	all, errs = batch()
	if err := s.commitAll(all); err != nil {
		t.Error(err)
	}
	for _, err := range errs() {
		if _, refused := errors.AsType[*queue.DuplicateError](err); !refused {
			t.Error(err)
		}
	}
}
