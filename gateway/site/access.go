package site

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/source"
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

// Secrets are secrets, as their SHA-256 hashes.
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

// Protected reports whether a key has a token or a reader, so that a client must not
// learn which keys exist.
func (s *Site) Protected(ctx context.Context) bool {
	return s.hasSecrets || s.Saved.On() && s.Saved.Protected(ctx)
}

// OpenKey returns the key with the name, for a client that may have no secret. Where
// keys are protected, a key that does not exist is one with a token that nobody has;
// exists is then false.
func (s *Site) OpenKey(ctx context.Context, name string) (k *Key, exists bool, err error) {
	k, err = s.Key(ctx, name)
	if errors.Is(err, ErrNoKey) && s.Protected(ctx) {
		return &Key{Name: name, Access: Access{Tokens: make(Secrets, 1)}}, false, nil
	}
	return k, err == nil, err
}

// TokenSum returns the hash of the token of the key that a request in a format has, or that its
// ticket was made with, or "".
func (k *Key) TokenSum(req *source.Request, f *source.Format) (sum string) {
	f.HasToken(req, func(token string) bool {
		if !k.Tokens.Has(token) {
			return false
		}
		h := sha256.Sum256([]byte(token))
		sum = string(h[:])
		req.SetTicketSecret(h[:])
		return true
	})
	for i := range k.Tokens {
		if sum == "" && req.HasTicket(k.Tokens[i][:]) {
			sum = string(k.Tokens[i][:])
		}
	}
	return sum
}
