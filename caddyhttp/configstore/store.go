// Package configstore stores the configurations that clients save, one for each
// key, in a certmagic.Storage: in files, or in the shared storage of a cluster.
package configstore

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-notify/caddy-notify/internal/seal"
)

// Formats of a configuration.
const (
	FormatText = "text"
	FormatYAML = "yaml"
)

// Config is the saved configuration of a key.
type Config struct {
	Format  string // FormatText or FormatYAML
	Text    string // as it was saved, byte for byte
	Changed time.Time

	// Revision changes with each change of the stored object.
	Revision Revision
}

// Revision identifies a state of a stored object.
type Revision [sha256.Size]byte

// Errors of a Store. Any other error comes from the storage.
var (
	// ErrNotFound is returned for a key without a configuration.
	ErrNotFound = errors.New("nothing is saved under this key")

	// ErrTooMany is returned when a new key would exceed the maximum.
	ErrTooMany = errors.New("as many keys are saved as are allowed")

	// ErrSealed is returned for a configuration that is encrypted with another
	// secret or damaged.
	ErrSealed = errors.New("the saved configuration cannot be decrypted; it was saved with another secret, or it is damaged")
)

// The names of the objects.
const (
	folder   = "notify/configs"
	lockName = "notify_configs"
)

// storageTimeout bounds each access to the storage, so that a request does not
// wait for a storage that hangs.
const storageTimeout = 5 * time.Second

// Store reads and writes saved configurations. It is safe for concurrent use,
// also by several processes.
type Store struct {
	storage certmagic.Storage
	index   *Index
	sealer  *seal.Sealer // nil for no encryption
	idKey   []byte       // nil until it is read
}

// New returns a Store. With a secret, it encrypts what it stores. A secret has
// at least 16 characters.
func New(storage certmagic.Storage, index *Index, secret string) (*Store, error) {
	s := &Store{storage: storage, index: index}
	if secret == "" {
		return s, nil
	}
	var err error
	if s.sealer, err = seal.New(secret); err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("IDs of URLs"))
	s.idKey = mac.Sum(nil)
	return s, nil
}

// object is the stored form of a Config.
type object struct {
	Version int       `json:"version"` // of this form
	Key     string    `json:"key"`
	Format  string    `json:"format"`
	Changed time.Time `json:"changed"`
	Text    string    `json:"text,omitempty"`
	Sealed  []byte    `json:"sealed,omitempty"` // the text, encrypted
}

const objectVersion = 1

// sealTable is the table name that encrypted texts are bound to.
const sealTable = "configs"

// encoding makes names of lower-case letters and digits. They stay unique in
// storages that ignore case, and have no character that a storage replaces.
var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// objectName returns the name of the object of a key. A key of 128 characters
// makes a file name of 210.
func objectName(key string) string {
	return path.Join(folder, encoding.EncodeToString([]byte(key))+".json")
}

// keyOf is the inverse of objectName. It reports whether the object is a
// configuration.
func keyOf(name string) (string, bool) {
	text, ok := strings.CutSuffix(path.Base(name), ".json")
	if !ok {
		return "", false
	}
	key, err := encoding.DecodeString(text)
	return string(key), err == nil
}

// Load returns the configuration of a key.
func (s *Store) Load(ctx context.Context, key string) (*Config, error) {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	content, err := s.storage.Load(ctx, objectName(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("reading the saved configuration: %w", err)
	}
	var o object
	if err := json.Unmarshal(content, &o); err != nil || o.Key != key {
		return nil, errors.New("reading the saved configuration: the stored object is damaged")
	}
	if o.Version != objectVersion {
		return nil, fmt.Errorf("reading the saved configuration: it has the version %d, and this program knows only %d", o.Version, objectVersion)
	}
	c := &Config{Format: o.Format, Text: o.Text, Changed: o.Changed, Revision: sha256.Sum256(content)}
	switch {
	case len(o.Sealed) > 0 && s.sealer == nil:
		return nil, ErrSealed
	case len(o.Sealed) > 0:
		text, err := s.sealer.Open(o.Sealed, sealTable, []byte(key))
		if err != nil {
			return nil, ErrSealed
		}
		c.Text = string(text)
	}
	return c, nil
}

// Save stores the configuration of a key. If the key is new and maxKeys others
// exist, it returns ErrTooMany.
func (s *Store) Save(ctx context.Context, key, format, text string, maxKeys int) error {
	content, err := s.content(key, format, text)
	if err != nil {
		return err
	}
	return s.write(ctx, storageTimeout, func(ctx context.Context) error {
		if !s.storage.Exists(ctx, objectName(key)) {
			full, err := s.isFull(ctx, maxKeys)
			if err != nil {
				return fmt.Errorf("counting the saved keys: %w", err)
			}
			if full {
				return ErrTooMany
			}
		}
		return s.store(ctx, key, content)
	})
}

// importTimeout bounds how long Import takes.
const importTimeout = 10 * time.Minute

// Import stores the configurations of many keys. Of each it uses only Format
// and Text. Unless replace is true, it skips keys that exist and returns their
// names. If there would be more than maxKeys keys, it stores nothing and
// returns ErrTooMany.
func (s *Store) Import(ctx context.Context, configs map[string]Config, maxKeys int, replace bool) (existing []string, err error) {
	err = s.write(ctx, importTimeout, func(ctx context.Context) error {
		keys, err := s.list(ctx)
		if err != nil {
			return fmt.Errorf("listing the saved keys: %w", err)
		}
		exists := map[string]bool{}
		for _, key := range keys {
			exists[key] = true
		}
		var names []string
		added := 0
		for _, name := range slices.Sorted(maps.Keys(configs)) {
			switch {
			case !exists[name]:
				added++
			case !replace:
				existing = append(existing, name)
				continue
			}
			names = append(names, name)
		}
		if len(keys)+added > maxKeys {
			return ErrTooMany
		}
		for _, name := range names {
			content, err := s.content(name, configs[name].Format, configs[name].Text)
			if err != nil {
				return err
			}
			if err := s.store(ctx, name, content); err != nil {
				return err
			}
		}
		return nil
	})
	return existing, err
}

// content returns the stored form of a configuration.
func (s *Store) content(key, format, text string) ([]byte, error) {
	o := object{Version: objectVersion, Key: key, Format: format, Changed: time.Now().UTC(), Text: text}
	if s.sealer != nil {
		o.Text, o.Sealed = "", s.sealer.Seal([]byte(text), sealTable, []byte(key))
	}
	return json.Marshal(o)
}

func (s *Store) store(ctx context.Context, key string, content []byte) error {
	if err := s.storage.Store(ctx, objectName(key), content); err != nil {
		return fmt.Errorf("saving the configuration: %w", err)
	}
	s.index.set(key, true)
	return nil
}

// isFull reports whether there are at least maxKeys keys. It does not list them
// each time, because that takes longer the more keys there are.
func (s *Store) isFull(ctx context.Context, maxKeys int) (bool, error) {
	if s.index.hasRoom(maxKeys) {
		return false, nil
	}
	before := s.index.Changes()
	keys, err := s.list(ctx)
	s.index.endList(keys, err, before)
	return len(keys) >= maxKeys, err
}

// Delete removes the configuration of a key.
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.write(ctx, storageTimeout, func(ctx context.Context) error {
		if !s.storage.Exists(ctx, objectName(key)) {
			return ErrNotFound
		}
		if err := s.storage.Delete(ctx, objectName(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the configuration: %w", err)
		}
		s.index.set(key, false)
		return nil
	})
}

// write runs a change. One change runs at a time over all processes. A change
// that has begun is finished even if the client disconnects.
func (s *Store) write(ctx context.Context, timeout time.Duration, change func(context.Context) error) error {
	s.index.writing.Lock()
	defer s.index.writing.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if err := s.storage.Lock(ctx, lockName); err != nil {
		return fmt.Errorf("locking the saved configurations: %w", err)
	}
	err := change(ctx)
	if unlockErr := s.storage.Unlock(context.WithoutCancel(ctx), lockName); err == nil && unlockErr != nil {
		err = fmt.Errorf("unlocking the saved configurations: %w", unlockErr)
	}
	return err
}

// Keys returns the saved keys in no particular order.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	keys, err := s.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the saved keys: %w", err)
	}
	return keys, nil
}

func (s *Store) list(ctx context.Context) (keys []string, err error) {
	names, err := s.storage.List(ctx, folder, false)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range names {
		if key, ok := keyOf(name); ok {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Has reports whether a key exists, from a list of the keys that is at most
// refresh old. So requests for unknown keys cost at most one list in that time.
// If the storage cannot be listed, Has uses the last list, or returns true if
// there is none.
func (s *Store) Has(ctx context.Context, key string, refresh time.Duration) bool {
	x := s.index
	if x.mayList(refresh) {
		before := x.Changes()
		keys, err := s.Keys(context.WithoutCancel(ctx))
		x.endList(keys, err, before)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.keys == nil || x.keys[key]
}

// Check reads and writes the storage, and returns an error if that does not work.
func (s *Store) Check(ctx context.Context) error {
	return s.write(ctx, storageTimeout, func(ctx context.Context) error {
		name := path.Join(folder, "check.tmp")
		if err := s.storage.Store(ctx, name, []byte("ok")); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		if _, err := s.storage.Load(ctx, name); err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		if err := s.storage.Delete(ctx, name); err != nil {
			return fmt.Errorf("deleting: %w", err)
		}
		return nil
	})
}
