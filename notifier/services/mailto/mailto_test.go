package mailto

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
	"github.com/caddy-notify/caddy-notify/notifier/spool"
)

func TestEncryption(t *testing.T) {
	good := func() *mailServer { return &mailServer{config: testCA.Certificate(t, "127.0.0.1")} }
	implicit := func() *mailServer { s := good(); s.implicit = true; return s }
	stranger := func() *mailServer { return &mailServer{config: servicetest.SelfSigned(t)} }
	otherName := func() *mailServer {
		return &mailServer{config: testCA.Certificate(t, "mail.example.org"), implicit: true}
	}
	for _, c := range []struct {
		name, scheme, query string
		server              *mailServer
		tls                 bool
		err                 string
	}{
		{"plain", "mailto", "", &mailServer{}, false, ""},
		{"plain though the server could", "mailto", "", good(), false, ""},
		{"STARTTLS", "mailtos", "", good(), true, ""},
		{"STARTTLS by mode", "mailto", "mode=starttls", good(), true, ""},
		{"TLS from the start", "mailtos", "mode=ssl", implicit(), true, ""},
		{"no STARTTLS", "mailtos", "", &mailServer{}, false, "offers no STARTTLS"},
		{"no TLS from the start", "mailtos", "mode=ssl", good(), false, "use mode=starttls"},
		{"unknown authority", "mailtos", "", stranger(), false, "certificate signed by unknown authority"},
		{"unknown authority, unchecked", "mailtos", "verify=no", stranger(), true, ""},
		{"another name", "mailtos", "mode=ssl", otherName(), false, "certificate"},
		{"another name, unchecked", "mailtos", "mode=ssl&verify=no", otherName(), true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startMail(t, c.server)
			r := servicetest.Send(t, servicetest.NewSender(t), s.url(c.scheme, "user", "?"+c.query), servicetest.Message(t, "plain"), mailTime)
			got := s.got()
			if c.err != "" {
				if r.Err == nil || !strings.Contains(r.Err.Error(), c.err) || len(got) != 0 {
					t.Fatalf("got %d mails and the error %v", len(got), r.Err)
				}
				return
			}
			if r.Err != nil || len(got) != 1 || got[0].tls != c.tls {
				t.Fatalf("got %+v and the error %v", got, r.Err)
			}
		})
	}
}

func TestSignIn(t *testing.T) {
	const password = "p@ss wörd/1"
	login := "user:p%40ss%20w%C3%B6rd%2F1"
	for _, c := range []struct{ offered, query, scheme, want string }{
		{"PLAIN", "", "mailtos", "PLAIN"},
		{"LOGIN", "", "mailtos", "LOGIN"},
		{"CRAM-MD5", "", "mailtos", "CRAM-MD5"},
		{"XOAUTH2", "auth=xoauth2", "mailtos", "XOAUTH2"},
		{"XOAUTH2 CRAM-MD5 LOGIN PLAIN", "", "mailtos", "PLAIN"},
		{"XOAUTH2 CRAM-MD5 LOGIN PLAIN", "verify=no", "mailtos", "CRAM-MD5"},
		{"CRAM-MD5 LOGIN PLAIN", "", "mailto", "CRAM-MD5"},
		{"LOGIN PLAIN", "", "mailto", "PLAIN"},
		{"PLAIN LOGIN", "auth=login", "mailtos", "LOGIN"},
		{"PLAIN LOGIN CRAM-MD5", "auth=cram-md5", "mailtos", "CRAM-MD5"},
		{"CRAM-MD5 PLAIN", "auth=plain", "mailto", "PLAIN"},
	} {
		t.Run(c.want+" of "+c.offered+" "+c.query, func(t *testing.T) {
			s := startMail(t, &mailServer{config: testCA.Certificate(t, "127.0.0.1"), mechanisms: strings.Fields(c.offered), password: password})
			got := mustSend(t, servicetest.NewSender(t), s, s.url(c.scheme, login, "?"+c.query), servicetest.Message(t, "plain"))
			if got.mechanism != c.want || got.user != "user" {
				t.Errorf("signed in as %q by %q", got.user, got.mechanism)
			}

			r := servicetest.Send(t, servicetest.NewSender(t),
				s.url(c.scheme, "user:wr0ng-secret", "?"+c.query), servicetest.Message(t, "plain"), mailTime)
			if r.Err == nil || !strings.Contains(r.Err.Error(), "535 5.7.8 Authentication failed (signing in)") || r.Service != "E-Mail" {
				t.Errorf("the wrong password: %s: %v", r.Service, r.Err)
			}
			if text := fmt.Sprint(r.Err) + r.Destination; strings.Contains(text, "wr0ng") {
				t.Errorf("the password is revealed: %s", text)
			}
		})
	}
	for _, c := range []struct {
		server *mailServer
		scheme string
		query  string
		want   string
	}{
		{&mailServer{}, "mailto", "", "use mailtos:// or mode=starttls"},
		{&mailServer{config: testCA.Certificate(t, "127.0.0.1")}, "mailtos", "", "leave the password out"},
		{&mailServer{mechanisms: []string{"LOGIN"}}, "mailto", "auth=xoauth2", "change the parameter auth"},
	} {
		s := startMail(t, c.server)
		r := servicetest.Send(t, servicetest.NewSender(t), s.url(c.scheme, login, "?"+c.query), servicetest.Message(t, "plain"), mailTime)
		if r.Err == nil || !strings.Contains(r.Err.Error(), c.want) {
			t.Errorf("%v instead of %q", r.Err, c.want)
		}
	}
}

// A server may repeat the password in its reply.
func TestEcho(t *testing.T) {
	const plain = "AHVzZXIAdDBwLXNlY3JldA==" // base64 of \0user\0t0p-secret
	address := mailScript(t, "220 hello\r\n", "250-hello\r\n250 AUTH PLAIN\r\n",
		"500 what is AUTH PLAIN "+plain+" t0p-secret?\r\n", "501 no\r\n", "221 bye\r\n")
	_, port, _ := net.SplitHostPort(address)
	r := servicetest.Send(t, servicetest.NewSender(t),
		"mailto://user:t0p-secret@example.com:"+port+"?smtp=127.0.0.1", servicetest.Message(t, "plain"), mailTime)
	if r.Err == nil || !strings.Contains(r.Err.Error(), "500 what is AUTH PLAIN … xxxxx?") {
		t.Errorf("got %v", r.Err)
	}
}

func TestConnections(t *testing.T) {
	plain := servicetest.Message(t, "plain")

	t.Run("serve several messages", func(t *testing.T) {
		s, sender := startMail(t, &mailServer{}), servicetest.NewSender(t)
		u := s.url("mailto", "user", "/a@example.org/b@example.org")
		for range 2 {
			if err := servicetest.Send(t, sender, u, plain, mailTime).Err; err != nil {
				t.Fatal(err)
			}
		}
		if got := s.got(); len(got) != 4 || s.connections != 1 {
			t.Errorf("%d mails on %d connections", len(got), s.connections)
		}
	})

	t.Run("are not kept with store=no", func(t *testing.T) {
		s, sender := startMail(t, &mailServer{}), servicetest.NewSender(t)
		for want := 1; want <= 2; want++ {
			if got := mustSend(t, sender, s, s.url("mailto", "user", "?store=no"), plain); got.connection != want {
				t.Errorf("the mail came on connection %d", got.connection)
			}
		}
		s.waitForQuits(t, 2)
	})

	t.Run("end with the sender", func(t *testing.T) {
		s, sender := startMail(t, &mailServer{}), servicetest.NewSender(t)
		mustSend(t, sender, s, s.url("mailto", "user", ""), plain)
		sender.Close()
		s.waitForQuits(t, 1)
	})

	t.Run("are opened again when the server has ended them", func(t *testing.T) {
		s, sender := startMail(t, &mailServer{maxMails: 1}), servicetest.NewSender(t)
		u := s.url("mailto", "user", "")
		for want := 1; want <= 3; want++ {
			if got := mustSend(t, sender, s, u, plain); got.connection != want {
				t.Errorf("the mail came on connection %d", got.connection)
			}
			s.waitForQuits(t, want)
		}
	})

	t.Run("are opened again when the server was restarted", func(t *testing.T) {
		s, sender := startMail(t, &mailServer{}), servicetest.NewSender(t)
		u := s.url("mailto", "user", "")
		mustSend(t, sender, s, u, plain)
		s.stop()
		if r := servicetest.Send(t, sender, u, plain, mailTime); r.Err == nil || !strings.Contains(r.Err.Error(), "connection refused") {
			t.Errorf("without a server: %v", r.Err)
		}
		s.start(t, s.address)
		mustSend(t, sender, s, u, plain)
	})

	t.Run("survive a refusal", func(t *testing.T) {
		s, sender := startMail(t, &mailServer{refuse: func(to string) error {
			if to == "no@example.org" {
				return errors.New("550 5.1.1 No such user")
			}
			return nil
		}}), servicetest.NewSender(t)
		u := s.url("mailto", "user", "/no@example.org/yes@example.org")
		r := servicetest.Send(t, sender, u, plain, mailTime)
		if r.Err == nil || !strings.Contains(r.Err.Error(),
			"target 1 of 2: recipient 1 of 1: the mail server answered 550 5.1.1 No such user (RCPT)") {
			t.Errorf("got %v", r.Err)
		}
		if got := s.got(); len(got) != 1 || got[0].to[0] != "yes@example.org" || s.connections != 1 {
			t.Errorf("got %v on %d connections", got, s.connections)
		}
	})
}

// waitForQuits waits until n connections have ended.
func (s *mailServer) waitForQuits(t *testing.T, n int) {
	t.Helper()
	servicetest.Eventually(t, fmt.Sprintf("the server has not seen %d connections end", n), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.quits >= n
	})
}

// TestTooLarge checks that a mail that is too large for the server is sent
// again without its files.
func TestTooLarge(t *testing.T) {
	s, sender := startMail(t, &mailServer{maxSize: 8 << 10}), servicetest.NewSender(t)
	m := &notifier.Message{
		Title: "Disk full", Body: "91%",
		Attachments: []*notifier.Attachment{notifier.NewAttachment("big.bin", "", make([]byte, 64<<10))},
	}
	r := servicetest.Send(t, sender, s.url("mailto", "user", "/to@example.org"), m, mailTime)
	if r.Err == nil || !strings.Contains(r.Err.Error(),
		"the text has arrived, but not the files, which were refused: the mail server answered 552") {
		t.Errorf("got %v", r.Err)
	}
	if got := s.got(); len(got) != 1 || !bytes.Contains(got[0].data, []byte("Disk full")) || bytes.Contains(got[0].data, []byte("big.bin")) {
		t.Errorf("arrived: %d mails", len(got))
	}
}

// TestRetry checks that a retry goes only to the recipients that were refused.
func TestRetry(t *testing.T) {
	var asked []string
	s := startMail(t, &mailServer{refuse: func(to string) error {
		asked = append(asked, to)
		if to == "busy@example.org" && len(asked) < 3 {
			return errors.New("451 4.3.0 Later")
		}
		return nil
	}})
	u := s.url("mailto", "user", "/you@example.org?cc=busy@example.org&retry=1&wait=0")
	if r := servicetest.Send(t, servicetest.NewSender(t), u, servicetest.Message(t, "plain"), mailTime); r.Err != nil || r.Attempts != 2 {
		t.Fatalf("%d attempts, %v", r.Attempts, r.Err)
	}
	if text := fmt.Sprint(asked); text != "[you@example.org busy@example.org busy@example.org]" {
		t.Errorf("asked for %s", text)
	}
	got := s.got()
	if len(got) != 2 || got[1].to[0] != "busy@example.org" || len(got[1].to) != 1 {
		t.Fatalf("got %v", got)
	}
	if a, b := parseMail(t, got[0].data), parseMail(t, got[1].data); a.header.Get("Message-Id") == "" ||
		a.header.Get("Message-Id") != b.header.Get("Message-Id") {
		t.Error("the retry is a different mail")
	}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"from the start": nil, "after the greeting": {"220 hello\r\n"}, "at MAIL": {"220 hello\r\n", "250 hello\r\n"},
		"at the end of the mail": {"220 hello\r\n", "250 hello\r\n", "250 ok\r\n", "250 ok\r\n", "354 go\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, port, _ := net.SplitHostPort(mailScript(t, lines...))
			sender := servicetest.NewSender(t)
			for query, want := range map[string]string{"": "not done within 200ms (timeout)", "&rto=0.1": "no answer within 100ms (rto)"} {
				d, err := sender.Parse("mailto://user@example.com:"+port+"?smtp=127.0.0.1"+query, nil)
				if err != nil {
					t.Fatal(err)
				}
				timeout := 200 * time.Millisecond
				if query != "" {
					timeout = 10 * time.Second
				}
				r := sender.Send(context.Background(), servicetest.Message(t, "plain"),
					[]notifier.Target{{Destination: d}}, notifier.Options{Timeout: timeout}).Results[0]
				if r.Err == nil || !strings.Contains(r.Err.Error(), want) {
					t.Errorf("%q: %v", query, r.Err)
				}
			}
		})
	}
}

func TestEndlessAnswer(t *testing.T) {
	_, port, _ := net.SplitHostPort(mailScript(t, "220 "+strings.Repeat("x", 5<<20)))
	r := servicetest.Send(t, servicetest.NewSender(t),
		"mailto://user@example.com:"+port+"?smtp=127.0.0.1", servicetest.Message(t, "plain"), mailTime)
	if r.Err == nil || !strings.Contains(r.Err.Error(), "the server sends more than 4 MiB") {
		t.Errorf("got %v", r.Err)
	}
}

// TestEgress checks that the egress rules for clients' URLs apply to mail
// servers.
func TestEgress(t *testing.T) {
	s := startMail(t, &mailServer{})
	guard, err := egress.NewPolicy(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	sender := servicetest.NewSender(t)
	d, err := sender.Parse(s.url("mailto", "user", ""), guard)
	if err != nil {
		t.Fatal(err)
	}
	r := sender.Send(context.Background(), servicetest.Message(t, "plain"), []notifier.Target{{Destination: d}}, notifier.Options{}).Results[0]
	if r.Err == nil || s.connections != 0 {
		t.Errorf("%d connections, %v", s.connections, r.Err)
	}
}

func TestAccount(t *testing.T) {
	for url, want := range map[string]string{
		"mailto://me:pw@gmail.com":                                    "smtp.gmail.com:587 starttls me@gmail.com from me@gmail.com",
		"mailto://me:pw@gmail.com?mode=ssl":                           "smtp.gmail.com:465 ssl me@gmail.com from me@gmail.com",
		"mailtos://me:pw@Gmail.com:465":                               "smtp.gmail.com:465 ssl me@gmail.com from me@gmail.com",
		"mailto://me%40yandex.ru:pw@yandex.ru":                        "smtp.yandex.ru:465 ssl me from me@yandex.ru",
		"mailto://me:pw@myfastmail.com":                               "smtp.fastmail.com:465 ssl me@myfastmail.com from me@myfastmail.com",
		"mailto://fastmail.com?user=me@corp.example&pass=pw":          "smtp.fastmail.com:465 ssl me@corp.example from me@corp.example",
		"mailto://fastmail.com?user=me@corp.example&pass=pw&from=Bot": "smtp.fastmail.com:465 ssl me@corp.example from Bot <me@corp.example>",
		"mailto://me:pw@office365.com?from=me@corp.example":           "smtp.office365.com:587 starttls me from me@corp.example",
		"mailto://me:pw@gmail.com?smtp=relay.example.com":             "relay.example.com:25 insecure me from me@gmail.com",
		"mailto://me:pw@corp.example":                                 "corp.example:25 insecure me from me@corp.example",
		"mailtos://me:pw@corp.example":                                "corp.example:587 starttls me from me@corp.example",
		"mailtos://me:pw@corp.example?mode=ssl":                       "corp.example:465 ssl me from me@corp.example",
		"mailto://me:pw@corp.example:465":                             "corp.example:465 ssl me from me@corp.example",
		"mailtos://me@corp.example:2525":                              "corp.example:2525 starttls  from me@corp.example",
		"mailtos://me%40mail.example:pw@corp.example":                 "corp.example:587 starttls me@mail.example from me@corp.example",
		"mailtos://_?user=me@corp.example&pass=pw":                    "corp.example:587 starttls me@corp.example from me@corp.example",
		"mailto://_?user=me@gmail.com&pass=pw":                        "smtp.gmail.com:587 starttls me@gmail.com from me@gmail.com",
		"mailtos://_?smtp=mx.example.org&user=me@gmail.com&pass=pw":   "mx.example.org:587 starttls me@gmail.com from me@gmail.com",
		"mailto://localhost":                                          "localhost:25 insecure  from root@localhost",
		"mailto://192.168.1.7?from=Jo<jo@example.com>":                "192.168.1.7:25 insecure  from Jo <jo@example.com>",
		"mailto://[2001:db8::7]:2525?from=jo@example.com":             "2001:db8::7:2525 insecure  from jo@example.com",
		"mailtos://jo@bücher.example":                                 "xn--bcher-kva.example:587 starttls  from jo@xn--bcher-kva.example",
		"mailto://jo@corp.example?from=a@b.example&name=Jörg":         "corp.example:25 insecure  from Jörg <a@b.example>",
		"mailto://jo@corp.example?from=Acme, Inc <a@b.example>":       `corp.example:25 insecure  from "Acme, Inc" <a@b.example>`,
		"mailto://jo@corp.example?from=O'Brien <a@b.example>":         "corp.example:25 insecure  from O'Brien <a@b.example>",
		"mailto://jo@corp.example?from=Alert: prod <a@b.example>":     `corp.example:25 insecure  from "Alert: prod" <a@b.example>`,
		"mailto://jo@corp.example?from=Ops @ Acme <ä@bücher.example>": `corp.example:25 insecure  from "Ops @ Acme" <ä@xn--bcher-kva.example>`,
		"mailto://jo@corp.example?from=Acme, Inc":                     `corp.example:25 insecure  from "Acme, Inc" <jo@corp.example>`,
	} {
		m := describe(t, url)
		a := m.findAccount()
		if got := a.host + ":" + strconv.Itoa(a.port) + " " + a.mode + " " +
			a.user + " from " + m.sender.String(); !strings.EqualFold(got, want) {
			t.Errorf("%s is\n%s instead of\n%s", url, got, want)
		}
	}
}

// TestSender checks that the error for an invalid sender names the parameter, and that a warning
// names a sender that is made of the user and the server, unless the server is a domain of
// addresses.
func TestSender(t *testing.T) {
	for url, want := range map[string]string{
		"mailto://me:pw@corp.example?from=Ops <me@>":                     "from has no e-mail address",
		"mailto://me:pw@corp.example?from=Ops me@corp.example>, x":       "from has no e-mail address",
		"mailto://me:pw@corp.example?from=a@b.example, c@d.example":      "from has no e-mail address",
		"mailto://me:pw@corp.example?to=Alert: prod <v@a.example>":       "",
		"mailto://me:pw@corp.example?to=O'Brien <v@a.example>":           "",
		"mailto://me:pw@corp.example":                                    "",
		"mailto://me:pw@corp.co.uk":                                      "",
		"mailto://me:pw@gmail.com":                                       "",
		"mailto://me:pw@mailhost":                                        "",
		"mailto://me:pw@smtp.corp.example?from=me@corp.example":          "",
		"mailto://me:pw@corp.example?smtp=smtp.corp.example":             "",
		"mailtos://alerts:pw@smtp.corp.example":                          "the sender is alerts@smtp.corp.example",
		"mailtos://alerts:pw@smtp.corp.example?from=Alerts":              "the sender is alerts@smtp.corp.example",
		"mailtos://alerts%40corp.example:pw@smtp.relay.example/to@x.org": "the sender is alerts@smtp.relay.example",
	} {
		d, err := notifier.Parse(url, nil)
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.Join(d.Warnings(), "\n")
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

// describe returns the service of a URL without targets.
func describe(t *testing.T, address string) *service {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	password, _ := u.User.Password()
	port, _ := strconv.Atoi(u.Port())
	m := &service{from: q.Get("from"), name: q.Get("name"), smtp: q.Get("smtp"), mode: q.Get("mode")}
	m.Server = notifier.Server{
		Secure: u.Scheme == "mailtos", User: cmp.Or(q.Get("user"), u.User.Username()),
		Password: cmp.Or(q.Get("pass"), password), Host: u.Hostname(), Port: port,
	}
	if err := m.Finish(new(notifier.Schema)); err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	return m
}

// TestUnreadableFile checks that a mail that cannot be written completely is
// not delivered.
func TestUnreadableFile(t *testing.T) {
	s, sender := startMail(t, &mailServer{}), servicetest.NewSender(t)
	files := &spool.Spool{MaxSize: 4 << 20, MaxCount: 1, Dir: t.TempDir()}
	a, err := files.Add("big.bin", "", io.LimitReader(rand.Reader, 2<<20))
	if err != nil {
		t.Fatal(err)
	}
	m := servicetest.Message(t, "plain")
	m.Attachments = []*notifier.Attachment{a}
	mustSend(t, sender, s, s.url("mailto", "user", ""), m)
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // on a reused connection and on a new one
		r := servicetest.Send(t, sender, s.url("mailto", "user", ""), m, mailTime)
		if r.Err == nil || !strings.Contains(r.Err.Error(), "(sending the mail): reading a file: file already closed") || len(s.got()) != 0 {
			t.Errorf("got %v", r.Err)
		}
	}
	mustSend(t, sender, s, s.url("mailto", "user", ""), servicetest.Message(t, "plain"))
}

// TestParameters checks that each parameter changes what the server sees, or
// whether it sees anything.
func TestParameters(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	_, public, private := pgpTestKey(t, "user@example.com")
	s := startMail(t, &mailServer{config: testCA.Certificate(t, "127.0.0.1"), mechanisms: []string{"PLAIN", "LOGIN"}, password: "pw"})
	_, port, _ := net.SplitHostPort(s.address)
	base := "mailto://user:pw@127.0.0.1:" + port + "/you@example.org?from=me@example.com&"
	noise := regexp.MustCompile(`[A-Z2-7]{26}|[a-z2-7]{26}`)
	seen := func(query string) string {
		r := servicetest.Send(t, servicetest.NewSender(t), base+query, servicetest.Message(t, "attach"), mailTime)
		out := fmt.Sprint(r.Err)
		for _, m := range s.got() {
			out += fmt.Sprint(m.tls, m.mechanism, m.from, m.to) + noise.ReplaceAllString(string(m.data), "…")
		}
		return out
	}
	plain := seen("")
	if again := seen(""); again != plain {
		t.Fatalf("two mails differ:\n%s\n%s", plain, again)
	}
	with := map[string]string{
		"from": "from=you@example.net", "name": "name=Jo", "cc": "cc=al@example.org",
		"bcc": "bcc=al@example.org", "reply": "reply=al@example.org",
		"headers": "+X-Origin=gateway", "inline": "inline=yes", "smtp": "smtp=127.0.0.2", "mode": "mode=starttls", "auth": "auth=login",
		"pgp": "pgp=encrypt&pgppub=" + public, "pgppub": "pgppub=" + public, "pgpprv": "pgpprv=" + private, "wkd": "wkd=yes",
	}
	for _, service := range notifier.Services() {
		if service.Name != "E-Mail" {
			continue
		}
		for _, p := range service.Params {
			if p.Common || p.InURL {
				continue
			}
			query, ok := with[p.Name]
			if !ok {
				t.Errorf("the test does not cover %s", p.Name)
				continue
			}
			if got := seen(query); got == plain {
				t.Errorf("%s changes nothing:\n%s", p.Name, got)
			}
		}
	}
	if seen("pgp=no&pgppub="+public) != plain {
		t.Error("pgp=no has no effect")
	}
}
