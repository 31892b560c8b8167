package bolt

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// ringPath is the path of the copy of the ring, which there is after the first change of the secret.
// Without a ring, the records of a salvaged database would have names that nobody knows.
func (dir *folder) ringPath() string { return filepath.Join(dir.path, "ring") }

// readRing makes the sealer use the copy of the ring, if there is one. The one in the database decides.
func (dir *folder) readRing() {
	if ring, err := os.ReadFile(dir.ringPath()); err == nil {
		_ = dir.joinCopy(ring)
	}
}

func (dir *folder) joinCopy(ring []byte) error {
	_, err := dir.sealer.Join(ring, bucketMeta, keyCheck, time.Now())
	return err
}

// joinRing makes the sealer use the ring. It returns the ring to store if the secret has changed. The
// error is a [*damage] if none of the secrets opens the ring: then its copy tells whether
// the ring or the secret is wrong or, if the secret has never changed, the records do.
func (d *database) joinRing(tx *bbolt.Tx) (changed []byte, err error) {
	ring := tx.Bucket([]byte(bucketMeta)).Get(keyCheck)
	changed, err = d.sealer.Join(ring, bucketMeta, keyCheck, time.Now())
	if err == nil && changed == nil && hasContent(ring) {
		if known, e := os.ReadFile(d.ringPath()); e != nil || !bytes.Equal(known, ring) {
			d.copyRing(ring) // the folder comes from a back-up without a copy, or a crash kept it from being written
		}
	}
	if err != nil && !errors.Is(err, seal.ErrOldSecret) {
		if ring, e := os.ReadFile(d.ringPath()); e == nil && errors.Is(d.joinCopy(ring), seal.ErrSecret) {
			return nil, errSecret
		}
		return nil, &damage{what: "the record that the secret is checked with"}
	}
	return changed, err
}

// hasContent reports whether a ring says more than its own secret does: the secret has changed.
func hasContent(ring []byte) bool { return len(ring) > seal.Overhead }

// putRing stores the ring and its copy.
func (d *database) putRing(db *bbolt.DB, ring []byte) error {
	if err := db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucketMeta)).Put(keyCheck, ring) }); err != nil {
		return err
	}
	d.copyRing(ring)
	return nil
}

func (dir *folder) copyRing(ring []byte) {
	if err := writeFile(dir.ringPath(), ring); err != nil {
		dir.log.Warn("writing a copy of the ring of secrets of the queue", zap.Error(err))
	}
}

// changeRing changes the ring in a transaction of its own. f returns the new one, or nil.
func (s *Store) changeRing(ctx context.Context, f func(ring []byte) ([]byte, error)) error {
	var changed []byte
	err := s.do(ctx, &change{
		size: 1 << 10, pages: pagesPerResult,
		check: func(b *batch) (err error) {
			changed, err = f(b.get(bucketMeta, keyCheck))
			return err
		},
		write: func(b *batch) error {
			if changed == nil {
				return nil
			}
			return b.bucket(bucketMeta).Put(keyCheck, changed)
		},
	})
	if err == nil && changed != nil {
		s.copyRing(changed)
	}
	return err
}

// SetSecrets implements [queue.Resealer].
func (s *Store) SetSecrets(ctx context.Context, secret string, older ...string) (err error) {
	if secret == "" {
		if secret, err = readKey(s.KeyFile(), false); err != nil {
			return err
		}
	}
	sealer, err := seal.New(secret, older...)
	if err != nil {
		return err
	}
	err = s.changeRing(ctx, func(ring []byte) ([]byte, error) { return sealer.Join(ring, bucketMeta, keyCheck, time.Now()) })
	if err != nil {
		return err
	}
	s.sealer.Use(sealer)
	now := time.Now()
	s.secretSince.Store(&now)
	return nil
}

// secretSettles is how long after a change of the secret something may still be stored that was sealed
// before the change: a message whose attachments were being written.
const secretSettles = time.Minute

// resealAtOnce is how many bytes are sealed again in one transaction, about.
const resealAtOnce = 256 << 10

// Reseal implements [queue.Resealer].
func (s *Store) Reseal(ctx context.Context) (old queue.OldSecrets, err error) {
	if old.Set = s.sealer.HasOld(); !old.Set {
		return old, nil
	}
	var ring []byte
	if err := s.view(func(tx *bbolt.Tx) error {
		ring = bytes.Clone(tx.Bucket([]byte(bucketMeta)).Get(keyCheck))
		return nil
	}); err != nil {
		return old, err
	}
	if shares, _ := s.sealer.Shares(ring, bucketMeta, keyCheck); !shares {
		return old, nil
	}
	since := s.secretSince.Load()
	old.Used = time.Since(*since) < secretSettles
	if s.resealed.Load() != since {
		for _, bucket := range buckets {
			if err := s.resealBucket(ctx, bucket); err != nil {
				return old, err
			}
		}
		if !old.Used {
			s.resealed.Store(since) // no other process writes
		}
	}
	if old.Records, err = s.resealFiles(ctx); err != nil {
		return old, err
	}
	return old, s.changeRing(ctx, func(ring []byte) ([]byte, error) {
		// No other process uses the folder, so that nobody seals under an old secret.
		changed, _ := s.sealer.Tend(ring, bucketMeta, keyCheck, time.Now().Add(time.Hour), !old.Needed() && s.secretSince.Load() == since)
		return changed, nil
	})
}

// resealBucket seals the records of a bucket again.
func (s *Store) resealBucket(ctx context.Context, bucket string) error {
	for after := []byte(nil); ; {
		var keys [][]byte
		size := 0
		if err := s.view(func(tx *bbolt.Tx) error {
			keys, size = nil, 0
			c := tx.Bucket([]byte(bucket)).Cursor()
			for k, v := c.Seek(after); k != nil && size < resealAtOnce; k, v = c.Next() {
				if !bytes.Equal(k, after) && !bytes.Equal(k, keyCheck) && s.sealer.IsOld(v, bucket, k) {
					keys = append(keys, bytes.Clone(k))
					size += len(v)
				}
			}
			return nil
		}); err != nil || len(keys) == 0 {
			return err
		}
		if err := s.do(ctx, &change{
			size: size, pages: pagesOf(size) + pagesPerResult*len(keys), adds: true,
			check: func(*batch) error { return nil },
			write: func(b *batch) error {
				for _, k := range keys {
					if renewed := s.sealer.Renew(b.get(bucket, k), bucket, k); renewed != nil {
						if err := b.bucket(bucket).Put(k, renewed); err != nil {
							return err
						}
					}
				}
				return nil
			},
		}); err != nil {
			return err
		}
		after = keys[len(keys)-1]
	}
}

// maxResealed is how many bytes of attachments are sealed again by one call of Reseal, about.
const maxResealed = 1 << 30

// resealFiles seals attachments again that were sealed under an older secret. It returns how many are
// left. While a back-up is made it changes none: the back-up may have begun before the secret
// changed, and then it says that it can be read with the old one.
func (s *Store) resealFiles(ctx context.Context) (left int, err error) {
	entries, err := os.ReadDir(filepath.Join(s.path, "files"))
	if err != nil {
		return 0, err
	}
	room, renamed := int64(maxResealed), false
	if s.backups.inProgress() {
		room = 0
	}
	for _, e := range entries {
		size, isOld := s.isOldFile(e.Name())
		if !isOld {
			continue
		}
		if room <= 0 || ctx.Err() != nil {
			left++
			continue
		}
		switch err := s.resealFile(e.Name()); {
		case err == nil:
			room, renamed = room-size, true
		case errors.Is(err, fs.ErrNotExist): // its message has ended
		default:
			left++
			if !errors.Is(err, seal.ErrOpen) { // it is not the file that is damaged
				room = 0
				s.log.Warn("sealing an attachment of the queue under the new secret; it is tried again", zap.Error(err))
			}
		}
	}
	if renamed && !s.noSync {
		err = syncDir(filepath.Join(s.path, "files"))
	}
	return left, err
}

// isOldFile reports whether a file is an attachment of a message that waits or was given up, and was
// sealed under an older secret.
func (s *Store) isOldFile(name string) (size int64, isOld bool) {
	id, i, ok := parseFileName(name)
	if !ok || !s.hasJobs(id) {
		return 0, false
	}
	f, err := os.Open(s.filePath(id, i))
	if err != nil {
		return 0, false // its message has ended
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, false
	}
	return info.Size(), s.sealer.IsOldFile(f, info.Size(), record.FileKey(id, i))
}

func (s *Store) hasJobs(id uuid.UUID) bool {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	return s.index.jobs.has(id)
}

// resealFile replaces an attachment by one that is sealed under the present secret. A crash leaves one
// of the two. Who reads the old one meanwhile keeps reading it.
func (s *Store) resealFile(name string) error {
	id, i, _ := parseFileName(name)
	path, renewed := s.filePath(id, i), filepath.Join(s.path, "files", "reseal.new")
	r, err := os.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return err
	}
	w, err := os.OpenFile(renewed, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	size, key := seal.PlainSize(info.Size()), record.FileKey(id, i)
	err = s.writeSealed(w, queue.File{Size: size, ReaderAt: s.sealer.OpenReader(r, size, key)}, key)
	if err == nil {
		r.Close() // Windows does not replace an open file
		err = s.replaceFile(renewed, path, id)
	}
	if err != nil {
		_ = os.Remove(renewed)
	}
	return err
}

// replaceFile renames the attachment of a message that has jobs. The lock keeps the message in the
// index, so that the file is removed after it was renamed if the message ends.
func (s *Store) replaceFile(from, to string, id uuid.UUID) error {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	if !s.index.jobs.has(id) {
		return fs.ErrNotExist
	}
	return os.Rename(from, to)
}
