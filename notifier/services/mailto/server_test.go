package mailto

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"log"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// testCA is the only CA that the tests of this package trust.
var testCA = servicetest.NewTrustedCA()

// mailServer is an SMTP server that records the mails it gets.
type mailServer struct {
	address string // host:port

	config     *tls.Config // nil: no TLS
	implicit   bool        // TLS from the first byte
	mechanisms []string    // ways to sign in
	password   string      // of every user, and every token
	utf8       bool
	refuse     func(recipient string) error
	maxSize    int64 // of a mail, in bytes; 0: any
	maxMails   int   // mails until the server cuts the connection; 0: any

	server      *smtp.Server
	listener    net.Listener
	mu          sync.Mutex
	mails       []mailReceived
	connections int
	quits       int
	open        sync.WaitGroup
}

// mailReceived is a mail with its envelope and the state of the connection.
type mailReceived struct {
	connection int
	tls        bool
	user       string
	mechanism  string
	utf8       bool
	from       string
	to         []string
	data       []byte
}

// startMail starts a mail server with the given settings.
func startMail(t *testing.T, s *mailServer) *mailServer {
	t.Helper()
	s.start(t, "127.0.0.1:0")
	t.Cleanup(s.stop)
	return s
}

func (s *mailServer) start(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s.address, s.listener = l.Addr().String(), l
	s.server = smtp.NewServer(s)
	s.server.Domain, s.server.AllowInsecureAuth, s.server.EnableSMTPUTF8 = "mail.example.com", true, s.utf8
	s.server.MaxMessageBytes = s.maxSize
	s.server.ErrorLog = log.New(io.Discard, "", 0)
	if s.config != nil {
		if s.implicit {
			l = tls.NewListener(l, s.config)
		} else {
			s.server.TLSConfig = s.config
		}
	}
	s.open.Go(func() { _ = s.server.Serve(l) })
}

func (s *mailServer) stop() {
	_ = s.server.Close()
	_ = s.listener.Close() // in case Serve has not begun
	s.open.Wait()
}

// url returns a notification URL for the server.
func (s *mailServer) url(scheme, login, rest string) string {
	_, port, _ := net.SplitHostPort(s.address)
	u := scheme + "://" + login + "@example.com:" + port + rest
	if !strings.Contains(u, "?") {
		u += "?"
	}
	return u + "&smtp=127.0.0.1"
}

// got returns the mails since the last call.
func (s *mailServer) got() []mailReceived {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.mails
	s.mails = nil
	return out
}

func (s *mailServer) NewSession(c *smtp.Conn) (smtp.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections++
	return &mailSession{s: s, c: c, number: s.connections}, nil
}

type mailSession struct {
	s       *mailServer
	c       *smtp.Conn
	number  int
	sent    int
	current mailReceived
	user    string
	mech    string
}

func (x *mailSession) Reset() { x.current = mailReceived{} }

func (x *mailSession) Logout() error {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.quits++
	return nil
}

func (x *mailSession) Mail(from string, o *smtp.MailOptions) error {
	if len(x.s.mechanisms) > 0 && x.user == "" {
		return smtp.ErrAuthRequired
	}
	x.current = mailReceived{from: from, utf8: o.UTF8}
	return nil
}

func (x *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if x.s.refuse != nil {
		if err := x.s.refuse(to); err != nil {
			return err
		}
	}
	x.current.to = append(x.current.to, to)
	return nil
}

func (x *mailSession) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m := x.current
	_, m.tls = x.c.TLSConnectionState()
	m.data, m.connection, m.user, m.mechanism = data, x.number, x.user, x.mech
	x.s.mu.Lock()
	x.s.mails = append(x.s.mails, m)
	x.s.mu.Unlock()
	if x.sent++; x.sent == x.s.maxMails {
		// The reply is sent before the connection is closed.
		time.AfterFunc(20*time.Millisecond, func() { _ = x.c.Close() })
	}
	return nil
}

func (x *mailSession) AuthMechanisms() []string { return x.s.mechanisms }

func (x *mailSession) Auth(mech string) (sasl.Server, error) {
	if !slices.Contains(x.s.mechanisms, mech) {
		return nil, smtp.ErrAuthUnknownMechanism
	}
	check := func(user string, ok bool) error {
		if !ok {
			return smtp.ErrAuthFailed
		}
		x.user, x.mech = user, mech
		return nil
	}
	switch mech {
	case "PLAIN":
		return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password == x.s.password) }), nil
	case "LOGIN":
		return saslSteps(
			func([]byte) ([]byte, error) { return []byte("Username:"), nil },
			func(user []byte) ([]byte, error) { x.current.user = string(user); return []byte("Password:"), nil },
			func(password []byte) ([]byte, error) {
				return nil, check(x.current.user, string(password) == x.s.password)
			},
		), nil
	case "CRAM-MD5":
		challenge := []byte("<1896.697170952@mail.example.com>")
		return saslSteps(
			func([]byte) ([]byte, error) { return challenge, nil },
			func(answer []byte) ([]byte, error) {
				user, digest, _ := strings.Cut(string(answer), " ")
				sum := hmac.New(md5.New, []byte(x.s.password))
				sum.Write(challenge)
				return nil, check(user, digest == hex.EncodeToString(sum.Sum(nil)))
			},
		), nil
	}
	return saslSteps(func(answer []byte) ([]byte, error) { // XOAUTH2
		user, rest, _ := strings.Cut(strings.TrimPrefix(string(answer), "user="), "\x01")
		return nil, check(user, rest == "auth=Bearer "+x.s.password+"\x01\x01")
	}), nil
}

// saslServer runs the steps of a mechanism.
type saslServer struct {
	steps []func([]byte) ([]byte, error)
}

func saslSteps(steps ...func([]byte) ([]byte, error)) sasl.Server { return &saslServer{steps} }

func (s *saslServer) Next(response []byte) ([]byte, bool, error) {
	step := s.steps[0]
	s.steps = s.steps[1:]
	challenge, err := step(response)
	return challenge, len(s.steps) == 0, err
}

// mailTime is the timeout for a mail.
const mailTime = 10 * time.Second

// mustSend sends a message and returns the one mail that arrives.
func mustSend(t *testing.T, s *notifier.Sender, server *mailServer, address string, m *notifier.Message) mailReceived {
	t.Helper()
	if err := servicetest.Send(t, s, address, m, mailTime).Err; err != nil {
		t.Fatal(err)
	}
	got := server.got()
	if len(got) != 1 {
		t.Fatalf("%d mails have come", len(got))
	}
	return got[0]
}

// mailScript starts a server that sends the first line at once, each other one
// after it has read a line, and then nothing.
func mailScript(t *testing.T, lines ...string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) || err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
				for _, line := range lines {
					if _, err := io.WriteString(conn, line); err != nil {
						return
					}
					if _, err := readLine(conn); err != nil {
						return
					}
				}
				_, _ = io.Copy(io.Discard, conn)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return l.Addr().String()
}

func readLine(r io.Reader) (string, error) {
	var line bytes.Buffer
	for b := make([]byte, 1); ; {
		if _, err := r.Read(b); err != nil {
			return "", err
		}
		if line.WriteByte(b[0]); b[0] == '\n' {
			return line.String(), nil
		}
	}
}
