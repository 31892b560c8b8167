package mailto

import (
	"encoding/base64"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/wneessen/go-mail/smtp"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// signIn authenticates where the URL has a user and a password (RFC 4954).
func (m *service) signIn(mc *connection, c *notifier.Client) error {
	a := m.account
	if a.user == "" {
		return nil
	}
	_, encrypted := mc.client.TLSConnectionState()
	ok, offered := mc.client.Extension("AUTH")
	switch {
	case !ok && !encrypted:
		return errors.New("the mail server lets nobody sign in on a connection without TLS; use mailtos:// or mode=starttls")
	case !ok:
		return errors.New("the mail server lets nobody sign in; leave the password out of the URL")
	}
	mechanism := m.mechanism(strings.Fields(strings.ToUpper(offered)), encrypted && c.Verify())
	var auth smtp.Auth
	switch mechanism {
	case "PLAIN":
		auth = smtp.PlainAuth("", a.user, a.password, a.host, true)
	case "LOGIN":
		auth = smtp.LoginAuth(a.user, a.password, a.host, true)
	case "CRAM-MD5":
		auth = smtp.CRAMMD5Auth(a.user, a.password)
	case "XOAUTH2":
		auth = smtp.XOAuth2Auth(a.user, a.password)
	default:
		return errors.New("the mail server offers none of the ways to sign in that the URL allows; see the parameter auth")
	}
	if mechanism != "CRAM-MD5" && !encrypted && !isLoopback(mc.conn.RemoteAddr()) {
		c.Warn("E-Mail: the password crosses the network unencrypted; use mailtos:// or mode=starttls")
	}
	said := &maskingAuth{Auth: auth}
	err := mc.client.Auth(said)
	if err == nil {
		return nil
	}
	err = stepError("signing in", err)
	if refused, ok := errors.AsType[*replyError](err); ok {
		refused.text = said.mask(refused.text)
	}
	return err
}

// mechanism is the way to sign in, among those that the server offers. The
// password itself is given first to a server that is known for certain, and
// last to any other.
func (m *service) mechanism(offered []string, certain bool) string {
	wanted := []string{strings.ToUpper(m.auth)}
	if m.auth == "auto" {
		wanted = []string{"CRAM-MD5", "PLAIN", "LOGIN"}
		if certain {
			wanted = []string{"PLAIN", "LOGIN", "CRAM-MD5"}
		}
	}
	for _, w := range wanted {
		if slices.Contains(offered, w) {
			return w
		}
	}
	return ""
}

// maskingAuth remembers what was said to sign in, which a server may repeat
// when it refuses.
type maskingAuth struct {
	smtp.Auth
	said []string
}

func (s *maskingAuth) Start(info *smtp.ServerInfo) (string, []byte, error) {
	mechanism, response, err := s.Auth.Start(info)
	s.note(response)
	return mechanism, response, err
}

func (s *maskingAuth) Next(challenge []byte, more bool) ([]byte, error) {
	response, err := s.Auth.Next(challenge, more)
	s.note(response)
	return response, err
}

func (s *maskingAuth) note(response []byte) {
	if len(response) > 0 {
		s.said = append(s.said, base64.StdEncoding.EncodeToString(response), string(response))
	}
}

func (s *maskingAuth) mask(text string) string {
	for _, said := range s.said {
		text = strings.ReplaceAll(text, said, "…")
	}
	return text
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
