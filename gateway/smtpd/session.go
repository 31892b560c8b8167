package smtpd

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/internal/smtp"
)

// session is the SMTP session of a client.
type session struct {
	server *Server
	conn   *conn

	mu        sync.Mutex // package smtp may call Reset during Data
	account   *Account
	failures  int // failed authentications
	from      string
	to        []Recipient
	receiving bool // Data reads a mail, or has not read all of it
}

// newSession begins a session.
func (s *Server) newSession(c *smtp.Conn) (smtp.Session, error) {
	return &session{server: s, conn: connOf(c)}, nil
}

// connOf returns the connection below TLS.
func connOf(c *smtp.Conn) *conn {
	raw := c.Conn()
	if t, ok := raw.(*tls.Conn); ok {
		raw = t.NetConn()
	}
	return raw.(*conn)
}

// AuthMechanisms implements smtp.Session.
func (m *session) AuthMechanisms() []string {
	if len(m.server.config.Accounts) == 0 {
		return nil
	}
	return []string{mechanismPlain, mechanismLogin}
}

// Auth implements smtp.Session. Package smtp calls it only over TLS.
func (m *session) Auth(mechanism string) (smtp.Authentication, error) {
	if !slices.Contains(m.AuthMechanisms(), mechanism) {
		return nil, smtp.ErrAuthUnknownMechanism
	}
	if mechanism == mechanismLogin {
		return &loginServer{authenticate: m.logIn}, nil
	}
	return plainServer(func(identity, user, password string) error {
		if identity != "" && identity != user {
			return m.refuse(http.StatusForbidden, errPassword)
		}
		return m.logIn(user, password)
	}), nil
}

// maxFailures is the maximum number of failed authentications in one connection.
const maxFailures = 3

// logIn checks a password and sets the account of the session. It ends the connection after
// maxFailures wrong passwords, or if too many passwords are being checked.
func (m *session) logIn(user, password string) error {
	account, refused := m.server.config.Passwords.check(m.server.config.Accounts, api.ClientNetwork(m.conn.client), user, password)
	m.mu.Lock()
	if refused == nil {
		m.account = account
		m.mu.Unlock()
		return nil
	}
	m.failures++
	last := m.failures >= maxFailures
	m.mu.Unlock()
	if last {
		m.conn.endAt(time.Now(), true)
	}
	if refused == errChecks {
		return m.refuse(http.StatusServiceUnavailable, refused)
	}
	return m.refuse(http.StatusForbidden, refused)
}

// Mail implements smtp.Session.
func (m *session) Mail(from string) error {
	m.mu.Lock()
	account := m.account
	m.from, m.to = from, nil
	m.mu.Unlock()
	if m.conn.isBroken() {
		return errEnded
	}
	if account == nil && !m.conn.trusted {
		return m.refuse(http.StatusForbidden, errAccount)
	}
	return nil
}

// Rcpt implements smtp.Session.
func (m *session) Rcpt(address string) error {
	r, refused := parseRecipient(address)
	if refused != nil {
		return m.refuse(http.StatusNotFound, refused)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.account != nil && !m.account.mayUse(r.Key) {
		return m.refuse(http.StatusForbidden, m.account.forbidden(r.Key))
	}
	r.Named = m.account != nil && slices.Contains(m.account.Keys, r.Key)
	if err := m.server.gateway.Check(r); err != nil {
		switch {
		case errors.Is(err, ErrNoKey):
			return m.refuse(http.StatusNotFound, errKey)
		case errors.Is(err, ErrUnnamed):
			return m.refuse(http.StatusForbidden, errUnnamed)
		}
		e, ok := api.ErrorOf(err)
		if !ok {
			m.server.config.Log.Error("recipient not accepted", zap.Error(err))
			return m.server.refuse(Refusal{Client: m.conn.client, Key: r.Key, Status: http.StatusInternalServerError}, errInternal)
		}
		return m.server.refuse(Refusal{Client: m.conn.client, Key: r.Key, Status: e.Status, Err: err}, answerOf(e))
	}
	m.to = append(m.to, r)
	return nil
}

// Reset implements smtp.Session. If a mail is incomplete, it closes the
// connection; see Data.
func (m *session) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.from, m.to = "", nil
	if m.receiving {
		m.conn.giveUp()
	}
}

// Data implements smtp.Session. It returns the answer to the mail when every destination has
// answered, or the queue has the message.
//
// A client can end a mail in chunks (BDAT, RFC 3030) with RSET. Package smtp v0.25.1 then answers,
// and may use a later return value of Data as the answer to the next mail. So Data reads every mail
// to its end, even a refused one. If the mail has no end, Data closes the connection before it
// returns, so that its return value does not reach the client.
func (m *session) Data(r io.Reader) error {
	m.mu.Lock()
	from, to := m.from, m.to
	m.receiving = true
	m.mu.Unlock()
	begun := time.Now()
	m.conn.beginMail(m.server.config.Timeout)
	counted := &countingReader{r: r}
	answer := m.receive(counted, to)
	_, _ = io.Copy(io.Discard, counted)
	if errors.Is(counted.err, smtp.ErrDataReset) {
		m.conn.giveUp()
		return answer
	}
	m.mu.Lock()
	m.receiving = false
	m.mu.Unlock()
	m.conn.endMail()
	keys := make([]string, len(to))
	for i, r := range to {
		keys[i] = r.Key
	}
	m.server.config.Log.Info("mail", zap.Int("code", answer.Code), zap.String("answer", answer.Message),
		zap.Stringer("client_ip", m.conn.client),
		zap.String("from", oneLine(from)), zap.Strings("keys", keys), zap.Int64("size", counted.n), zap.Duration("duration", time.Since(begun)))
	return answer
}

// countingReader counts the bytes read from r and keeps an error other than io.EOF.
type countingReader struct {
	r   io.Reader
	n   int64
	err error
}

func (c *countingReader) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// receive reads a mail, sends it and returns the answer. to is empty if the mail was reset before
// it was read.
func (m *session) receive(r *countingReader, to []Recipient) *smtp.SMTPError {
	if len(to) == 0 {
		return errIncomplete
	}
	outcome, err := m.server.gateway.Deliver(r, to)
	if err != nil {
		return m.refuseMail(to[0].Key, err, r.err)
	}
	return outcome.answer()
}

// refuseMail records and returns the answer for a mail that was not sent because of err. readErr is
// the error of reading the mail, or nil.
func (m *session) refuseMail(key string, err, readErr error) *smtp.SMTPError {
	refuse := func(status int, err error, answer *smtp.SMTPError) *smtp.SMTPError {
		return m.server.refuse(Refusal{Client: m.conn.client, Key: key, Status: status, Err: err, Mail: true}, answer)
	}
	if e, ok := errors.AsType[*smtp.SMTPError](err); ok { // it is too large
		return refuse(http.StatusRequestEntityTooLarge, nil, e)
	}
	if e, ok := api.ErrorOf(err); ok && readErr == nil {
		if e.Fault != nil {
			m.server.config.Log.Error("mail not accepted", zap.Error(e.Fault))
		}
		return refuse(e.Status, err, answerOf(e))
	}
	switch {
	case errors.Is(readErr, smtp.ErrTooLongLine):
		return refuse(http.StatusBadRequest, nil, errLine)
	case readErr != nil:
		return refuse(http.StatusRequestTimeout, nil, errIncomplete)
	}
	m.server.config.Log.Error("mail not accepted", zap.Error(err))
	return refuse(http.StatusInternalServerError, nil, errInternal)
}

// refuse records the refusal of a command and returns answer.
func (m *session) refuse(status int, answer *smtp.SMTPError) *smtp.SMTPError {
	return m.server.refuse(Refusal{Client: m.conn.client, Status: status}, answer)
}

// refuse records a refusal with its answer, and returns the answer.
func (s *Server) refuse(r Refusal, answer *smtp.SMTPError) *smtp.SMTPError {
	r.Code, r.Text = answer.Code, answer.Message
	s.gateway.Refused(r)
	return answer
}
