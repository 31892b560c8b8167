package smtpd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// newServer returns a server that reads a command or a mail for ten seconds.
func newServer(deliver func(mail io.Reader, to []Recipient) (*Outcome, error)) *Server {
	return New(Config{
		Hostname: "test", MaxSize: 1 << 20, MaxRecipients: 10, MaxConnections: 10, Timeout: 10 * time.Second, Local: true,
		Log: zap.NewNop(),
	}, Gateway{
		Check:   func(Recipient) error { return nil },
		Deliver: deliver,
		Refused: func(Refusal) {},
	})
}

// start starts a server whose gateway answers with the first line of the mail.
// It returns a connection to the server, after the greeting.
func start(t *testing.T, deliver func(mail io.Reader, to []Recipient) (*Outcome, error)) *bufio.ReadWriter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(deliver)
	var serving sync.WaitGroup
	serving.Go(func() { s.Serve(l, false) })
	t.Cleanup(func() {
		s.Stop(new(Replaced), false)
		serving.Wait()
	})
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c))
}

// echo delivers each mail with its first line as the ID of a queued message.
func echo(mail io.Reader, _ []Recipient) (*Outcome, error) {
	text, err := io.ReadAll(mail)
	if err != nil {
		return nil, err
	}
	line, _, _ := strings.Cut(string(text), "\r\n")
	o := new(Outcome)
	o.Add([]notifier.Result{{Status: "queued"}}, line)
	return o, nil
}

// TestAnswersStayWithTheirMails checks that a mail that is given up ends the connection, so that
// its answer is never taken for the answer to a later one. Package smtp v0.25.1 can mix them up.
// The commands of the later mail are sent at once, so that the server reads them as early as
// possible.
func TestAnswersStayWithTheirMails(t *testing.T) {
	const later = "MAIL FROM:<Front Door@cam>\r\nRCPT TO:<k@x>\r\nBDAT 5 LAST\r\nlater"
	firsts := []string{"BDAT 0\r\n", "BDAT 5\r\nfirst", "BDAT 5\r\nfirstBDAT 3\r\nxyz"}
	if racetest.Enabled {
		firsts = firsts[1:] // package smtp has a data race there; see Data
	}
	for _, first := range firsts {
		for _, reset := range []string{"RSET\r\n", "EHLO again\r\n"} {
			for range 20 {
				c := start(t, echo)
				fmt.Fprintf(c, "EHLO x\r\nMAIL FROM:<UPS>\r\nRCPT TO:<k@x>\r\n%s%s%s", first, reset, later)
				_ = c.Flush()
				got, err := io.ReadAll(c)
				if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
					t.Fatalf("after %q and %q: no answer and no end: %q", first, reset, got)
				}
				for line := range strings.Lines(string(got)) {
					if strings.Contains(line, "451") || strings.Contains(line, "queued as") && !strings.Contains(line, "later") {
						t.Fatalf("after %q and %q: %q in %q", first, reset, line, got)
					}
				}
			}
		}
	}
}

// TestRefusedChunks checks that a mail that the gateway refuses before its end is
// answered once, at its end, and that the connection goes on.
func TestRefusedChunks(t *testing.T) {
	refused := errors.New("refused")
	c := start(t, func(mail io.Reader, to []Recipient) (*Outcome, error) {
		if to[0].Key == "bad" {
			return nil, refused
		}
		return echo(mail, to)
	})
	fmt.Fprint(c, "EHLO x\r\nMAIL FROM:<a@x>\r\nRCPT TO:<bad@x>\r\nBDAT 5\r\nfirstBDAT 4 LAST\r\nlast")
	fmt.Fprint(c, "MAIL FROM:<a@x>\r\nRCPT TO:<k@x>\r\nBDAT 5 LAST\r\nlaterQUIT\r\n")
	_ = c.Flush()
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	text := string(all)
	i, j := strings.Index(text, "\r\n451 4.3.0"), strings.Index(text, "\r\n250 2.0.0 queued as later")
	if i < 0 || j < i || strings.Count(text, "\r\n451") != 1 {
		t.Errorf("the answers are %q", text)
	}
}

// pipes is a listener whose clients are in this process, so that no time passes while a
// test waits for a timeout.
type pipes struct {
	clients chan net.Conn
	once    sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	c, ok := <-p.clients
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.clients) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// TestSlowCommands checks that a client that does not send a whole command within the timeout is
// disconnected then. After a part of a command, a client once got an answer to it, and the same
// time again.
func TestSlowCommands(t *testing.T) {
	for _, sent := range []string{
		"", "EHLO", "EHLO x\r\nMAIL FROM:<a@x>",
		"EHLO x\r\nMAIL FROM:<a@x>\r\nRCPT TO:<k@x>\r\nDATA\r\nSubject: x\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &pipes{clients: make(chan net.Conn)}
			s := newServer(echo)
			go s.Serve(l, false)
			defer s.Stop(new(Replaced), false)
			c, accepted := net.Pipe()
			l.clients <- accepted
			begun := time.Now()
			go func() { _, _ = io.WriteString(c, sent) }()
			answers, err := io.ReadAll(c)
			if took := time.Since(begun); err != nil || took != 10*time.Second || !strings.Contains(string(answers), "421 4.4.2") {
				t.Errorf("after %q: the connection ended after %v with %q, %v", sent, took, answers, err)
			}
		})
	}
}
