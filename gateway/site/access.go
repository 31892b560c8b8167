package site

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
)

// minSecret is the minimum length of a secret of a key, in characters.
const minSecret = 16

// Errors for clients that may not send, and for settings.
var (
	errShortSecret    = fmt.Errorf("a secret has fewer than %d characters, so it can be guessed; make one with openssl rand -hex 16", minSecret)
	errUnsendable     = errors.New("a secret has a space, a line break or a character that is not ASCII, so clients cannot send it; make one with openssl rand -hex 16")
	errSecretTwice    = errors.New("a secret occurs twice; remove one")
	errTokenAndReader = errors.New("a secret is both a token and a reader, so whoever may read could send; make another one with openssl rand -hex 16")
	ErrNoToken        = message.Errorf(message.Unidentified, "a token of the key is missing or wrong, or there is no such key; send it as Authorization: Bearer, as the password of Basic authentication, in X-Gotify-Key or in ?token=")
	ErrMailUnnamed    = message.Errorf(message.Forbidden, "there is no such key, or it has a token and takes mails only from an account that names it in auth")
)

// CheckSecret returns an error if a secret of a key is too short, or cannot be sent
// in a header. A secret with a placeholder is checked when it has its value.
func CheckSecret(text string) error {
	switch {
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errUnsendable
	case len(text) < minSecret:
		return errShortSecret
	}
	return nil
}

// SendTest sends a test message to the one target of to under the rules of its key (see
// [outbox.Configuration.SendTest]). The result covers one attempt.
type Secrets [][sha256.Size]byte

// Has reports whether candidate is one of the secrets. The time that it takes does
// not depend on the secrets.
func (s Secrets) Has(candidate string) bool {
	sum := sha256.Sum256([]byte(candidate))
	found := 0
	for i := range s {
		found |= subtle.ConstantTimeCompare(s[i][:], sum[:])
	}
	return found == 1
}

// Protected reports whether any key has a token or a reader. If so, a client must not learn which
// keys exist.
func (s *Site) Protected(ctx context.Context) bool {
	return s.hasSecrets || s.Saved.On() && s.Saved.Protected(ctx)
}

// OpenKey returns the key with the name, for a client that may have no secret. Where keys are
// protected, a key that does not exist looks like one with a token that nobody has, and exists is
// false.
func (s *Site) OpenKey(ctx context.Context, name string) (k *Key, exists bool, err error) {
	k, err = s.Key(ctx, name)
	if errors.Is(err, ErrNoKey) && s.Protected(ctx) {
		return &Key{Name: name, Access: Access{Tokens: make(Secrets, 1)}}, false, nil
	}
	return k, err == nil, err
}

// Tickets are the used tickets, each of which has replaced a token for one request. The zero value
// is ready for use.
type Tickets struct {
	mu   sync.Mutex
	used map[string]time.Time // when they end
}

// Use records a ticket and reports whether it was not used before.
func (t *Tickets) Use(ticket string, end, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other, end := range t.used {
		if now.After(end) {
			delete(t.used, other)
		}
	}
	if _, used := t.used[ticket]; used {
		return false
	}
	if t.used == nil {
		t.used = map[string]time.Time{}
	}
	t.used[ticket] = end
	return true
}
