package caddyhttp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/caddyauth"
	"github.com/emersion/go-sasl"
	"golang.org/x/crypto/bcrypt"
)

// mailAccount is an account of a mail client.
type mailAccount struct {
	hash []byte
	keys []string // the keys that it may send to; nil for all

	// last is the HMAC of the last correct password. It saves the slow hash for
	// clients that log in often.
	last atomic.Pointer[[sha256.Size]byte]
}

// loadMailAccounts returns the accounts by user name, with placeholders replaced.
func loadMailAccounts(accounts []SMTPAccount) (map[string]*mailAccount, error) {
	out := map[string]*mailAccount{}
	for _, a := range accounts {
		hash, err := resolvePlaceholders(a.Password)
		if err == nil {
			hash = strings.TrimSpace(hash) // a file ends with a line break
			err = checkHash(hash)
		}
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", a.Username, err)
		}
		out[a.Username] = &mailAccount{hash: []byte(hash), keys: a.Keys}
	}
	return out, nil
}

// mayUse reports whether the account may send to a key.
func (a *mailAccount) mayUse(key string) bool {
	return len(a.keys) == 0 || slices.Contains(a.keys, key)
}

// checkHash returns an error if hash is not a hash of bcrypt or argon2id.
func checkHash(hash string) error {
	if isArgon2id(hash) {
		if _, _, err := caddyauth.DecodeHash([]byte(hash)); err != nil {
			return errSMTPHash
		}
		return nil
	}
	if _, err := bcrypt.Cost([]byte(hash)); err != nil {
		return errSMTPHash
	}
	return nil
}

func isArgon2id(hash string) bool { return strings.HasPrefix(hash, "$argon2id$") }

// matches reports whether password is the account's password.
func (a *mailAccount) matches(password string) bool {
	var c caddyauth.Comparer = caddyauth.BcryptHash{}
	if isArgon2id(string(a.hash)) {
		c = caddyauth.Argon2idHash{}
	}
	ok, err := c.Compare(a.hash, []byte(password))
	return ok && err == nil
}

// fakeAccount stands in for an unknown user, so that checking a password takes as
// long as for a known one.
var fakeAccount = &mailAccount{hash: caddyauth.BcryptHash{}.FakeHash()}

// passwordChecker checks the passwords of clients. A check takes much CPU time, so
// at most half of the processors run checks at the same time.
type passwordChecker struct {
	slots chan struct{}
	key   [sha256.Size]byte // of the HMACs of passwords
}

func newPasswordChecker() *passwordChecker {
	p := &passwordChecker{slots: make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1))}
	_, _ = rand.Read(p.key[:]) // it returns no error
	return p
}

// check reports whether password is the account's password. account is nil for an
// unknown user.
func (p *passwordChecker) check(account *mailAccount, password string) bool {
	mac := hmac.New(sha256.New, p.key[:])
	mac.Write([]byte(password))
	sum := [sha256.Size]byte(mac.Sum(nil))
	if account != nil {
		if last := account.last.Load(); last != nil && hmac.Equal(last[:], sum[:]) {
			return true
		}
	}
	p.slots <- struct{}{}
	defer func() { <-p.slots }()
	if account == nil {
		fakeAccount.matches(password)
		return false
	}
	if !account.matches(password) {
		return false
	}
	account.last.Store(&sum)
	return true
}

// loginServer is the server side of the mechanism LOGIN (draft-murchison-sasl-login).
// Many devices support only LOGIN and not PLAIN.
type loginServer struct {
	user         string
	step         int
	authenticate func(user, password string) error
}

// Next implements sasl.Server.
func (l *loginServer) Next(response []byte) (challenge []byte, done bool, err error) {
	if l.step == 0 && response == nil {
		l.step = 1
		return []byte("Username:"), false, nil
	}
	switch l.step {
	case 0, 1:
		l.user, l.step = string(response), 2
		return []byte("Password:"), false, nil
	case 2:
		l.step = 3
		return nil, true, l.authenticate(l.user, string(response))
	}
	return nil, false, errors.New("the exchange is over")
}

var _ sasl.Server = (*loginServer)(nil)
