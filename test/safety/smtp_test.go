package safety

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// mailClient is a client of the mail server that can send any bytes.
type mailClient struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

// dialMail connects to a mail server and returns its greeting.
func dialMail(t *testing.T, address string) (c *mailClient, greeting string) {
	t.Helper()
	var conn net.Conn
	eventually(t, "the mail server listens", func() (ok bool) {
		var err error
		conn, err = net.Dial("tcp", address)
		return err == nil
	})
	t.Cleanup(func() { _ = conn.Close() })
	c = &mailClient{t, conn, bufio.NewReader(conn)}
	return c, c.read()
}

// read returns the next answer, or "" if the connection is closed.
func (c *mailClient) read() string {
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute)) // no answer takes that long
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return ""
		}
		if len(line) > 3 && line[3] == ' ' {
			return strings.TrimSpace(line)
		}
	}
}

// send sends a text as it is and returns the next answer.
func (c *mailClient) send(text string) string {
	_, _ = c.Write([]byte(text)) // the server may have closed the connection
	return c.read()
}

// expect sends a text and reports an error if the next answer does not begin with
// want.
func (c *mailClient) expect(text, want string) {
	c.t.Helper()
	if got := c.send(text); !strings.HasPrefix(got, want) {
		c.t.Errorf("%.60q: got %q, want %s", text, got, want)
	}
}

// begin sends the commands before DATA for a mail to one recipient.
func (c *mailClient) begin(to string) {
	c.t.Helper()
	c.expect("EHLO client\r\n", "250")
	c.expect("MAIL FROM:<a@example.com>\r\n", "250")
	c.expect("RCPT TO:<"+to+">\r\n", "250")
}

// mailGateway runs a gateway with a mail server and returns the server's address.
func mailGateway(t *testing.T, keys, block string) (g *gateway, address string) {
	t.Helper()
	address = porttest.Address()
	return start(t, mailOptions(keys, address, block), ""), address
}

func mailOptions(keys, address, block string) string {
	return "local_certs\nskip_install_trust\npki {\nca {\nname test\n}\n}\n" +
		"notify {\n" + keys + "\nsmtp " + address + " {\nhostname gateway.test\n" + block + "\n}\n}"
}

// TestMailEndsOnlyOnce checks that only \r\n.\r\n ends a mail, so that its text cannot
// contain commands (SMTP smuggling), and that pipelined commands are answered one by
// one.
func TestMailEndsOnlyOnce(t *testing.T) {
	t.Parallel()
	k := newRecorder(t)
	_, address := mailGateway(t, "key k {\nurl "+k.url+"/\n}", "")
	const inner = "MAIL FROM:<b@example.com>\r\nRCPT TO:<k.failure@x>\r\nDATA\r\nSubject: smuggled\r\n\r\nx\r\n"
	for _, end := range []string{"\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r\n.\r", "\n.\r", "\r.\n", "\r\n\x00.\r\n", "\r\n..\r\n"} {
		c, _ := dialMail(t, address)
		c.begin("k@x")
		c.expect("DATA\r\n", "354")
		c.expect("Subject: one\r\n\r\ntext"+end+inner+"\r\n.\r\n", "250 2.0.0 delivered")
		c.expect("QUIT\r\n", "221")
		if got := k.take(); len(got) != 1 || !strings.Contains(got[0], "one") || !strings.Contains(got[0], "smuggled") {
			t.Errorf("%q ends a mail: %q", end, got)
		}
	}
	c, _ := dialMail(t, address)
	c.expect("EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<none@x>\r\nRCPT TO:<k@x>\r\nDATA\r\n", "250")
	for _, want := range []string{"250", "550", "250", "354"} {
		if got := c.read(); !strings.HasPrefix(got, want) {
			t.Errorf("pipelined: got %q, want %s", got, want)
		}
	}
	c.expect("Subject: piped\r\n\r\n.\r\nQUIT\r\n", "250 2.0.0 delivered")
	if got := c.read(); !strings.HasPrefix(got, "221") {
		t.Errorf("after a pipelined mail: %q", got)
	}
	// An incomplete mail is not sent.
	k.take()
	for _, end := range []string{"", "\r\n", "\r\n.", "\r\n.\r"} {
		c, _ := dialMail(t, address)
		c.begin("k@x")
		c.expect("DATA\r\n", "354")
		_, _ = c.Write([]byte("Subject: cut\r\n\r\ntext" + end))
		_ = c.Close()
	}
	c, _ = dialMail(t, address)
	c.begin("k@x")
	c.expect("BDAT 20\r\nSubject: cut\r\n\r\ntext", "250")
	// The connection ends, so that no later mail gets the answer to this one.
	_, _ = c.Write([]byte("RSET\r\n"))
	if line, err := c.in.ReadString('\n'); err == nil {
		t.Errorf("an incomplete mail is reset with %q", line)
	}
	c, _ = dialMail(t, address)
	c.begin("k@x")
	c.expect("BDAT 16 LAST\r\nSubject: whole\r\n\r\n", "250 2.0.0 delivered")
	if got := k.take(); len(got) != 1 || !strings.Contains(got[0], "whole") {
		t.Errorf("an incomplete mail is sent: %q", got)
	}
}

// TestMailTLS checks with a certificate of Caddy that passwords are accepted only
// over TLS, and that commands sent before TLS have no effect after it.
func TestMailTLS(t *testing.T) {
	t.Parallel()
	k := newRecorder(t)
	const hash = "$2a$04$ZtPWgvyNrBFXlWF13.MBIeXX26L0hQGTqj9I9i3.YInV1tMNP1Kdu" // of another password
	g, address := mailGateway(t, "key k {\nurl "+k.url+"/\n}", "trusted_clients none\ntls localhost\nauth {\nnas "+hash+"\n}")
	login := base64.StdEncoding.EncodeToString([]byte("\x00nas\x00p4ssw0rd-of-nas"))
	c, _ := dialMail(t, address)
	c.expect("EHLO x\r\n", "250")
	c.expect("AUTH PLAIN "+login+"\r\n", "523")
	c.expect("MAIL FROM:<a@x>\r\n", "530 5.7.0")
	c.expect("RCPT TO:<k@x>\r\n", "502")
	// Commands in the packet of STARTTLS.
	c.expect("STARTTLS\r\nEHLO injected\r\nMAIL FROM:<injected@x>\r\n", "220")
	secure := tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"}) //nolint:gosec // the authority is Caddy's own
	if err := secure.Handshake(); err == nil {
		s := &mailClient{t, secure, bufio.NewReader(secure)}
		if got := s.send("NOOP\r\n"); !strings.HasPrefix(got, "250 2.0.0") || strings.Contains(got, "injected") {
			t.Errorf("after TLS: %q", got)
		}
		s.expect("MAIL FROM:<a@x>\r\n", "502")
	}
	s := secureMail(t, address)
	s.expect("AUTH PLAIN "+login+"\r\n", "535")
	s.expect("MAIL FROM:<a@x>\r\n", "530")
	s.expect("AUTH PLAIN "+login+"\r\n", "535")
	s.expect("AUTH PLAIN "+login+"\r\n", "535")
	if got := s.send("AUTH PLAIN " + login + "\r\n"); strings.HasPrefix(got, "535") {
		t.Errorf("a fourth password is checked: %q", got)
	}
	if got := k.take(); len(got) > 0 {
		t.Errorf("messages of clients without an account: %q", got)
	}
	if strings.Contains(g.log(), "p4ssw0rd") || strings.Contains(g.log(), login) || strings.Contains(g.log(), hash) {
		t.Error("the log has a password")
	}
}

// secureMail connects to a mail server with TLS.
func secureMail(t *testing.T, address string) *mailClient {
	t.Helper()
	var secure *tls.Conn
	eventually(t, "the certificate is there", func() bool {
		c, _ := dialMail(t, address)
		c.expect("EHLO x\r\n", "250")
		c.expect("STARTTLS\r\n", "220")
		secure = tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"}) //nolint:gosec // the authority is Caddy's own
		return secure.Handshake() == nil
	})
	c := &mailClient{t, secure, bufio.NewReader(secure)}
	c.expect("EHLO x\r\n", "250")
	return c
}

// TestMailGuesses checks that two passwords of one address are checked or wait at a time, and
// that a login that was correct needs no check, also after a reload. 45 guesses once delayed
// logins by a minute or two.
func TestMailGuesses(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	k := newRecorder(t)
	const account, slowAccount = " $2a$10$m2.UDsDZjxwNn2SM2qz4ourxotp2P3PeThkOw.X6HW72RDYFdxWUu\n",
		"slow $2a$12$MZVTYY4n1Wqzs.3j3AkvUesFOdLpM8DGM47qBVVuxjFGYuwJAC4M6\n"
	slow := slowAccount
	if racetest.Enabled { // which makes each check slower
		slow = "slow" + account
	}
	keys, block := "key k {\nurl "+k.url+"/\n}", "trusted_clients none\ntls localhost\nauth {\nnas"+account+slow
	login := func(user, password string) string {
		return "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00"+user+"\x00"+password)) + "\r\n"
	}
	g, address := mailGateway(t, keys, block+"}")
	secureMail(t, address).expect(login("nas", "correct horse"), "235")
	g.reload(mailOptions(keys, address, block+"later"+account+"}"), "")
	eventually(t, "the new configuration answers", func() bool {
		return strings.HasPrefix(secureMail(t, address).send(login("later", "correct horse")), "235")
	})
	nas := secureMail(t, address)
	guessers := make([]*mailClient, 12)
	for i := range guessers {
		guessers[i] = secureMail(t, address)
	}
	for _, c := range guessers {
		_, _ = c.Write([]byte(login("slow", "guess")))
	}
	answers := make(chan string, len(guessers))
	for _, c := range guessers {
		go func() { answers <- c.read() }()
	}
	refused := 0
	for n := range guessers {
		switch got := <-answers; {
		case strings.HasPrefix(got, "454 4.7.0"):
			if refused++; refused == 1 {
				nas.expect(login("nas", "correct horse"), "235") // while two guesses are checked
			}
		case !strings.HasPrefix(got, "535"):
			t.Errorf("guess %d: %q", n, got)
		}
	}
	if refused == 0 {
		t.Error("all guesses of one address are checked")
	}
}

// TestMailFloods checks that clients that need an account cannot take the
// connections of all others, and that slow clients are disconnected.
func TestMailFloods(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	k := newRecorder(t)
	// A busy machine opens all connections before the first one times out.
	g, address := mailGateway(t, "key k {\nurl "+k.url+"/\n}",
		fmt.Sprintf("trusted_clients none\nmax_connections 80\ntimeout %ds", amount(busy, 8, 4)))
	var open []*mailClient
	refused := 0
	for range 30 {
		c, greeting := dialMail(t, address)
		if strings.HasPrefix(greeting, "421 4.3.2") {
			refused++
			continue
		}
		open = append(open, c)
	}
	if len(open) != 10 || refused != 20 {
		t.Errorf("one address has %d of 80 connections, and %d were refused", len(open), refused)
	}
	for i, c := range open {
		_, _ = c.Write([]byte("EHLO x"[:i%7])) // never a whole line
	}
	for _, c := range open {
		got := c.read()
		for got != "" && !strings.HasPrefix(got, "421") { // the answer to the part of the command
			got = c.read()
		}
		if got == "" {
			t.Error("the connection of a slow client ends without a 421")
		}
	}
	if _, greeting := dialMail(t, address); !strings.HasPrefix(greeting, "220 gateway.test") {
		t.Errorf("after the flood: %q", greeting)
	}

	g.reload(mailOptions("key k {\nurl "+k.url+"/\n}", address, "timeout 3s"), "")
	var c *mailClient
	eventually(t, "the new configuration answers", func() bool {
		c, _ = dialMail(t, address)
		c.expect("EHLO x\r\n", "250")
		return strings.HasPrefix(c.send("MAIL FROM:<a@x>\r\n"), "250")
	})
	c.expect("RCPT TO:<k@x>\r\n", "250")
	c.expect("DATA\r\n", "354")
	ended := make(chan string, 1)
	go func() { ended <- c.read() }()
	for i := 0; ; i++ { // further lines do not extend the time for a mail
		if _, err := c.Write([]byte("Subject: slow\r\n")); err != nil {
			break
		}
		select {
		case got := <-ended:
			if !strings.HasPrefix(got, "451 4.4.2") {
				t.Errorf("a slow mail: %q", got)
			}
			if got := k.take(); len(got) > 0 {
				t.Errorf("a slow mail was sent: %q", got)
			}
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestExpensiveMails checks that mails made to cost much memory, disk or time are
// refused or handled within the limits, and that the gateway keeps working.
func TestExpensiveMails(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	k := newRecorder(t)
	g, address := mailGateway(t, "max_body 64KiB\nattachments {\nmax_size 1MiB\n}\nkey k {\nurl "+k.url+"/\n}", "max_size 4MiB")
	c, _ := dialMail(t, address)
	c.expect("EHLO x\r\n", "250")
	c.expect("MAIL FROM:<a@x> SIZE=4194305\r\n", "552 5.3.4")
	var nested strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&nested, "Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	line := strings.Repeat("QUFB", 19) + "\r\n"
	file := "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n" +
		"Content-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n"
	for name, mail := range map[string][2]string{
		"longer than allowed": {"Subject: x\r\n\r\n" + strings.Repeat(strings.Repeat("x", 1000)+"\r\n", 5000), "552 5.3.4"},
		"a long text":         {"Subject: x\r\n\r\n" + strings.Repeat("line\r\n", 20000), "552 5.3.4"},
		"nested parts":        {nested.String(), "554 5.6.0"},
		"many parts":          {"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\n\r\nx\r\n", 20000), "554 5.6.0"},
		"a long header":       {strings.Repeat("X-Y: z\r\n", 100_000), "554 5.6.0"},
		"a large file":        {file + strings.Repeat(line, 25000) + "--b--\r\n", "250"},
		"many files": {
			"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\nContent-Type: image/png\r\n\r\nx\r\n", 400),
			"250",
		},
		"an endless word": {"Subject: " + strings.Repeat("=?utf-8?q?", 6000) + "\r\n\r\nx", "250"},
	} {
		c, _ := dialMail(t, address)
		c.begin("k@x")
		c.expect("DATA\r\n", "354")
		if got := c.send(mail[0] + "\r\n.\r\n"); !strings.HasPrefix(got, mail[1]) {
			t.Errorf("%s: got %q, want %s", name, got, mail[1])
		}
		c.begin("k@x") // the connection is still open
	}
	c.expect("BDAT 99999999999999999999\r\n", "501")
	if got := g.post("/notify/k", message{"body": "x"}); got.Status != 200 {
		t.Errorf("after the expensive mails: %d", got.Status)
	}
}

// TestMailSecrets checks that neither answers to mails nor the log show a secret of a
// URL.
func TestMailSecrets(t *testing.T) {
	t.Parallel()
	closed := porttest.Address()
	g, address := mailGateway(t, "key k {\nurl json://user:p4ssw0rd-of-the-url@"+closed+"/s3cret-path-of-the-url?retry=0\n}", "")
	c, _ := dialMail(t, address)
	c.begin("k@x")
	c.expect("DATA\r\n", "354")
	got := c.send("Subject: x\r\n\r\ny\r\n.\r\n")
	if !strings.HasPrefix(got, "451 4.4.0") {
		t.Errorf("got %q", got)
	}
	for _, secret := range []string{"p4ssw0rd", "s3cret-path"} {
		if strings.Contains(got, secret) || strings.Contains(g.log(), secret) {
			t.Errorf("%q or the log shows %s", got, secret)
		}
	}
	if strings.Contains(got, closed) {
		t.Errorf("the answer shows the address of a connection: %q", got)
	}
}

// TestMailOverReload checks that a client can finish its mail when the
// configuration changes meanwhile, that new clients get the new configuration,
// and that Caddy waits for the answer to a mail before it stops.
func TestMailOverReload(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	h, k := newStalled(t), newRecorder(t)
	keys := "key slow {\nurl " + h.url + "?retry=0\n}\nkey k {\nurl " + k.url + "/\n}\n"
	g, address := mailGateway(t, keys, "")
	begun, _ := dialMail(t, address)
	begun.begin("k@x")
	waiting, _ := dialMail(t, address)
	waiting.begin("slow@x")
	waiting.expect("DATA\r\n", "354")
	_, _ = waiting.Write([]byte("Subject: slow\r\n\r\nx\r\n.\r\n"))
	eventually(t, "the mail is under way", func() bool { return h.arrived.Load() == 1 })

	g.reload(mailOptions(keys+"key new {\nurl "+k.url+"/new\n}\n", address, ""), "")
	eventually(t, "a new client gets the new configuration", func() bool {
		c, greeting := dialMail(t, address)
		return strings.HasPrefix(greeting, "220") && strings.HasPrefix(c.send("EHLO x\r\n"), "250") &&
			strings.HasPrefix(c.send("MAIL FROM:<>\r\n"), "250") && strings.HasPrefix(c.send("RCPT TO:<new@x>\r\n"), "250")
	})
	begun.expect("DATA\r\n", "354")
	begun.expect("Subject: begun before\r\n\r\nx\r\n.\r\n", "250 2.0.0 delivered")
	if got := k.take(); len(got) != 1 || !strings.Contains(got[0], "begun before") {
		t.Errorf("got %q", got)
	}

	last, _ := dialMail(t, address)
	last.begin("slow@x")
	last.expect("DATA\r\n", "354")
	_, _ = last.Write([]byte("Subject: last\r\n\r\nx\r\n.\r\n"))
	eventually(t, "the mail is under way", func() bool { return h.arrived.Load() == 2 })
	stopped := make(chan error, 1)
	go func() { stopped <- g.stop() }()
	eventually(t, "the mail server no longer takes connections", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	h.release()
	for name, c := range map[string]*mailClient{"before the reload": waiting, "before the stop": last} {
		if got := c.read(); !strings.HasPrefix(got, "250 2.0.0 delivered") {
			t.Errorf("a mail %s: %q", name, got)
		}
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
