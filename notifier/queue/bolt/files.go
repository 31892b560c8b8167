package bolt

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// LockedError is returned when another process uses the folder of the queue.
type LockedError struct{ Path string }

func (e *LockedError) Error() string {
	return "the queue's folder " + e.Path + " is used by another process; end that one, or set another path"
}

// KeyFile returns the path of the file that has the key, unless the
// configuration has a secret.
func (dir *folder) KeyFile() string { return filepath.Join(dir.path, "key") }

// readKey returns the content of the key file. It creates a missing file if
// create is true.
func readKey(path string, create bool) (string, error) {
	b, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(b)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if !create {
		return "", fmt.Errorf("the key file %s is missing, and queue.db cannot be read without it: restore the file from a backup, or set the "+
			"secret that the queue was created with; to begin with an empty queue, move the folder away", path)
	}
	secret := make([]byte, 32)
	rand.Read(secret) // never returns an error
	text := hex.EncodeToString(secret)
	if err := writeFile(path, []byte(text+"\n")); err != nil {
		return "", err
	}
	return text, nil
}

// writeFile writes a file so that either all of it or nothing survives a power
// cut.
func writeFile(path string, data []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir syncs a folder, so that the names of its files survive a power cut.
func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// writeFiles stores the attachments of messages and returns their paths. If that
// fails, it removes what it has stored.
func (dir *folder) writeFiles(entries ...*queue.Entry) (paths []string, err error) {
	for _, e := range entries {
		m := e.Message
		for i, f := range m.Files {
			path := dir.filePath(m.ID, i)
			w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err == nil {
				paths = append(paths, path)
				err = dir.writeSealed(w, f, record.FileKey(m.ID, i))
			}
			if err != nil {
				dir.removeFiles(paths)
				return nil, &queue.UnavailableError{Err: err}
			}
		}
	}
	if len(paths) > 0 && !dir.noSync {
		if err := syncDir(filepath.Join(dir.path, "files")); err != nil {
			dir.removeFiles(paths)
			return nil, &queue.UnavailableError{Err: err}
		}
	}
	return paths, nil
}

func (dir *folder) writeSealed(w *os.File, file queue.File, key []byte) error {
	err := dir.sealer.SealFile(file, file.Size, key, func(_ int64, sealed []byte) error {
		_, err := w.Write(sealed)
		return err
	})
	if err == nil && !dir.noSync {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}

// openFiles adds its attachments to a message. release closes them.
func (dir *folder) openFiles(m *queue.Message, sizes []int64) (release func(), err error) {
	var open []*os.File
	release = func() {
		for _, f := range open {
			f.Close()
		}
	}
	for i, size := range sizes {
		f, err := os.Open(dir.filePath(m.ID, i))
		if errors.Is(err, fs.ErrNotExist) {
			release()
			return nil, dir.sealer.Damaged(fmt.Sprintf("attachment %d of message %s", i+1, m.ID))
		} else if err != nil {
			release()
			return nil, &queue.UnavailableError{Err: err}
		}
		open = append(open, f)
		read := func(chunk int64) ([]byte, error) {
			b := make([]byte, min(size-chunk*seal.ChunkSize, seal.ChunkSize)+seal.Overhead)
			n, err := f.ReadAt(b, chunk*(seal.ChunkSize+seal.Overhead))
			if errors.Is(err, io.EOF) {
				err = nil // the record does not authenticate if it is too short
			}
			return b[:n], err
		}
		m.Files = append(m.Files, queue.File{Size: size, ReaderAt: dir.sealer.OpenFile(size, record.FileKey(m.ID, i), read)})
	}
	return release, nil
}

// removeFiles removes attachments. removeOrphans removes those that remain when
// the store is next opened.
func (dir *folder) removeFiles(paths []string) {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			dir.log.Warn("removing an attachment of the queue", zap.Error(err))
		}
	}
}

// parseFileName is the inverse of filePath.
func parseFileName(name string) (id uuid.UUID, i int, ok bool) {
	text, number, ok := strings.Cut(name, ".")
	id, err1 := uuid.Parse(text)
	i, err2 := strconv.Atoi(number)
	return id, i, ok && err1 == nil && err2 == nil
}

// storedFiles counts the attachments of each message.
func (dir *folder) storedFiles() (map[uuid.UUID]int, error) {
	entries, err := os.ReadDir(filepath.Join(dir.path, "files"))
	if err != nil {
		return nil, err
	}
	counts := map[uuid.UUID]int{}
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), ".")
		if id, err := uuid.Parse(name); err == nil {
			counts[id]++
		}
	}
	return counts, nil
}

// removeOrphans removes attachments of messages that have ended or were not
// accepted, and unfinished files.
func (s *Store) removeOrphans() {
	entries, err := os.ReadDir(filepath.Join(s.path, "files"))
	if err != nil {
		return
	}
	var orphans []string
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), ".")
		if id, err := uuid.Parse(name); err != nil || !s.index.jobs.has(id) {
			orphans = append(orphans, filepath.Join(s.path, "files", e.Name()))
		}
	}
	for _, name := range []string{"queue.db.new", "key.new", "ring.new"} {
		orphans = append(orphans, filepath.Join(s.path, name))
	}
	s.removeFiles(orphans)
}
