package site

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
)

// minSecret is the minimum length of a secret of a key, in characters.
const minSecret = 16

// Errors for clients that may not send, and for settings.
var (
	errShortSecret = fmt.Errorf("a secret has fewer than %d characters, so it can be guessed; make one with openssl rand -hex 16",
		minSecret)
	errUnsendable = errors.New("a secret has a space, a line break or a character that is not ASCII, so clients cannot send it; make " +
		"one with openssl rand -hex 16")
	errSecretTwice    = errors.New("a secret occurs twice; remove one")
	errTokenAndReader = errors.New("a secret is both a token and a reader, so whoever may read could send; make another one with openssl " +
		"rand -hex 16")
	ErrNoToken = message.Errorf(message.Unidentified,
		"a token of the key is missing or wrong, or there is no such key; send it as Authorization: Bearer, as the password of Basic "+
			"authentication, in X-Gotify-Key or in ?token=")
	ErrMailUnnamed = message.Errorf(message.Forbidden,
		"there is no such key, or it has a token and takes mails only from an account that names it in auth")
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

// CheckSource returns an error if the key does not accept messages of the source.
func (k *Key) CheckSource(name string) error {
	if len(k.Accept) == 0 || slices.Contains(k.Accept, name) {
		return nil
	}
	if name == SourceDirect {
		return errNotDirect
	}
	return errNotAccepted
}

// Errors for the client.
var (
	ErrNoKey       = message.Errorf(message.NotFound, "there is no such key")
	errNotAccepted = message.Errorf(message.Forbidden,
		"the key does not accept messages from this source; add the source to accept of the key")
	errNotDirect = message.Errorf(message.Forbidden,
		"the key accepts messages from its sources only; post to /notify/{KEY}/{SOURCE}, or add direct to accept of the key")
)

// UnknownKeyError is [ErrNoKey] about a key with a name.
type UnknownKeyError struct{ Name string }

// Error implements error. It does not repeat the name, which may be a mistyped secret.
func (e *UnknownKeyError) Error() string { return ErrNoKey.Error() }

// Unwrap returns [ErrNoKey].
func (e *UnknownKeyError) Unwrap() error { return ErrNoKey }

// CheckKey says what to do about an unknown key to those who must not learn which keys there are.
const CheckKey = "check its name, also upper and lower case"

// IsSourceName reports whether name has the form of the name of a source: 1 to 64 letters,
// digits, _ and -.
func IsSourceName(name string) bool { return IsKeyName(name) && len(name) <= 64 }

// SourceDirect in accept means POST /notify/{KEY}.
const SourceDirect = "direct"

// SourceRuler is the source of alerts that rulers, such as Prometheus, post to
// /notify/{KEY}/prometheus.
const SourceRuler = "prometheus"

// The sources of messages.
const (
	SourceHTTP = "http" // a client of the HTTP API
	SourceTest = "test" // a test through the admin API or a page

	SourceEvent    = "event"     // an event of Caddy or of a plugin, or an event of this module that is not a SourceOwnEvent
	SourceOwnEvent = "own_event" // an event of this module about a message, a destination or an incident
	SourceLog      = "log"       // entries of Caddy's log
	SourceFallback = "fallback"  // a delivery that the queue has given up
	SourceDigest   = "digest"    // several messages that a rule has held back
	SourceSMTP     = "smtp"      // a mail
	SourceExpect   = "expect"    // a beat that is late, has failed, or is back

	SourceDevice     = "device"     // a device that has subscribed, is gone, or does not answer
	SourceAsk        = "ask"        // the outcome of a question, for those who were asked
	SourceCallback   = "callback"   // the outcome of a question, for the client that asked
	SourceEscalation = "escalation" // an incident that is still open, or that somebody has resolved on its page
	SourceSilence    = "silence"    // a silence that has begun or ended
)
