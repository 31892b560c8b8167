package saved

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
)

// List returns the sorted names of all keys, never nil. s may be nil.
func (s *Keys) List(ctx context.Context) ([]string, error) {
	if s == nil {
		return []string{}, nil
	}
	keys, err := s.Store.Keys(ctx)
	if err != nil {
		return nil, ErrUnavailable(err)
	}
	if keys == nil {
		keys = []string{}
	}
	slices.Sort(keys)
	return keys, nil
}

// Get returns the configuration of a key as it was saved. The error is [site.ErrNoKey] if
// there is none.
func (s *Keys) Get(ctx context.Context, name string) (*configstore.Config, error) {
	c, err := s.Store.Load(ctx, name)
	return c, storageError(err)
}

// Save saves the configuration of a key, and returns how many URLs it has. The error is
// [LineErrors] if the configuration has mistakes, and a [*message.Error] if there are too many keys.
func (s *Keys) Save(ctx context.Context, name, format, text string) (urls int, warnings []LineError, err error) {
	k, warnings, err := parser{s}.parse(ctx, name, format, text, parser{s}.fetch)
	if _, ok := errors.AsType[LineErrors](err); ok {
		err = message.Errorf(message.Invalid, "the configuration is not saved: %w", err)
	}
	if err != nil {
		return 0, warnings, err
	}
	urls = len(k.Targets)
	s.releaseTargets(k)
	err = s.Store.Save(ctx, name, format, text, s.MaxKeys)
	if errors.Is(err, configstore.ErrTooMany) {
		err = message.Errorf(message.Invalid, "there are %d saved keys already, as many as are allowed (max_keys); delete one first", s.MaxKeys)
	}
	return urls, warnings, storageError(err)
}

// ErrNotAdded is returned for a URL that cannot be added to the text of a key.
var ErrNotAdded = errors.New("the destination cannot be added to the key automatically")

// AddURL adds a URL with tags to a key, which need not exist, and saves the key. It returns how
// many URLs the key has now. The error is [ErrNotAdded] or comes from Save.
func (s *Keys) AddURL(ctx context.Context, name, url string, tags []string) (urls int, err error) {
	s.adding.Lock() // so that two URLs that are added at once are both kept
	defer s.adding.Unlock()
	c, err := s.Get(ctx, name)
	if errors.Is(err, site.ErrNoKey) {
		c = &configstore.Config{Format: configstore.FormatText}
	} else if err != nil {
		return 0, err
	}
	text, err := appriseconfig.Append(c.Text, c.Format == configstore.FormatYAML, url, tags)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotAdded, err)
	}
	urls, _, err = s.Save(ctx, name, c.Format, text)
	return urls, err
}

// Check returns the number of URLs in a configuration, without saving it. The error is [LineErrors]
// if it has mistakes. Without fetch, what it includes is not checked.
func (s *Keys) Check(ctx context.Context, name, format, text string, fetch bool) (urls int, warnings []LineError, err error) {
	include := parser{s}.fetch
	if !fetch && s.Include {
		include = func(context.Context, string) ([]byte, error) { return nil, nil }
	}
	k, warnings, err := parser{s}.parse(ctx, name, format, text, include)
	if err != nil {
		return 0, warnings, err
	}
	s.releaseTargets(k)
	return len(k.Targets), warnings, nil
}

// Delete deletes the configuration of a key, and returns its place. The error is [site.ErrNoKey] if
// there is none.
func (s *Keys) Delete(ctx context.Context, name string) (of site.Place, err error) {
	was, err := s.Store.Delete(ctx, name)
	return (&site.Key{Name: name, Saved: true, Space: s.Space, ID: was.ID, First: was.First}).Place(""), storageError(err)
}

// Move gives a key another name. Everything that belongs to the key stays with it. The error is
// [site.ErrNoKey] if there is none, and [configstore.ErrExists] if another one has the name.
func (s *Keys) Move(ctx context.Context, from, to string) error {
	err := s.Store.Move(ctx, from, to)
	if errors.Is(err, configstore.ErrExists) {
		return err
	}
	return storageError(err)
}

// NewToken adds a token to a key, and returns it with the new number of tokens. Only its hash is
// stored. The error is [site.ErrNoKey] if there is no such key, and another [*message.Error] if it
// has too many tokens.
func (s *Keys) NewToken(ctx context.Context, name string) (token string, count int, err error) {
	token = rand.Text() // with at least 128 bits of randomness
	count, err = s.Store.AddToken(ctx, name, sha256.Sum256([]byte(token)))
	if errors.Is(err, configstore.ErrTooManyTokens) {
		err = message.Errorf(message.Invalid, "the key has %d tokens, as many as are allowed; remove the older ones with DELETE first",
			configstore.MaxTokens)
	}
	return token, count, storageError(err)
}

// RemoveOldTokens removes all tokens of a key except the newest, and returns how many it has
// removed. The error is [site.ErrNoKey] if there is no such key.
func (s *Keys) RemoveOldTokens(ctx context.Context, name string) (removed int, err error) {
	removed, err = s.Store.RemoveOldTokens(ctx, name)
	return removed, storageError(err)
}

// storageError converts an error of the storage, or nil, to an error for callers.
func storageError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*message.Error](err); ok {
		return err
	}
	if errors.Is(err, configstore.ErrNotFound) {
		return site.ErrNoKey
	}
	return ErrUnavailable(err)
}
