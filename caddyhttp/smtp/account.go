package smtp

import (
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
	"golang.org/x/crypto/bcrypt"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/smtpd"
)

// loadAccounts returns the accounts by user name, with placeholders replaced.
func loadAccounts(accounts []Account) (map[string]*smtpd.Account, error) {
	out := map[string]*smtpd.Account{}
	for _, a := range accounts {
		hash, err := placeholder.Resolve(a.Password)
		if err == nil {
			hash = strings.TrimSpace(hash) // a file ends with a line break
			err = checkHash(hash)
		}
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", a.Username, err)
		}
		out[a.Username] = &smtpd.Account{Hash: hash, Matches: matcherOf(hash), Keys: a.Keys}
	}
	return out, nil
}

// checkHash returns an error if hash is not a hash of bcrypt or argon2id.
func checkHash(hash string) error {
	if isArgon2id(hash) {
		if _, _, err := caddyauth.DecodeHash([]byte(hash)); err != nil {
			return errHash
		}
		return nil
	}
	if _, err := bcrypt.Cost([]byte(hash)); err != nil {
		return errHash
	}
	return nil
}

func isArgon2id(hash string) bool { return strings.HasPrefix(hash, "$argon2id$") }

// matcherOf returns a function that reports whether a password has the hash.
func matcherOf(hash string) func(password string) bool {
	var c caddyauth.Comparer = caddyauth.BcryptHash{}
	if isArgon2id(hash) {
		c = caddyauth.Argon2idHash{}
	}
	return func(password string) bool {
		ok, err := c.Compare([]byte(hash), []byte(password))
		return ok && err == nil
	}
}
