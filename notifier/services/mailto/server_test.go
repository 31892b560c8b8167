package mailto

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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
	refuse     func(recipient string) error // the error is the answer
	maxSize    int64                        // of a mail, in bytes; 0: any
	maxMails   int                          // mails until the server cuts the connection; 0: any

	listener    net.Listener
	mu          sync.Mutex
	conns       map[net.Conn]bool
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
	if s.config != nil && s.implicit {
		l = tls.NewListener(l, s.config)
	}
	s.conns = map[net.Conn]bool{}
	s.open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.connections++
			s.conns[conn] = true
			x := &mailSession{s: s, conn: conn, text: textproto.NewConn(conn), number: s.connections, tls: s.implicit}
			s.mu.Unlock()
			s.open.Go(func() {
				x.serve()
				_ = x.text.Close()
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.conns, conn)
				s.quits++
			})
		}
	})
}

func (s *mailServer) stop() {
	_ = s.listener.Close()
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
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

// mailSession is a connection of a client.
type mailSession struct {
	s       *mailServer
	conn    net.Conn
	text    *textproto.Conn
	tls     bool
	number  int
	sent    int
	current mailReceived
	user    string
	mech    string
}

// serve answers commands until the client quits or the connection ends.
func (x *mailSession) serve() {
	answer := "220 mail.example.com ESMTP"
	for answer == "" || x.text.PrintfLine("%s", answer) == nil {
		line, err := x.text.ReadLine()
		if err != nil {
			return
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "EHLO":
			answer = "250-mail.example.com\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n"
			if x.s.config != nil && !x.tls {
				answer += "250-STARTTLS\r\n"
			}
			if len(x.s.mechanisms) > 0 {
				answer += "250-AUTH " + strings.Join(x.s.mechanisms, " ") + "\r\n"
			}
			if x.s.utf8 {
				answer += "250-SMTPUTF8\r\n"
			}
			answer += "250 SIZE"
			if x.s.maxSize > 0 {
				answer += fmt.Sprint(" ", x.s.maxSize)
			}
		case "STARTTLS":
			if x.text.PrintfLine("220 2.0.0 Ready to start TLS") != nil {
				return
			}
			x.conn, x.tls = tls.Server(x.conn, x.s.config), true
			x.text = textproto.NewConn(x.conn)
			answer = "" // TLS begins
		case "AUTH":
			answer = "235 2.0.0 Authentication succeeded"
			if err := x.authenticate(rest); err != nil {
				answer = err.Error()
			}
		case "MAIL":
			answer = x.mail(rest)
		case "RCPT":
			answer = "250 2.0.0 I'll make sure they get this"
			to := address(rest)
			if x.s.refuse != nil {
				if err := x.s.refuse(to); err != nil {
					answer = err.Error()
					continue
				}
			}
			x.current.to = append(x.current.to, to)
		case "DATA":
			if answer = "502 5.5.1 Missing RCPT TO command"; len(x.current.to) == 0 {
				continue
			}
			if x.text.PrintfLine("354 Go ahead. End your data with <CR><LF>.<CR><LF>") != nil {
				return
			}
			data, err := x.text.ReadDotBytes()
			if err != nil {
				return
			}
			answer = x.take(bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")))
		case "RSET", "NOOP":
			answer = "250 2.0.0 OK"
			if verb == "RSET" {
				x.current = mailReceived{}
			}
		case "QUIT":
			_ = x.text.PrintfLine("221 2.0.0 Bye")
			return
		default:
			answer = "500 5.5.2 Unknown command"
		}
	}
}

// address returns the address in the argument of MAIL and RCPT.
func address(rest string) string {
	_, rest, _ = strings.Cut(rest, "<")
	to, _, _ := strings.Cut(rest, ">")
	return to
}

func (x *mailSession) mail(rest string) (answer string) {
	if len(x.s.mechanisms) > 0 && x.user == "" {
		return "502 5.7.0 Please authenticate first"
	}
	x.current = mailReceived{from: address(rest), utf8: strings.Contains(rest, " SMTPUTF8")}
	return "250 2.0.0 Roger, accepting mail from <" + x.current.from + ">"
}

// take records a mail.
func (x *mailSession) take(data []byte) (answer string) {
	if x.s.maxSize > 0 && int64(len(data)) > x.s.maxSize {
		return "552 5.3.4 Maximum message size exceeded"
	}
	m := x.current
	m.tls, m.data, m.connection, m.user, m.mechanism = x.tls, data, x.number, x.user, x.mech
	x.current = mailReceived{}
	x.s.mu.Lock()
	x.s.mails = append(x.s.mails, m)
	x.s.mu.Unlock()
	if x.sent++; x.sent == x.s.maxMails {
		// The reply is sent before the connection is closed.
		time.AfterFunc(20*time.Millisecond, func() { _ = x.conn.Close() })
	}
	return "250 2.0.0 OK: queued"
}

// authenticate signs in with the arguments of AUTH. An error is the answer.
func (x *mailSession) authenticate(rest string) error {
	mech, first, has := strings.Cut(rest, " ")
	if !slices.Contains(x.s.mechanisms, mech) {
		return errors.New("504 5.7.4 Unsupported authentication mechanism")
	}
	// ask returns the response to a challenge, or what came with the command.
	ask := func(challenge string) (string, error) {
		response := first
		if !has {
			if err := x.text.PrintfLine("334 %s", base64.StdEncoding.EncodeToString([]byte(challenge))); err != nil {
				return "", err
			}
			var err error
			if response, err = x.text.ReadLine(); err != nil {
				return "", err
			}
		}
		has = false
		b, err := base64.StdEncoding.DecodeString(response)
		return string(b), err
	}
	var user string
	var ok bool
	switch mech {
	case "PLAIN":
		response, err := ask("")
		if err != nil {
			return err
		}
		fields := strings.Split(response, "\x00")
		ok = len(fields) == 3 && fields[2] == x.s.password
		user = fields[min(1, len(fields)-1)]
	case "LOGIN":
		var password string
		var err error
		if user, err = ask("Username:"); err == nil {
			password, err = ask("Password:")
		}
		if err != nil {
			return err
		}
		ok = password == x.s.password
	case "CRAM-MD5":
		const challenge = "<1896.697170952@mail.example.com>"
		response, err := ask(challenge)
		if err != nil {
			return err
		}
		var digest string
		user, digest, _ = strings.Cut(response, " ")
		sum := hmac.New(md5.New, []byte(x.s.password))
		sum.Write([]byte(challenge))
		ok = digest == hex.EncodeToString(sum.Sum(nil))
	default: // XOAUTH2
		response, err := ask("")
		if err != nil {
			return err
		}
		user, response, _ = strings.Cut(strings.TrimPrefix(response, "user="), "\x01")
		ok = response == "auth=Bearer "+x.s.password+"\x01\x01"
	}
	if !ok {
		return errors.New("535 5.7.8 Authentication failed")
	}
	x.user, x.mech = user, mech
	return nil
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
