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

// signIn authenticates if the URL has a user and a password (RFC 4954).
func (m *service) signIn(mc *connection, c *notifier.Client, a account) error {
	if a.user == "" {
		return nil
	}
	_, encrypted := mc.client.TLSConnectionState()
	ok, offered := mc.client.Extension("AUTH")
	switch {
	case !ok && !encrypted:
		return notifier.Denied(errors.New("the mail server does not allow signing in without TLS; use mailtos:// or mode=starttls"))
	case !ok:
		return notifier.Denied(errors.New("the mail server does not support signing in; leave the password out of the URL"))
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
		return notifier.Denied(errors.New("the mail server offers no way to sign in that the URL allows; change the parameter auth"))
	}
	if mechanism != "CRAM-MD5" && !encrypted && !isLoopback(mc.conn.RemoteAddr()) {
		c.Warn("E-Mail: the password is sent unencrypted; use mailtos:// or mode=starttls")
	}
	masked := &maskingAuth{Auth: auth}
	err := mc.client.Auth(masked)
	if err == nil {
		return nil
	}
	err = stepError(stepSignIn, err)
	if refused, ok := errors.AsType[*replyError](err); ok {
		refused.text = masked.mask(refused.text)
	}
	return err
}

// mechanism returns the SASL mechanism to use, of those that the server offers,
// or "". Mechanisms that send the password itself come first if the server is
// verified, and last if it is not.
func (m *service) mechanism(offered []string, verified bool) string {
	wanted := []string{strings.ToUpper(m.auth)}
	if m.auth == "auto" {
		wanted = []string{"CRAM-MD5", "PLAIN", "LOGIN"}
		if verified {
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

// maskingAuth records what was sent to sign in, so that it can be masked in the
// server's replies, which may repeat it.
type maskingAuth struct {
	smtp.Auth
	secrets []string
}

// Start begins the sign-in.
func (s *maskingAuth) Start(info *smtp.ServerInfo) (string, []byte, error) {
	mechanism, response, err := s.Auth.Start(info)
	s.record(response)
	return mechanism, response, err
}

// Next answers a challenge.
func (s *maskingAuth) Next(challenge []byte, more bool) ([]byte, error) {
	response, err := s.Auth.Next(challenge, more)
	s.record(response)
	return response, err
}

func (s *maskingAuth) record(response []byte) {
	if len(response) > 0 {
		s.secrets = append(s.secrets, base64.StdEncoding.EncodeToString(response), string(response))
	}
}

func (s *maskingAuth) mask(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "…")
	}
	return text
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
