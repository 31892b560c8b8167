package saved

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/loglimit"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Keys are the saved keys of a site. A key is read and parsed at its first
// use, and parsed again only when its configuration changes. A URL that the
// change leaves in place keeps its destination, with its connections and
// tokens.
type Keys struct {
	Options
	Store    *configstore.Store
	Shared   *Space
	in       *Spaces
	Index    *configstore.Index // of space
	settings *site.Site         // of the site
	Sender   *notifier.Sender
	policy   *egress.Policy // nil with trust operator
	services site.ServiceRules
	Limits   *notifier.Limits // nil with trust operator
	defaults site.DefaultTag  // of every key
	Log      *zap.Logger

	adding   sync.Mutex       // held while a URL is added to a key
	reserved loglimit.Limiter // of messages to keys that have reserved names

	mu     sync.Mutex
	keys   map[string]*savedKey
	closed bool
}

// savedKey is a saved key in use.
type savedKey struct {
	mu       sync.Mutex // held while the storage is read
	key      *site.Key  // nil until it is first read
	revision configstore.Revision
	checked  time.Time
	changes  int64 // of the index at the last check
	failing  bool  // the last read failed
}

// Options are the settings of saved keys.
type Options struct {
	Space            string        // "" for the default one
	Secret           string        // encrypts the stored keys; "" for none
	Include          bool          // a configuration may include others
	Trusted          bool          // the URLs have the rights of the operator's
	Manage           bool          // somebody may read and change them
	DefaultTag       string        // what a message without a tag reaches; "" for every URL
	Refresh          time.Duration // how soon a change by another gateway is seen
	MaxKeys          int
	MaxSize          int64 // of the configuration of a key, in bytes
	MaxURLs          int   // of a key
	site.KeySettings       // of every key

	// Expand replaces the variables of a URL, except the ones that its template declares. found
	// reports whether the URL has variables, and whole whether the whole URL is one. Expand is nil
	// if there are no variables.
	Expand func(url string, declared []notifier.Variable) (expanded string, found, whole bool, err error)

	// Value returns the value of a variable, for templates of trusted URLs. It is nil if there are
	// no variables.
	Value func(name string) (value string, ok bool)
}

// New returns the saved keys of a site. saves means that the site lets clients save keys if
// somebody may manage them.
func New(o Options, r *site.Site, in *Spaces, owner ConfigsOwner, saves bool, sender *notifier.Sender, log *zap.Logger) (*Keys, error) {
	space, err := in.Join(o, owner)
	if err != nil {
		return nil, err
	}
	s := &Keys{Options: o, Shared: space, in: in, Index: &space.index, settings: r, Sender: sender, Log: log, keys: map[string]*savedKey{}}
	space.add(s, saves && s.Manage)
	if !s.Trusted && r.Limits.Client != nil {
		limits := *r.Limits.Client
		limits.Relay = true // as for a key of the configuration: Apprise clients identify as gateways
		s.Limits = &limits
	}
	if s.DefaultTag != "" {
		if s.defaults, err = site.ParseDefaultTag(s.DefaultTag); err != nil {
			return nil, err
		}
	}
	s.Store, err = configstore.New(configstore.Options{Storage: in.Storage, Space: s.Space, Index: s.Index, Secret: s.Secret})
	return s, err
}

// Finder returns the functions that find the keys. It returns the zero value for a nil s.
func (s *Keys) Finder() site.Finder {
	if s == nil {
		return site.Finder{}
	}
	return site.Finder{
		Find: s.find, Protected: s.protected, Names: s.names, Places: s.places, Moved: s.moved,
		MayHaveMoved: s.Store.MayHaveMoved, Space: s.Space, KeySettings: s.KeySettings,
	}
}

// names returns the names of all keys.
func (s *Keys) names(ctx context.Context) ([]string, error) { return s.Store.Keys(ctx) }

// moved returns the keys that were renamed from name.
func (s *Keys) moved(ctx context.Context, name string) (keys []*site.Key, err error) {
	if !site.IsKeyName(name) {
		return nil, nil
	}
	names, err := s.Store.Moved(ctx, name)
	if err != nil {
		return nil, ErrUnavailable(err)
	}
	for _, now := range names {
		k, err := s.find(ctx, now)
		if errors.Is(err, site.ErrNoKey) {
			continue // it was deleted just now
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// Close releases the destinations.
func (s *Keys) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	keys := s.keys
	s.keys, s.closed = nil, true
	s.mu.Unlock()
	for _, k := range keys {
		k.mu.Lock()
		s.release(k)
		k.mu.Unlock()
	}
}

// release releases the destinations of k. The caller holds the lock of k.
func (s *Keys) release(k *savedKey) {
	if k.key != nil {
		s.releaseTargets(k.key)
		k.key = nil
	}
}

// releaseTargets releases the destinations of a key that parse returned.
func (s *Keys) releaseTargets(k *site.Key) {
	for _, t := range k.Targets {
		s.Sender.Release(t.Destination)
	}
}

// protected reports whether a saved key has a token.
func (s *Keys) protected(ctx context.Context) bool {
	return s.Store.HasTokens(ctx, s.Refresh)
}

// ErrUnavailable returns the error for clients when the storage has failed with err.
func ErrUnavailable(err error) *message.Error {
	e := message.Errorf(message.Unavailable, "the saved configurations cannot be read or changed at the moment; try again in a few seconds")
	e.Fault, e.RetryAfter = err, 5*time.Second
	return e
}

// find returns a saved key, at most Refresh old. If the storage cannot be read,
// find returns the key as it was last read, or an error if it never was.
func (s *Keys) find(ctx context.Context, name string) (*site.Key, error) {
	if !site.IsKeyName(name) {
		return nil, &site.UnknownKeyError{Name: name}
	}
	refresh := s.Refresh
	if site.CheckKeyName(name) != nil {
		if s.Store.Has(ctx, name, refresh) {
			s.reserved.Add(1, func(n int) {
				s.Log.Error("messages to a saved key were refused, because its name is that of an address of the gateway itself; save its "+
					"configuration with another name, and delete it", zap.String("key", name), zap.Int("count", n))
			})
		}
		return nil, &site.UnknownKeyError{Name: name}
	}
	s.mu.Lock()
	k := s.keys[name]
	s.mu.Unlock()
	if k == nil {
		if !s.Store.Has(ctx, name, refresh) {
			return nil, &site.UnknownKeyError{Name: name}
		}
		s.mu.Lock()
		if k = s.keys[name]; k == nil {
			k = &savedKey{}
			if !s.closed {
				s.keys[name] = k
			}
		}
		s.mu.Unlock()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if changes := s.Index.Changes(); k.key == nil || k.changes != changes || time.Since(k.checked) >= refresh {
		if err := s.refresh(ctx, name, k); err != nil {
			return nil, err
		}
		k.checked, k.changes = time.Now(), changes
	}
	return k.key, nil
}

// refresh reads the configuration of a key if it has changed. The caller holds
// the lock of k.
func (s *Keys) refresh(ctx context.Context, name string, k *savedKey) error {
	c, err := s.Store.Load(context.WithoutCancel(ctx), name)
	if errors.Is(err, configstore.ErrNotFound) {
		s.release(k)
		s.forget(name, k)
		return &site.UnknownKeyError{Name: name}
	}
	var fresh *site.Key
	if err == nil && (k.key == nil || c.Revision != k.revision) {
		fresh, err = parser{s}.load(ctx, name, c.Format, c.Text)
	}
	switch {
	case err != nil && k.key == nil:
		s.forget(name, k)
		return ErrUnavailable(fmt.Errorf("key %s: %w", name, err))
	case err != nil:
		if !k.failing {
			s.Log.Error("the saved configuration cannot be read; messages go to the URLs that it had", zap.String("key", name), zap.Error(err))
		}
		k.failing = true
		return nil
	}
	if k.failing {
		s.Log.Info("the saved configuration can be read again", zap.String("key", name))
		k.failing = false
	}
	if fresh != nil {
		s.release(k)
		fresh.ID, fresh.First, fresh.Tokens = c.ID, c.First, c.Tokens
		k.key, k.revision = fresh, c.Revision
	}
	return nil
}

// forget removes k, which holds no destinations.
func (s *Keys) forget(name string, k *savedKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[name] == k {
		delete(s.keys, name)
	}
}

// Describe calls set with a saved key, or returns why the key cannot be used. It reads a key that
// is not in use, without keeping it in memory.
func (s *Keys) Describe(ctx context.Context, name string, set func(*site.Key)) (problem string) {
	s.mu.Lock()
	used := s.keys[name] != nil
	s.mu.Unlock()
	if used {
		if k, err := s.find(ctx, name); err == nil {
			set(k)
			return ""
		}
	}
	c, err := s.Store.Load(ctx, name)
	if err != nil {
		return "It cannot be read."
	}
	// Included files are not fetched.
	k, _, err := parser{s}.parse(ctx, name, c.Format, c.Text, func(context.Context, string) ([]byte, error) { return nil, nil })
	if err != nil {
		return "It has mistakes, or only includes others."
	}
	k.ID, k.First = c.ID, c.First
	set(k)
	s.releaseTargets(k)
	return ""
}

// IDOf returns a function that returns the ID of a URL. The ID is a keyed hash,
// so that nobody can guess the URL from it.
func (s *Keys) IDOf(ctx context.Context) func(notifier.Target) *string {
	key, err := s.Store.IDKey(ctx)
	if err != nil {
		s.Log.Error("URLs are listed without IDs", zap.Error(err))
		return func(notifier.Target) *string { return nil }
	}
	return func(t notifier.Target) *string {
		mac := hmac.New(sha256.New, key)
		url := t.URL()
		if t.Variable != nil {
			url = t.Variable.URL
		}
		mac.Write([]byte(url))
		id := hex.EncodeToString(mac.Sum(nil)[:16])
		return &id
	}
}

// EachDestination calls f with each usable destination of the saved keys.
func (s *Keys) EachDestination(ctx context.Context, f func(*notifier.Destination)) error {
	names, err := s.Store.Keys(ctx)
	if err != nil {
		return fmt.Errorf("listing the saved keys: %w", err)
	}
	for _, name := range names {
		c, err := s.Store.Load(ctx, name)
		if errors.Is(err, configstore.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the saved key %s: %w", name, err)
		}
		k, _, err := parser{s}.parse(ctx, name, c.Format, c.Text, parser{s}.fetch)
		if err != nil {
			continue
		}
		for _, t := range k.Targets {
			f(t.Destination)
		}
		s.releaseTargets(k)
	}
	return nil
}

// ImportTimeout bounds how long reading all configuration files that a key imports from Apprise
// takes.
const ImportTimeout = 10 * time.Second

// Values of Configs.Trust.
const TrustClient = "client"
