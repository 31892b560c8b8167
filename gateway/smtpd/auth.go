package smtpd

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/similar"
	"github.com/caddy-notify/caddy-notify/internal/smtp"
)

// Account is an account of a mail client.
type Account struct {
	// Hash is the hash of the password. Changing it forgets the account's remembered logins.
	Hash string

	// Matches reports whether a password is correct. It may take long.
	Matches func(password string) bool

	// Keys are the keys that the account may send to; empty for all.
	Keys []string
}

// mayUse reports whether the account may send to a key.
func (a *Account) mayUse(key string) bool {
	return len(a.Keys) == 0 || slices.Contains(a.Keys, key)
}

// forbidden returns the answer for a key that the account may not send to. It names only the account's
// own keys.
func (a *Account) forbidden(key string) *smtp.SMTPError {
	return newAnswer(550, 5, 7, 1, "the account may not send to this key; %s", similar.Hint(key, a.Keys, site.CheckKey))
}

const (
	// maxChecks is the maximum number of passwords from one address that are checked or wait for
	// it, so that guesses from one address delay other clients by two checks only.
	maxChecks = 2

	// maxRemembered is the maximum number of remembered logins.
	maxRemembered = 1000
)

// Passwords checks the passwords of clients. A check takes much CPU time, so at most half of the
// processors run checks at the same time. Correct passwords are remembered, so that clients that
// log in often do not need the slow hash. Servers that replace one another share a Passwords.
type Passwords struct {
	slots chan struct{}
	key   [sha256.Size]byte // key of the HMACs

	mu         sync.Mutex
	checks     map[netip.Addr]int         // running or waiting checks, by address of the client
	remembered map[[sha256.Size]byte]bool // HMACs of correct logins
}

// NewPasswords returns a Passwords that remembers nothing.
func NewPasswords() *Passwords {
	p := &Passwords{
		slots:  make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1)),
		checks: map[netip.Addr]int{}, remembered: map[[sha256.Size]byte]bool{},
	}
	_, _ = rand.Read(p.key[:]) // it returns no error
	return p
}

// mac returns the HMAC of texts.
func (p *Passwords) mac(texts ...string) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, p.key[:])
	for _, text := range texts {
		fmt.Fprintf(mac, "%d %s", len(text), text)
	}
	return [sha256.Size]byte(mac.Sum(nil))
}

// check returns the account with a user name and a password, or else the answer for the client at
// an address.
func (p *Passwords) check(accounts map[string]*Account, address netip.Addr, user, password string) (*Account, *smtp.SMTPError) {
	account, known := accounts[user]
	if !known {
		account = p.unknown(accounts, user)
	}
	login := p.mac(user, account.Hash, password)
	p.mu.Lock()
	if known && p.remembered[login] {
		p.mu.Unlock()
		return account, nil
	}
	if p.checks[address] >= maxChecks {
		p.mu.Unlock()
		return nil, errChecks
	}
	p.checks[address]++
	p.mu.Unlock()
	defer p.leave(address)
	p.slots <- struct{}{}
	ok := account.Matches(password)
	<-p.slots
	if !ok || !known {
		return nil, errPassword
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.remembered) >= maxRemembered {
		clear(p.remembered)
	}
	p.remembered[login] = true
	return account, nil
}

// leave ends a check for an address.
func (p *Passwords) leave(address netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.checks[address]--; p.checks[address] == 0 {
		delete(p.checks, address)
	}
}

// unknown returns an account whose hash is checked in place of an unknown user's. It is always the
// same for the same name, so that a check takes as long as for a known user, even if the hashes of
// the accounts differ in cost. There is at least one account.
func (p *Passwords) unknown(accounts map[string]*Account, user string) *Account {
	names := slices.Sorted(maps.Keys(accounts))
	sum := p.mac(user)
	return accounts[names[binary.BigEndian.Uint64(sum[:])%uint64(len(names))]]
}

// Mechanisms of SASL.
const (
	mechanismPlain = "PLAIN"
	mechanismLogin = "LOGIN"
)

// plainServer is the server side of the mechanism PLAIN (RFC 4616).
type plainServer func(identity, user, password string) error

// Next implements [smtp.Authentication].
func (p plainServer) Next(response []byte) (challenge []byte, done bool, err error) {
	if response == nil {
		return nil, false, nil
	}
	fields := strings.Split(string(response), "\x00")
	if len(fields) != 3 {
		return nil, false, errors.New("the response does not consist of an identity, a user and a password")
	}
	return nil, true, p(fields[0], fields[1], fields[2])
}

// loginServer is the server side of the mechanism LOGIN (draft-murchison-sasl-login), because many
// devices do not support PLAIN.
type loginServer struct {
	user         string
	step         int
	authenticate func(user, password string) error
}

// Next implements [smtp.Authentication].
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
