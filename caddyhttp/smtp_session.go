package caddyhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// mailSession is the SMTP session of a client.
type mailSession struct {
	server *mailServer
	conn   *mailConn

	mu       sync.Mutex // package smtp can call Reset during Data
	account  *mailAccount
	failures int // failed authentications
	from     string
	to       []mailRecipient
	chunked  bool // a mail sent in chunks (BDAT) is under way
}

// newSession begins a session. It implements smtp.Backend.
func (s *mailServer) newSession(c *smtp.Conn) (smtp.Session, error) {
	conn := c.Conn()
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	return &mailSession{server: s, conn: conn.(*mailConn)}, nil
}

// AuthMechanisms implements smtp.AuthSession.
func (m *mailSession) AuthMechanisms() []string {
	if len(m.server.settings.accounts) == 0 {
		return nil
	}
	return []string{sasl.Plain, sasl.Login}
}

// Auth implements smtp.AuthSession. Package smtp calls it only over TLS.
func (m *mailSession) Auth(mechanism string) (sasl.Server, error) {
	if !slices.Contains(m.AuthMechanisms(), mechanism) {
		return nil, smtp.ErrAuthUnknownMechanism
	}
	if mechanism == sasl.Login {
		return &loginServer{authenticate: m.logIn}, nil
	}
	return sasl.NewPlainServer(func(identity, user, password string) error {
		if identity != "" && identity != user {
			return m.refuse("", errMailPassword, refusalForbidden)
		}
		return m.logIn(user, password)
	}), nil
}

// maxMailFailures is the maximum number of failed authentications in one
// connection.
const maxMailFailures = 3

// logIn checks a password and sets the account of the session. It ends the
// connection after maxMailFailures wrong passwords.
func (m *mailSession) logIn(user, password string) error {
	account := m.server.settings.accounts[user]
	if m.server.passwords.check(account, password) {
		m.mu.Lock()
		m.account = account
		m.mu.Unlock()
		return nil
	}
	m.mu.Lock()
	m.failures++
	last := m.failures >= maxMailFailures
	m.mu.Unlock()
	if last {
		m.conn.endAt(time.Now(), true)
	}
	return m.refuse("", errMailPassword, refusalForbidden)
}

// Mail implements smtp.Session.
func (m *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	m.mu.Lock()
	account := m.account
	m.from, m.to = from, nil
	m.mu.Unlock()
	if account == nil && !m.conn.trusted {
		return m.refuse("", errMailAccount, refusalForbidden)
	}
	return nil
}

// Rcpt implements smtp.Session.
func (m *mailSession) Rcpt(address string, _ *smtp.RcptOptions) error {
	r, refused := parseMailRecipient(address)
	if refused != nil {
		return m.refuse("", refused, refusalUnknownKey)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.account != nil && !m.account.mayUse(r.key) {
		return m.refuse("", errMailForbidden, refusalForbidden)
	}
	if _, _, err := m.server.find(r); err != nil {
		e, ok := errors.AsType[*api.Error](err)
		switch {
		case errors.Is(err, errNoKey):
			return m.refuse("", errMailKey, refusalUnknownKey)
		case !ok:
			m.server.log.Error("recipient not accepted", zap.Error(err))
			return m.refuse(r.key, errMailInternal, refusalError)
		}
		return m.refuse(r.key, answerOf(e), refusalReason(e.Status, err))
	}
	m.to = append(m.to, r)
	return nil
}

// find returns the key of a recipient and the key's targets that have the
// recipient's tags. The error is an [*api.Error] if it is for the client.
func (s *mailServer) find(r mailRecipient) (*key, []notifier.Target, error) {
	k, err := s.app.resolved.key(context.Background(), r.key)
	if err != nil {
		return nil, nil, err
	}
	if err := k.checkSource(sourceSMTP); err != nil {
		return nil, nil, err
	}
	targets, err := k.choose(r.tags)
	if err != nil {
		return nil, nil, api.Errorf(http.StatusFailedDependency, "%w", err)
	}
	return k, targets, nil
}

// Reset implements smtp.Session. It closes the connection if a mail sent in chunks
// is incomplete: package smtp v0.25.1 could take the error of that mail for the
// answer to the next one.
func (m *mailSession) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.from, m.to = "", nil
	if m.chunked {
		_ = m.conn.Close()
	}
}

// Logout implements smtp.Session.
func (m *mailSession) Logout() error { return nil }

// Data implements smtp.Session. It returns the answer to the mail when every
// destination has answered, or the queue has the message.
func (m *mailSession) Data(r io.Reader) error {
	_, chunked := r.(*io.PipeReader)
	m.mu.Lock()
	from, to := m.from, m.to
	m.chunked = chunked
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.chunked = false
	}()
	if len(to) == 0 { // reset before its first chunk was read
		_ = m.conn.Close()
		return smtp.ErrDataReset
	}
	begun := time.Now()
	m.conn.beginMail(m.server.settings.timeout)
	counted := &countingReader{r: r}
	answer, err := m.receive(counted, to)
	if err != nil {
		answer = m.refuseMail(to[0].key, err, counted.err)
	}
	m.conn.endMail()
	keys := make([]string, len(to))
	for i, r := range to {
		keys[i] = r.key
	}
	m.server.log.Info("mail", zap.Int("code", answer.Code), zap.String("answer", answer.Message), zap.Stringer("client_ip", m.conn.client),
		zap.String("from", mailText(from)), zap.Strings("keys", keys), zap.Int64("size", counted.n), zap.Duration("duration", time.Since(begun)))
	return answer
}

// countingReader counts the bytes read from r and keeps an error other than io.EOF.
type countingReader struct {
	r   io.Reader
	n   int64
	err error
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// receive reads a mail and sends it. It returns the answer, or an error if nothing
// was sent.
func (m *mailSession) receive(r io.Reader, to []mailRecipient) (*smtp.SMTPError, error) {
	app := m.server.app
	e, err := app.shared.inFlight.enter(app.resolved.inFlight)
	if err != nil {
		return nil, err
	}
	defer e.leave()
	limits := app.resolved.limits
	limits.Memory = app.shared.memory.Allocation(app.resolved.memory, false)
	q, hops, err := api.ReadMail(r, limits)
	if err != nil {
		return nil, err
	}
	return m.send(q, hops, to)
}

// refuseMail records and returns the answer for a mail that was not sent because of
// err. readErr is the error of reading the mail, or nil.
func (m *mailSession) refuseMail(key string, err, readErr error) *smtp.SMTPError {
	metrics := m.server.app.shared.metrics
	if e, ok := errors.AsType[*smtp.SMTPError](err); ok { // it is too large
		metrics.notSent(http.StatusRequestEntityTooLarge)
		return m.refuse(key, e, refusalTooLarge)
	}
	if e, ok := errors.AsType[*api.Error](err); ok && readErr == nil {
		if e.Fault != nil {
			m.server.log.Error("mail not accepted", zap.Error(e.Fault))
		}
		metrics.notSent(e.Status)
		return m.refuse(key, answerOf(e), refusalReason(e.Status, err))
	}
	switch {
	case errors.Is(readErr, smtp.ErrTooLongLine):
		metrics.notSent(http.StatusBadRequest)
		return m.refuse(key, errMailLine, refusalBadRequest)
	case readErr != nil:
		metrics.notSent(http.StatusRequestTimeout)
		return m.refuse(key, errMailIncomplete, refusalTimeout)
	}
	metrics.notSent(http.StatusInternalServerError)
	m.server.log.Error("mail not accepted", zap.Error(err))
	return m.refuse(key, errMailInternal, refusalError)
}

// refuse records a refusal and returns answer.
func (m *mailSession) refuse(key string, answer *smtp.SMTPError, reason string) *smtp.SMTPError {
	m.server.refuse(m.conn.client, key, answer, reason)
	return answer
}

// refuse records that a client got the answer and nothing was sent. key is "" if
// the key may not exist.
func (s *mailServer) refuse(client netip.Addr, key string, answer *smtp.SMTPError, reason string) {
	f := refusal{
		refusalID: refusalID{source: sourceSMTP, key: key, reason: reason},
		time:      time.Now(), status: answer.Code, text: answer.Message,
	}
	if client.IsValid() {
		f.client = client.String()
	}
	s.app.shared.recordRefusal(f, &s.refusals, s.log)
}

// mailReport is the outcome of a mail for one recipient.
type mailReport struct {
	report *notifier.Report
	id     string // ID of the message in the queue; "" without a queue
	err    error
}

// send sends a mail to all recipients at the same time and returns the answer. It
// closes q when the last delivery ends.
func (m *mailSession) send(q *api.Request, hops int, to []mailRecipient) (*smtp.SMTPError, error) {
	app := m.server.app
	var users atomic.Int32
	users.Store(1)
	release := func() {
		if users.Add(-1) == 0 {
			q.Close()
		}
	}
	defer release()
	message, err := q.Message()
	if err != nil {
		return nil, err
	}
	if message.Attachments, err = q.Attachments(context.Background(), app.shared.sender.Pool()); err != nil {
		return nil, err
	}
	message.Hops, message.Identity, message.Time = hops, app.resolved.identity, time.Now()
	var wg sync.WaitGroup
	reports := make([]mailReport, len(to))
	for i, r := range to {
		users.Add(1)
		wg.Go(func() { reports[i] = m.sendTo(r, *message, q.Memory(), release) })
	}
	wg.Wait()
	var o mailOutcome
	var refused *api.Error
	for i := range reports {
		if err := reports[i].err; err == nil {
			o.add(&reports[i])
		} else if e, ok := errors.AsType[*api.Error](err); !ok {
			return nil, err
		} else if refused == nil || isTemporary(e) {
			refused = e
		}
	}
	// A temporary failure of one recipient makes the client send the mail again to
	// all of them.
	if refused != nil && (isTemporary(refused) || !o.temporary) {
		return nil, refused
	}
	return o.answer(), nil
}

// isTemporary reports whether the answer for e asks the client to try again.
func isTemporary(e *api.Error) bool { return answerOf(e).Temporary() }

// sendTo sends a mail to one recipient. It calls release when the last delivery
// ends.
func (m *mailSession) sendTo(r mailRecipient, message notifier.Message, memory *notifier.Allocation, release func()) mailReport {
	app := m.server.app
	message.Type = r.typ
	k, targets, err := m.server.find(r)
	to := &api.Selection{Targets: targets}
	if err == nil {
		to.Limits = k.limits
		err = to.Check(&message)
	}
	if err != nil {
		release()
		return mailReport{err: err}
	}
	d := delivery{
		message: &message, to: to, settings: app.resolved, logger: k.log, source: sourceSMTP, key: r.key,
		memory: memory, release: release,
	}
	report, id, err := app.sendOrQueue(context.Background(), k, d)
	return mailReport{report, id, err}
}
