package saved

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/event"
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

// Get returns the configuration of a key as it was saved. The error is a [*site.UnknownKeyError] if
// there is none.
func (s *Keys) Get(ctx context.Context, name string) (*configstore.Config, error) {
	c, err := s.Store.Load(ctx, name)
	return c, storageError(name, err)
}

// CheckSaved returns a [*message.Error] if a key is in the configuration, which takes precedence over
// a saved key of the same name.
func (s *Keys) CheckSaved(name string) error {
	if s.settings.Keys[name] == nil {
		return nil
	}
	return message.Errorf(message.Forbidden,
		"the key %s is in the configuration of the gateway; it can be neither read nor changed here", name)
}

// Changes changes saved keys for somebody. Its errors are [*message.Error], unless they say
// otherwise. Each change is a line in the log and an event, which have no URL.
type Changes struct {
	keys         *Keys
	user, client string
}

// By returns the changes for a user, at the address of a client. Both are "" if they are not known.
func (s *Keys) By(user, client string) Changes { return Changes{s, user, client} }

// What happens to a key, for the log and the event.
const (
	changeSaved         = "saved"
	changeDeleted       = "deleted"
	changeMoved         = "moved" // to the name in the line
	changeTokenAdded    = "token_added"
	changeTokensRemoved = "tokens_removed"
)

// changed logs a change of a key, which has a number of destinations now, and emits the event.
func (c Changes) changed(name, change string, destinations int) {
	space := c.keys.Shared.Label()
	c.keys.Log.Info("saved configuration changed", zap.String("key", name), zap.String("space", space), zap.String("change", change),
		zap.Int("destinations", destinations), zap.String("user", c.user), zap.String("client_ip", c.client))
	c.keys.in.Emit(event.ConfigChanged, func() map[string]any {
		return map[string]any{"key": name, "space": space, "change": change, "destinations": destinations, "user": c.user}
	})
}

// count returns how many destinations a key has, or 0 if it cannot be read now.
func (c Changes) count(ctx context.Context, name string) int {
	k, err := c.keys.find(ctx, name)
	if err != nil {
		return 0
	}
	return len(k.Targets)
}

// Save saves the configuration of a key, and returns how many URLs it has. The error wraps
// [LineErrors] if the configuration has mistakes.
func (c Changes) Save(ctx context.Context, name, format, text string) (urls int, warnings []LineError, err error) {
	s := c.keys
	if err := s.CheckSaved(name); err != nil {
		return 0, nil, err
	}
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
	if err != nil {
		return urls, warnings, storageError(name, err)
	}
	c.changed(name, changeSaved, urls)
	return urls, warnings, nil
}

// ErrNotAdded is returned for a URL that cannot be added to the text of a key.
var ErrNotAdded = errors.New("the destination cannot be added to the key automatically")

// AddURL adds a URL with tags to a key, which need not exist, and saves the key. It returns how
// many URLs the key has now. The error is [ErrNotAdded] or comes from Save.
func (c Changes) AddURL(ctx context.Context, name, url string, tags []string) (urls int, err error) {
	c.keys.adding.Lock() // so that two URLs that are added at once are both kept
	defer c.keys.adding.Unlock()
	was, err := c.keys.Get(ctx, name)
	if errors.Is(err, site.ErrNoKey) {
		was = &configstore.Config{Format: configstore.FormatText}
	} else if err != nil {
		return 0, err
	}
	text, err := appriseconfig.Append(was.Text, was.Format == configstore.FormatYAML, url, tags)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotAdded, err)
	}
	urls, _, err = c.Save(ctx, name, was.Format, text)
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

// Delete deletes the configuration of a key, and what the gateway keeps for it. The error is a
// [*site.UnknownKeyError] if there is none.
func (c Changes) Delete(ctx context.Context, name string) error {
	if err := c.keys.CheckSaved(name); err != nil {
		return err
	}
	was, err := c.keys.Store.Delete(ctx, name)
	if err != nil {
		return storageError(name, err)
	}
	c.changed(name, changeDeleted, 0)
	k := site.Key{Name: name, Saved: true, Space: c.keys.Space, ID: was.ID, First: was.First}
	c.keys.in.Forget(ctx, k.Place(""), name, c.user)
	return nil
}

// Move gives a key another name. Everything that belongs to the key stays with it: its tokens,
// devices, silences, incidents, inbox and waiting deliveries. The error is a [*site.UnknownKeyError] if there
// is none, and names the field to if it cannot have the name.
func (c Changes) Move(ctx context.Context, from, to string) error {
	if err := c.keys.CheckSaved(from); err != nil {
		return err
	}
	refuse := func(kind message.Kind, err error) error { return &message.Error{Kind: kind, Field: "to", Err: err} }
	if to == from {
		return refuse(message.Invalid, errors.New("the key has this name already; send another one"))
	}
	if err := site.CheckKeyName(to); err != nil {
		return refuse(message.Invalid, err)
	}
	if err := c.keys.CheckSaved(to); err != nil {
		return refuse(message.Forbidden, err)
	}
	err := c.keys.Store.Move(ctx, from, to)
	if errors.Is(err, configstore.ErrExists) {
		return refuse(message.Conflict, fmt.Errorf("there is a saved key %s already; choose another name, or delete that key first", to))
	}
	if err != nil {
		return storageError(from, err)
	}
	c.changed(to, changeMoved, c.count(ctx, to))
	return nil
}

// NewToken adds a token to a key, and returns it with the new number of tokens. Only its hash is
// stored. The error is a [*site.UnknownKeyError] if there is no such key.
func (c Changes) NewToken(ctx context.Context, name string) (token string, count int, err error) {
	if err := c.keys.CheckSaved(name); err != nil {
		return "", 0, err
	}
	token = rand.Text() // with at least 128 bits of randomness
	count, err = c.keys.Store.AddToken(ctx, name, sha256.Sum256([]byte(token)))
	if errors.Is(err, configstore.ErrTooManyTokens) {
		err = message.Errorf(message.Invalid, "the key has %d tokens, as many as are allowed; remove the older ones with DELETE first",
			configstore.MaxTokens)
	}
	if err != nil {
		return "", count, storageError(name, err)
	}
	c.changed(name, changeTokenAdded, c.count(ctx, name))
	return token, count, nil
}

// RemoveOldTokens removes all tokens of a key except the newest, and returns how many it has
// removed. The error is a [*site.UnknownKeyError] if there is no such key.
func (c Changes) RemoveOldTokens(ctx context.Context, name string) (removed int, err error) {
	if err := c.keys.CheckSaved(name); err != nil {
		return 0, err
	}
	if removed, err = c.keys.Store.RemoveOldTokens(ctx, name); err != nil {
		return removed, storageError(name, err)
	}
	if removed > 0 {
		c.changed(name, changeTokensRemoved, c.count(ctx, name))
	}
	return removed, nil
}

// storageError converts an error of the storage about a key, or nil, to an error for callers.
func storageError(name string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*message.Error](err); ok {
		return err
	}
	if errors.Is(err, configstore.ErrNotFound) {
		return &site.UnknownKeyError{Name: name}
	}
	return ErrUnavailable(err)
}
