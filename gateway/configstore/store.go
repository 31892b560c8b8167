// Package configstore stores the configurations that clients save, one per key, in a
// certmagic.Storage: in files, or in the shared storage of a cluster. Each Store has one space of
// keys, and the spaces are separate.
package configstore

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
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
	// ID is random and changes if the key is deleted and saved again. It is "" for a key saved
	// before keys had IDs.
	ID string

	// First is the first name of the key. It differs from its name if the key was moved.
	First string

	Format  string // FormatText or FormatYAML
	Text    string // as it was saved, byte for byte
	Changed time.Time
	Created time.Time   // when the key was made; zero for a key of an early version
	Tokens  []TokenHash // hashes for clients that may send to the key, the newest last; empty for everyone

	// Revision changes with each change of the stored object.
	Revision Revision
}

// Revision identifies a state of a stored object.
type Revision [sha256.Size]byte

// Errors of a Store. Any other error comes from the storage.
var (
	// ErrNotFound is returned for a key without a configuration.
	ErrNotFound = errors.New("nothing is saved under this key")

	// ErrExists is returned when a key would be moved to the name of another one.
	ErrExists = errors.New("a configuration is saved under this key")

	// ErrTooMany is returned when a new key would exceed the maximum.
	ErrTooMany = errors.New("as many keys are saved as are allowed")

	// ErrSealed is returned for a configuration that is encrypted with another
	// secret or damaged.
	ErrSealed = errors.New("the saved configuration cannot be decrypted; it was saved with another secret, or it is damaged")
)

// DefaultSpace is the name of the default space in texts. No other space can have it.
const DefaultSpace = "default"

// CheckSpace returns an error if name cannot be the name of a space. Names are in
// lower case because some storages ignore case.
func CheckSpace(name string) error {
	outside := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-' }
	switch {
	case name == "" || len(name) > 64 || strings.ContainsFunc(name, outside):
		return errors.New("a space has a name of 1 to 64 lower-case letters, digits, _ and -")
	case name == DefaultSpace:
		return errors.New("no space can have the name default, because that stands for the space without a name; leave the name out, or " +
			"choose another")
	}
	return nil
}

// storageTimeout bounds each access to the storage, so that a request does not
// wait for a storage that hangs.
const storageTimeout = 5 * time.Second

// Store reads and writes the saved configurations of one space. It is safe for concurrent use,
// also by several processes.
type Store struct {
	storage certmagic.Storage
	index   *Index
	folder  folder
	lock    string
	table   string       // table name that encrypted texts are bound to
	sealer  *seal.Sealer // nil for no encryption
	idKey   []byte       // nil until it is read
}

// Options say where a [Store] is.
type Options struct {
	Storage certmagic.Storage
	Space   string // "" for the default one
	Index   *Index // shared by the Stores of the space in this process and by no others
	Secret  string // at least 16 characters; "" to encrypt nothing
}

// New returns a Store.
func New(o Options) (*Store, error) {
	s := &Store{storage: o.Storage, index: o.Index, folder: defaultFolder, lock: lockName, table: sealTable}
	idLabel := "IDs of URLs"
	if o.Space != "" {
		if err := CheckSpace(o.Space); err != nil {
			return nil, err
		}
		s.folder = folder(path.Join(spacesFolder, o.Space))
		s.lock += "_" + o.Space
		s.table += " " + o.Space
		idLabel += " " + o.Space
	}
	if o.Secret == "" {
		return s, nil
	}
	var err error
	if s.sealer, err = seal.New(o.Secret); err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	mac := hmac.New(sha256.New, []byte(o.Secret))
	mac.Write([]byte(idLabel))
	s.idKey = mac.Sum(nil)
	return s, nil
}

// object is the stored form of a Config.
type object struct {
	Version int       `json:"version"` // version of this form
	Key     string    `json:"key"`
	ID      string    `json:"id,omitempty"`
	Names   []string  `json:"names,omitempty"` // former names of a moved key, the first one first
	Moves   int       `json:"moves,omitempty"` // how often the key was moved
	Format  string    `json:"format"`
	Changed time.Time `json:"changed"`
	Created time.Time `json:"created,omitzero"`
	Text    string    `json:"text,omitempty"`
	Sealed  []byte    `json:"sealed,omitempty"` // the text, encrypted
	Tokens  [][]byte  `json:"tokens,omitempty"` // see TokenHash
}

const objectVersion = 1

// sealTable is the table name that encrypted texts of the default space are bound to.
const sealTable = "configs"

// Load returns the configuration of a key.
func (s *Store) Load(ctx context.Context, key string) (*Config, error) {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	o, revision, err := s.read(ctx, key)
	if err != nil {
		return nil, err
	}
	c := &Config{ID: o.ID, First: o.first(), Format: o.Format, Text: o.Text, Changed: o.Changed, Created: o.Created, Revision: revision}
	for _, hash := range o.Tokens {
		c.Tokens = append(c.Tokens, TokenHash(hash))
	}
	c.Text, err = s.textOf(key, o)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// textOf returns the text of the object of a key.
func (s *Store) textOf(key string, o object) (string, error) {
	switch {
	case len(o.Sealed) == 0:
		return o.Text, nil
	case s.sealer == nil:
		return "", ErrSealed
	}
	text, err := s.sealer.Open(o.Sealed, s.table, []byte(key))
	if err != nil {
		return "", ErrSealed
	}
	return string(text), nil
}

// seal sets the text of the object of a key, encrypted if there is a secret.
func (s *Store) seal(key string, o *object, text string) {
	o.Text, o.Sealed = text, nil
	if s.sealer != nil {
		o.Text, o.Sealed = "", s.sealer.Seal([]byte(text), s.table, []byte(key))
	}
}

// read returns the object of a key. An object left over from an interrupted move does not exist for
// it.
func (s *Store) read(ctx context.Context, key string) (o object, revision Revision, err error) {
	o, revision, err = s.readObject(ctx, key)
	if err != nil || !s.index.mayBeMoved(key) {
		return o, revision, err
	}
	left, err := s.isLeft(ctx, key, &o)
	if left {
		err = ErrNotFound
	}
	return o, revision, err
}

// readObject returns the object of a key, even one left over from a move.
func (s *Store) readObject(ctx context.Context, key string) (o object, revision Revision, err error) {
	content, err := s.storage.Load(ctx, s.folder.objectName(key))
	if errors.Is(err, fs.ErrNotExist) {
		return o, revision, ErrNotFound
	}
	if err != nil {
		return o, revision, fmt.Errorf("reading the saved configuration: %w", err)
	}
	if err := json.Unmarshal(content, &o); err != nil || o.Key != key {
		return o, revision, ErrDamaged
	}
	if o.Version != objectVersion {
		return o, revision, fmt.Errorf("reading the saved configuration: it has the version %d, and this program knows only %d", o.Version,
			objectVersion)
	}
	if slices.ContainsFunc(o.Tokens, func(hash []byte) bool { return len(hash) != len(TokenHash{}) }) {
		return o, revision, ErrDamaged
	}
	return o, sha256.Sum256(content), nil
}

// Save stores the configuration of a key, which keeps its ID and its tokens. If the key is new and maxKeys others
// exist, it returns ErrTooMany.
func (s *Store) Save(ctx context.Context, key, format, text string, maxKeys int) error {
	return s.write(ctx, storageTimeout, func(ctx context.Context) error {
		if !s.storage.Exists(ctx, s.folder.objectName(key)) {
			full, err := s.isFull(ctx, maxKeys)
			if err != nil {
				return fmt.Errorf("counting the saved keys: %w", err)
			}
			if full {
				return ErrTooMany
			}
		}
		return s.store(ctx, key, format, text)
	})
}

// importTimeout bounds how long Import takes.
const importTimeout = 10 * time.Minute

// Import stores the configurations of many keys, of which it uses only Format and Text. Unless
// replace is true, it skips existing keys and returns their names. If there would be more than
// maxKeys keys, it stores nothing and returns ErrTooMany.
func (s *Store) Import(ctx context.Context, configs map[string]Config, maxKeys int, replace bool) (existing []string, err error) {
	err = s.write(ctx, importTimeout, func(ctx context.Context) error {
		saved, err := s.list(ctx)
		if err != nil {
			return fmt.Errorf("listing the saved keys: %w", err)
		}
		exists := setOf(saved.keys)
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
		if len(saved.keys)+added > maxKeys {
			return ErrTooMany
		}
		for _, name := range names {
			if err := s.store(ctx, name, configs[name].Format, configs[name].Text); err != nil {
				return err
			}
		}
		return nil
	})
	return existing, err
}

// store stores a configuration with the ID and the tokens of its key.
func (s *Store) store(ctx context.Context, key, format, text string) error {
	o, err := s.kept(ctx, key)
	if err != nil {
		return err
	}
	o.Format, o.Changed = format, time.Now().UTC()
	s.seal(key, &o, text)
	return s.storeObject(ctx, key, o)
}

func (s *Store) storeObject(ctx context.Context, key string, o object) error {
	content, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := s.storage.Store(ctx, s.folder.objectName(key), content); err != nil {
		return fmt.Errorf("saving the configuration: %w", err)
	}
	s.index.set(key, true, len(o.Tokens) > 0)
	return nil
}

// isFull reports whether there are at least maxKeys keys. It does not list them
// each time, because that takes longer the more keys there are.
func (s *Store) isFull(ctx context.Context, maxKeys int) (bool, error) {
	if s.index.hasRoom(maxKeys) {
		return false, nil
	}
	before := s.index.Changes()
	names, err := s.list(ctx)
	s.index.endList(&names, err, before)
	return len(names.keys) >= maxKeys, err
}

// Deleted identifies a key that was deleted.
type Deleted struct {
	ID, First string // see [Config]; "" if they cannot be read
}

// Delete removes the configuration of a key.
func (s *Store) Delete(ctx context.Context, key string) (was Deleted, err error) {
	err = s.write(ctx, storageTimeout, func(ctx context.Context) error {
		if !s.storage.Exists(ctx, s.folder.objectName(key)) {
			return ErrNotFound
		}
		o, _, readErr := s.read(ctx, key)
		if readErr == nil {
			if err := s.forgetNames(ctx, &o); err != nil {
				return err
			}
			was = Deleted{o.ID, o.first()}
		}
		if err := s.remove(ctx, key); err != nil {
			return err
		}
		if errors.Is(readErr, ErrNotFound) {
			return ErrNotFound // the object is left over from a move
		}
		return nil
	})
	return was, err
}

// remove removes the object of a key with its mark.
func (s *Store) remove(ctx context.Context, key string) error {
	if err := s.storage.Delete(ctx, s.folder.objectName(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the configuration: %w", err)
	}
	s.index.set(key, false, false)
	return s.removeMark(ctx, key)
}

// write runs a change. One change runs at a time over all processes. A change
// that has begun is finished even if the client disconnects.
func (s *Store) write(ctx context.Context, timeout time.Duration, change func(context.Context) error) error {
	s.index.writing.Lock()
	defer s.index.writing.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if err := s.storage.Lock(ctx, s.lock); err != nil {
		return fmt.Errorf("locking the saved configurations: %w", err)
	}
	err := change(ctx)
	if unlockErr := s.storage.Unlock(context.WithoutCancel(ctx), s.lock); err == nil && unlockErr != nil {
		err = fmt.Errorf("unlocking the saved configurations: %w", unlockErr)
	}
	return err
}

// Keys returns the saved keys in no particular order.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	names, err := s.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the saved keys: %w", err)
	}
	return names.keys, nil
}

// names are the names of keys that have an object.
type names struct {
	keys   []string // names of existing keys
	marked []string // names with the mark of a token; the key need not exist
	moved  []string // names from which a key was moved
}

// list returns the names that have an object.
func (s *Store) list(ctx context.Context) (out names, err error) {
	files, err := s.storage.List(ctx, string(s.folder), false)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, err
	}
	for _, name := range files {
		if key, ok := s.folder.keyOf(name); ok {
			out.keys = append(out.keys, key)
		} else if key, ok := s.folder.markedKey(name, markSuffix); ok {
			out.marked = append(out.marked, key)
		} else if key, ok := s.folder.markedKey(name, movedSuffix); ok {
			out.moved = append(out.moved, key)
		}
	}
	return out, nil
}

// Has reports whether a key exists, from a list of the keys that is at most refresh old, so that
// requests for unknown keys cost at most one list per refresh. If the storage cannot be listed, Has
// uses the last list, or returns true if there is none.
func (s *Store) Has(ctx context.Context, key string, refresh time.Duration) bool {
	s.refreshList(ctx, refresh)
	x := s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.keys == nil || x.keys[key]
}

// refreshList lists the keys if the last list is older than refresh.
func (s *Store) refreshList(ctx context.Context, refresh time.Duration) {
	x := s.index
	if !x.mayList(refresh) {
		return
	}
	before := x.Changes()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storageTimeout)
	defer cancel()
	names, err := s.list(ctx)
	x.endList(&names, err, before)
}

// Check returns an error if the storage cannot be read and written.
func (s *Store) Check(ctx context.Context) error {
	return s.write(ctx, storageTimeout, func(ctx context.Context) error {
		name := s.folder.file("check.tmp")
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
