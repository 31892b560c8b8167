package migrate

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/folder"
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
func (s *settings) setLogin() error {
	if !isOn(s.env["APPRISE_AUTH_REQUIRED"]) {
		return nil
	}
	l := &login{user: s.env["APPRISE_USER"], password: s.env["APPRISE_PASSWORD"], realm: s.env["APPRISE_BASIC_AUTH_REALM"]}
	if l.password == "" {
		l.user, l.password, l.generated = "", rand.Text(), true
	}
	switch {
	case l.generated:
	case l.user == "":
		s.report.note("APPRISE_AUTH_REQUIRED: the site asks for the same password, "+
			"and for the user %s; clients that send no user must send it", defaultUser)
	default:
		s.report.note("APPRISE_AUTH_REQUIRED: the site asks for the same user and password, also for /status")
	}
	return s.protect(l, "APPRISE_USER, APPRISE_PASSWORD and APPRISE_BASIC_AUTH_REALM")
}

// setServerLogin sets the login of a server that is asked with one.
func (s *settings) setServerLogin(address *url.URL) error {
	password, _ := address.User.Password()
	if s.login != nil || password == "" {
		return nil
	}
	s.report.note("the address has a login, so the site asks for the same")
	return s.protect(&login{user: address.User.Username(), password: password}, "the login of the address")
}

// protect sets the login of the site.
func (s *settings) protect(l *login, source string) error {
	const maxPassword = 72 // bytes that bcrypt reads
	l.user = cmp.Or(l.user, defaultUser)
	if strings.ContainsAny(l.user+l.realm, "{}\\`\"\n\r") {
		return fmt.Errorf("%s: basic_auth cannot have braces, quotes and backslashes in the user or the realm; choose others", source)
	}
	if len(l.password) > maxPassword {
		return fmt.Errorf("%s: basic_auth cannot check a password of more than %d bytes; choose a shorter one", source, maxPassword)
	}
	s.login = l
	return nil
}

// write writes the login of the site.
func (l *login) write(w *folder.CaddyfileWriter) error {
	hash, err := folder.HashPassword(l.password)
	if err != nil {
		return err
	}
	directive := "basic_auth"
	if l.realm != "" {
		directive += " bcrypt " + quote(l.realm)
	}
	w.Open(directive)
	w.Line(quote(l.user) + " " + hash)
	w.Close()
	return nil
}

// quote returns a token of a Caddyfile, in quotes if it needs them.
func quote(token string) string {
	if strings.ContainsAny(token, " \t#") {
		return `"` + token + `"`
	}
	return token
}
