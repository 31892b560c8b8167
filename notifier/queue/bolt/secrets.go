package bolt

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// ringPath is the path of the copy of the ring. Without a ring, the records of a salvaged database
// would have names that nobody knows.
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
	changed, err = d.sealer.Join(tx.Bucket([]byte(bucketMeta)).Get(keyCheck), bucketMeta, keyCheck, time.Now())
	if err != nil && !errors.Is(err, seal.ErrOldSecret) {
		if ring, e := os.ReadFile(d.ringPath()); e == nil && errors.Is(d.joinCopy(ring), seal.ErrSecret) {
			return nil, errSecret
		}
		return nil, &damage{what: "the record that the secret is checked with"}
	}
	return changed, err
}

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
	s.resealed.Store(false)
	return nil
}

// resealAtOnce is how many bytes are sealed again in one transaction, about.
const resealAtOnce = 256 << 10

// Reseal implements [queue.Resealer]. Attachments stay as they are until their messages have ended.
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
	if !s.resealed.Load() {
		for _, bucket := range buckets {
			if err := s.resealBucket(ctx, bucket); err != nil {
				return old, err
			}
		}
		s.resealed.Store(true) // nobody else writes
	}
	if old.Records, err = s.oldFiles(); err != nil {
		return old, err
	}
	return old, s.changeRing(ctx, func(ring []byte) ([]byte, error) {
		// No other process uses the folder, so that nobody seals under an old secret.
		changed, _ := s.sealer.Tend(ring, bucketMeta, keyCheck, time.Now().Add(time.Hour), old.Records == 0)
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

// oldFiles returns how many attachments were sealed under an older secret.
func (s *Store) oldFiles() (n int, err error) {
	entries, err := os.ReadDir(filepath.Join(s.path, "files"))
	for _, e := range entries {
		id, i, ok := parseFileName(e.Name())
		if !ok {
			continue
		}
		f, err := os.Open(filepath.Join(s.path, "files", e.Name()))
		if err != nil {
			continue // its message has ended
		}
		if info, err := f.Stat(); err == nil && s.sealer.IsOldFile(f, info.Size(), record.FileKey(id, i)) {
			n++
		}
		f.Close()
	}
	return n, err
}
