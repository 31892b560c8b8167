package bolt

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The reasons for which a back-up ends early.
var (
	errBackupSpace = errors.New("the back-up was ended, because the disk of the queue is full and the back-up keeps space from " +
		"being used again")
	errBackupGrows = errors.New("the back-up was ended, because the queue grew much meanwhile; try again")
	errBackupOpens = errors.New("the back-up was ended, because the queue's store failed and is opened again; try again")
)

// backups are the back-ups in progress. They keep pages of the database and
// attachments that are not needed any more.
type backups struct {
	dir *folder

	mu     sync.Mutex
	cancel map[int]context.CancelCauseFunc
	last   int
	files  []string // to be removed after the last one
}

// Backup writes a copy of the store to w, as a tar archive with the database, the
// attachments and, if the secret has changed, the copy of the ring. Unpacked into an
// empty folder, together with the key, it is the store at the moment when Backup
// began. The store can be used meanwhile.
// Backup ends with an error if the store needs the space that it keeps.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.backups.begin(cancel)()
	pr, pw := io.Pipe()
	defer context.AfterFunc(ctx, func() { pw.CloseWithError(context.Cause(ctx)) })()

	type contents struct {
		size  int64 // of the database
		ring  []byte
		files []os.DirEntry
	}
	begun := make(chan contents, 1)
	var reader sync.WaitGroup
	reader.Go(func() {
		// Only the pipe is written to while the transaction is open: it can be closed
		// at any time, so that a slow client cannot keep the transaction open.
		pw.CloseWithError(s.view(func(tx *bbolt.Tx) error {
			files, err := os.ReadDir(filepath.Join(s.path, "files"))
			if err != nil {
				return &queue.UnavailableError{Err: err}
			}
			begun <- contents{tx.Size(), bytes.Clone(tx.Bucket([]byte(bucketMeta)).Get(keyCheck)), files}
			_, err = tx.WriteTo(pw)
			return err
		}))
	})
	defer reader.Wait()
	defer pr.Close()

	// The first bytes follow what begun has. Without them there is an error.
	first := make([]byte, pageSize)
	if _, err := io.ReadFull(pr, first); err != nil {
		return err
	}
	all := <-begun
	t := tar.NewWriter(w)
	header := func(name string, size int64) error {
		return t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: time.Now()})
	}
	if err := header("queue.db", all.size); err != nil {
		return err
	}
	if _, err := t.Write(first); err != nil {
		return err
	}
	if _, err := io.Copy(t, pr); err != nil {
		return err
	}
	if hasContent(all.ring) {
		if err := header("ring", int64(len(all.ring))); err != nil {
			return err
		}
		if _, err := t.Write(all.ring); err != nil {
			return err
		}
	}
	for _, entry := range all.files {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := s.backupFile(t, entry.Name(), header); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return t.Close()
}

// backupFile adds an attachment to an archive. The file may be one that is still
// being written; then its message is not part of the back-up, and the file is
// removed when the store is opened.
func (s *Store) backupFile(t *tar.Writer, name string, header func(name string, size int64) error) error {
	if _, _, ok := parseFileName(name); !ok {
		return nil // it is sealed again
	}
	f, err := os.Open(filepath.Join(s.path, "files", name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it belonged to a message that was refused
	} else if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := header("files/"+name, info.Size()); err != nil {
		return err
	}
	_, err = io.CopyN(t, f, info.Size())
	return err
}

// begin registers a back-up. end removes it.
func (b *backups) begin(cancel context.CancelCauseFunc) (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancel == nil {
		b.cancel = map[int]context.CancelCauseFunc{}
	}
	b.last++
	id := b.last
	b.cancel[id] = cancel
	return func() {
		b.mu.Lock()
		delete(b.cancel, id)
		b.mu.Unlock()
		b.removeKept()
	}
}

func (b *backups) inProgress() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.cancel) > 0
}

// end ends the back-ups in progress.
func (b *backups) end(cause error) {
	b.mu.Lock()
	for id, cancel := range b.cancel {
		cancel(cause)
		delete(b.cancel, id)
	}
	b.mu.Unlock()
	b.removeKept()
}

// removeKept removes the attachments that were kept for back-ups, if none is in
// progress.
func (b *backups) removeKept() {
	b.mu.Lock()
	files := b.files
	if len(b.cancel) > 0 {
		files = nil
	} else {
		b.files = nil
	}
	b.mu.Unlock()
	b.dir.removeFiles(files)
}

// keep reports whether a back-up needs the attachments, so that they are removed later.
func (b *backups) keep(files []string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.cancel) == 0 {
		return false
	}
	b.files = append(b.files, files...)
	return true
}

// initialMapping returns the number of bytes that bbolt maps at first. To map more, bbolt waits for
// all readers, so that a back-up would delay everything. A mapping takes addresses, but no memory.
// On Windows, it would be the size of the file.
func initialMapping(goos string) int {
	if goos == "windows" || strconv.IntSize < 64 {
		return 0
	}
	size := int64(4 << 30)
	return int(size)
}

// mappingOf returns the number of bytes that bbolt maps for a file of this size.
func mappingOf(size int64) int64 {
	for n := int64(32 << 10); n <= 1<<30; n *= 2 {
		if size <= n {
			return n
		}
	}
	return (size + 1<<30 - 1) >> 30 << 30
}
