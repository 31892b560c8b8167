package smtpd

import (
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/smtp"
)

// TestPasswordChecks checks that the guesses of one address delay a login from another
// one by two checks, not by all of the guesses. 45 guesses once took a minute or two.
func TestPasswordChecks(t *testing.T) {
	guesser, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	p := NewPasswords()
	p.slots = make(chan struct{}, 1)
	began, end := make(chan string), make(chan struct{})
	accounts := map[string]*Account{"nas": {Hash: "h", Matches: func(password string) bool {
		began <- password
		<-end
		return password == "right"
	}}}
	var running sync.WaitGroup
	results := make(chan *smtp.SMTPError, 10)
	begin := func(from netip.Addr, password string) {
		running.Go(func() {
			_, refused := p.check(accounts, from, "nas", password)
			results <- refused
		})
	}
	begin(guesser, "guess")
	if got := <-began; got != "guess" {
		t.Fatalf("the check of %q runs", got)
	}
	begin(guesser, "guess")
	waiting := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.checks[guesser]
	}
	for waiting() < maxChecks {
		runtime.Gosched()
	}
	for range 45 {
		if _, refused := p.check(accounts, guesser, "nas", "guess"); refused != errChecks {
			t.Fatalf("one guess more: %v", refused)
		}
	}
	begin(other, "right")
	right := 0
	for n := range 3 {
		end <- struct{}{} // ends the check that runs
		if n < 2 && <-began == "right" {
			right++
		}
	}
	if right != 1 {
		t.Error("the login from another address is not checked")
	}
	running.Wait()
	close(results)
	outcomes := map[*smtp.SMTPError]int{}
	for refused := range results {
		outcomes[refused]++
	}
	if outcomes[nil] != 1 || outcomes[errPassword] != 2 || len(p.checks) != 0 {
		t.Errorf("%v; %d addresses are left", outcomes, len(p.checks))
	}
}

// TestPasswordsAreRemembered checks that a correct password is checked once for the hash of an
// account, even if a reload makes new accounts, and that a wrong one is checked each time.
func TestPasswordsAreRemembered(t *testing.T) {
	from := netip.MustParseAddr("192.0.2.1")
	p, checked := NewPasswords(), 0
	configuration := func(hash, right string) map[string]*Account {
		account := func(hash string) *Account {
			return &Account{Hash: hash, Matches: func(password string) bool { checked++; return password == right }}
		}
		return map[string]*Account{"nas": account(hash), "camera": account("other")}
	}
	for i, tt := range []struct {
		accounts       map[string]*Account
		user, password string
		ok, checked    bool
	}{
		{configuration("h1", "a"), "nas", "b", false, true},
		{configuration("h1", "a"), "nas", "b", false, true},
		{configuration("h1", "a"), "nas", "a", true, true},
		{configuration("h1", "a"), "nas", "a", true, false},
		{configuration("h1", "a"), "camera", "a", true, true},
		{configuration("h2", "b"), "nas", "a", false, true}, // the password has changed
		{configuration("h2", "b"), "nas", "b", true, true},
		{configuration("h1", "a"), "nobody", "a", false, true},
		{configuration("h1", "a"), "nobody", "a", false, true},
	} {
		checked = 0
		account, refused := p.check(tt.accounts, from, tt.user, tt.password)
		if (refused == nil) != tt.ok || tt.ok && account != tt.accounts[tt.user] || (checked == 1) != tt.checked {
			t.Errorf("login %d: %v, checked %d times", i, refused, checked)
		}
	}
	for i := range 2 * maxRemembered {
		password := fmt.Sprint(i)
		if _, refused := p.check(map[string]*Account{"nas": {Hash: password, Matches: func(string) bool { return true }}}, from, "nas",
			password); refused != nil {
			t.Fatal(refused)
		}
	}
	if n := len(p.remembered); n > maxRemembered {
		t.Errorf("%d logins are remembered", n)
	}
}

// TestUnknownUsers checks that the password of an unknown user is compared with the hash of an
// account, always the same one for a name, so that the time does not reveal which names exist. Once
// it was always a bcrypt hash, even if all accounts had argon2id.
func TestUnknownUsers(t *testing.T) {
	from := netip.MustParseAddr("192.0.2.1")
	p, compared := NewPasswords(), ""
	accounts := map[string]*Account{}
	for _, name := range []string{"a", "b", "c"} {
		accounts[name] = &Account{Hash: name, Matches: func(string) bool { compared += name; return true }}
	}
	all := map[string]bool{}
	for i := range 100 {
		compared = ""
		for range 2 {
			if account, refused := p.check(accounts, from, fmt.Sprint("nobody", i), "x"); account != nil || refused != errPassword {
				t.Fatalf("an unknown user: %v, %v", account, refused)
			}
		}
		if len(compared) != 2 || compared[0] != compared[1] {
			t.Fatalf("compared with %q", compared)
		}
		all[compared] = true
	}
	if len(all) != len(accounts) {
		t.Errorf("unknown users are compared with %d of %d hashes", len(all), len(accounts))
	}
}
