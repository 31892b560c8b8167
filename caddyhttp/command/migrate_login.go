package command

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// login is the user and the password that the site asks for.
type login struct {
	user, password, realm string
	generated             bool // the password is a new one, which the user must be told
}

// defaultUser is the user if the Apprise API has none. Caddy needs one.
const defaultUser = "apprise"

// setLogin sets the login of an Apprise API that requires one. Without the
// administrator's password, only the logins of its keys can be used. Their passwords
// are not known, so the site gets a new one.
func (m *migration) setLogin() error {
	if !isOn(m.env["APPRISE_AUTH_REQUIRED"]) {
		return nil
	}
	l := &login{user: m.env["APPRISE_USER"], password: m.env["APPRISE_PASSWORD"], realm: m.env["APPRISE_BASIC_AUTH_REALM"]}
	if l.password == "" {
		l.user, l.password, l.generated = "", rand.Text(), true
	}
	switch {
	case l.generated:
	case l.user == "":
		m.note("APPRISE_AUTH_REQUIRED: the site asks for the same password, and for the user %s; clients that send no user must send it", defaultUser)
	default:
		m.note("APPRISE_AUTH_REQUIRED: the site asks for the same user and password, also for /status")
	}
	return m.protect(l, "APPRISE_USER, APPRISE_PASSWORD and APPRISE_BASIC_AUTH_REALM")
}

// setServerLogin sets the login of a server that is asked with one.
func (m *migration) setServerLogin(address *url.URL) error {
	password, _ := address.User.Password()
	if m.login != nil || password == "" {
		return nil
	}
	m.note("the address has a login, so the site asks for the same")
	return m.protect(&login{user: address.User.Username(), password: password}, "the login of the address")
}

// protect sets the login of the site.
func (m *migration) protect(l *login, source string) error {
	const maxPassword = 72 // bytes that bcrypt reads
	l.user = cmp.Or(l.user, defaultUser)
	if strings.ContainsAny(l.user+l.realm, "{}\\`\"\n\r") {
		return fmt.Errorf("%s: basic_auth cannot have braces, quotes and backslashes in the user or the realm; choose others", source)
	}
	if len(l.password) > maxPassword {
		return fmt.Errorf("%s: basic_auth cannot check a password of more than %d bytes; choose a shorter one", source, maxPassword)
	}
	m.login = l
	return nil
}

// passwordFile is the file with a new password.
const passwordFile = "password"

// passwordCost makes a check of the password take about a quarter of a second. Caddy
// remembers a password that was right.
const passwordCost = 12

// hashPassword returns the hash of a password for basic_auth.
func hashPassword(password string) (string, error) {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), passwordCost)
	if err != nil {
		return "", fmt.Errorf("hashing the password: %w", err)
	}
	return string(hash), nil
}

// writeLogin writes the login of the site.
func (m *migration) writeLogin(w *caddyfileWriter) error {
	hash, err := hashPassword(m.login.password)
	if err != nil {
		return err
	}
	directive := "basic_auth"
	if m.login.realm != "" {
		directive += " bcrypt " + quote(m.login.realm)
	}
	w.open(directive)
	w.line(quote(m.login.user) + " " + hash)
	w.close()
	return nil
}

// quote returns a token of a Caddyfile, in quotes if it needs them.
func quote(token string) string {
	if strings.ContainsAny(token, " \t#") {
		return `"` + token + `"`
	}
	return token
}

// checkLock lists the login of a key. path is that of the key's file without the
// extension.
func (m *migration) checkLock(key, path string) {
	lock := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
	if m.login == nil {
		return // an Apprise API without APPRISE_AUTH_REQUIRED ignores it
	}
	if _, err := os.Lstat(lock); !errors.Is(err, os.ErrNotExist) {
		m.skip("%s: its own login, because the folder has only a hash of it; add a user to basic_auth, who can use every key, or replace basic_auth by a token for each key", keyLabel(key))
	}
}
