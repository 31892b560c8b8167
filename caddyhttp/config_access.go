package caddyhttp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/percent"
)

// minSecret is the minimum length of a secret of a key, in characters.
const minSecret = 16

var (
	errShortSecret    = fmt.Errorf("a secret has fewer than %d characters, so it can be guessed; make one with openssl rand -hex 16", minSecret)
	errUnsendable     = errors.New("a secret has a space, a line break or a character that is not ASCII, so clients cannot send it; make one with openssl rand -hex 16")
	errSecretTwice    = errors.New("a secret occurs twice; remove one")
	errTokenAndReader = errors.New("a secret is both a token and a reader, so whoever may read could send; make another one with openssl rand -hex 16")
	errReaderWithout  = errors.New("reader: it has no effect, because only an inbox and /json/urls/{KEY} ask for it; add inbox 7d to the key or configs to the notify block, or remove reader")
	errReaderNowhere  = errors.New("reader: it has no effect, because only an inbox and /json/urls/{KEY} ask for it, the key has no inbox, and no site has configs; add inbox 7d to the key or configs to a site, or remove reader")
	errNoToken        = api.Errorf(http.StatusUnauthorized, "a token of the key is missing or wrong; send it as Authorization: Bearer, as the password of Basic authentication, in X-Gotify-Key or in ?token=")
	errNoReader       = api.Errorf(http.StatusUnauthorized, "this needs a reader of the key; send it as Authorization: Bearer, as the password of Basic authentication, in X-Gotify-Key or in ?token=")
	errMailUnnamed    = api.Errorf(http.StatusForbidden, "there is no such key, or it has a token and takes mails only from an account that names it in auth")
)

// checkSecret returns an error if a secret of a key is too short, or cannot be sent
// in a header. A secret with a placeholder is checked when it has its value.
func checkSecret(text string) error {
	switch {
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errUnsendable
	case len(text) < minSecret:
		return errShortSecret
	}
	return nil
}

// checkSecretArgs checks the secrets of a subdirective before placeholders are
// replaced.
func checkSecretArgs(args []string) error {
	for _, arg := range args {
		if err := placeholder.Check(arg); err != nil {
			return err
		}
		if !strings.Contains(arg, "{") {
			if err := checkSecret(arg); err != nil {
				return err
			}
		}
	}
	return nil
}

// secretHashes are secrets, as their SHA-256 hashes.
type secretHashes [][sha256.Size]byte

// has reports whether candidate is one of the secrets. The time that it takes does
// not depend on the secrets.
func (s secretHashes) has(candidate string) bool {
	sum := sha256.Sum256([]byte(candidate))
	found := 0
	for i := range s {
		found |= subtle.ConstantTimeCompare(s[i][:], sum[:])
	}
	return found == 1
}

// loadSecrets returns the hashes of secrets, after replacing placeholders.
func loadSecrets(texts []string) (secretHashes, error) {
	var out secretHashes
	for _, text := range texts {
		secret, err := placeholder.Resolve(text)
		if err != nil {
			return nil, err
		}
		secret = strings.TrimSpace(secret) // a file ends with a line break
		if err := checkSecret(secret); err != nil {
			return nil, err
		}
		if out.has(secret) {
			return nil, errSecretTwice
		}
		out = append(out, sha256.Sum256([]byte(secret)))
	}
	return out, nil
}

// loadAccess sets the tokens and readers of k.
func (c *Key) loadAccess(k *key) (err error) {
	if k.tokens, err = loadSecrets(c.Tokens); err != nil {
		return prefixError("token", err)
	}
	if k.readers, err = loadSecrets(c.Readers); err != nil {
		return prefixError("reader", err)
	}
	if slices.ContainsFunc(k.readers, func(sum [sha256.Size]byte) bool { return slices.Contains(k.tokens, sum) }) {
		return errTokenAndReader
	}
	return nil
}

// checkReaders returns an error if a key of the site has readers and nothing asks for
// them.
func (h *Handler) checkReaders() error {
	if h.saved != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(h.Keys)) {
		if k := h.Keys[name]; len(k.Readers) > 0 && k.Inbox == 0 {
			return h.Caddyfile.locate(keyPrefix+name, prefixError(keyPrefix+name, errReaderWithout))
		}
	}
	return nil
}

// checkReaders is like that of a handler for the keys of the app. All sites must be
// known.
func (a *App) checkReaders() error {
	if slices.ContainsFunc(a.sites, func(r *resolved) bool { return r.saved.on() }) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(a.Keys)) {
		if k := a.Keys[name]; len(k.Readers) > 0 && k.Inbox == 0 {
			return a.Caddyfile.locate(keyPrefix+name, prefixError(keyPrefix+name, errReaderNowhere))
		}
	}
	return nil
}

// protected reports whether a key has a token or a reader, so that a client must not
// learn which keys exist.
func (r *resolved) protected(ctx context.Context) bool {
	return r.hasSecrets || r.saved.on() && r.saved.protected(ctx)
}

// openKey returns the key with the name, for a client that may have no secret. Where
// keys are protected, a key that does not exist is one with a token that nobody has;
// exists is then false.
func (r *resolved) openKey(ctx context.Context, name string) (k *key, exists bool, err error) {
	k, err = r.key(ctx, name)
	if errors.Is(err, errNoKey) && r.protected(ctx) {
		return &key{name: name, tokens: make(secretHashes, 1)}, false, nil
	}
	return k, err == nil, err
}

// keyToSend returns a key if the client of req may send to it. It does not read the
// body.
func (r *resolved) keyToSend(req *http.Request, name string) (*key, error) {
	k, _, err := r.openKey(req.Context(), name)
	if err == nil && len(k.tokens) > 0 && !source.HasToken(newSourceRequest(req), k.tokens.has) {
		err = errNoToken
	}
	return k, err
}

// tokenSum returns the hash of the token of the key that a request in a format has, or "".
func (k *key) tokenSum(req *source.Request, f *source.Format) (sum string) {
	f.HasToken(req, func(token string) bool {
		if !k.tokens.has(token) {
			return false
		}
		h := sha256.Sum256([]byte(token))
		sum = string(h[:])
		return true
	})
	return sum
}

func newSourceRequest(r *http.Request) *source.Request {
	return &source.Request{Header: r.Header, Query: percent.ParseForm(r.URL.RawQuery)}
}

// askForSecret tells the client of a 401 how it can send a secret. The script of a device
// knows its own; Basic would make the browser ask somebody for a password.
func askForSecret(w http.ResponseWriter, a access) {
	if a != accessDevice {
		w.Header().Set("WWW-Authenticate", `Basic realm="notify", charset="UTF-8"`)
	}
	w.Header().Add("WWW-Authenticate", "Bearer")
}
