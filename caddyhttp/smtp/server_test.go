package smtp_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/smtp"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"golang.org/x/crypto/bcrypt"

	"github.com/caddy-notify/caddy-notify/caddyhttp"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/process"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/hometest"
	"github.com/caddy-notify/caddy-notify/internal/porttest"
	"github.com/caddy-notify/caddy-notify/notifier"
	_ "github.com/caddy-notify/caddy-notify/notifier/services" // the services of the keys
)

func TestMain(m *testing.M) { os.Exit(hometest.Main(m)) }

// newMailServer runs Caddy with the global options of notify, with a mail server that has the
// options in block, and with a site. It returns the address of the mail server.
func newMailServer(t *testing.T, global, block string) (address string) {
	t.Helper()
	caddyhttptest.ReplaceShared(t)
	address = porttest.Address()
	caddyhttptest.StartCaddy(t, "storage file_system "+t.TempDir()+"\nnotify {\n"+global+
		"\nsmtp "+address+" {\nhostname mail.example.com\n"+block+"\n}\n}", caddyhttptest.Server+" {\nnotify\n}\n")
	return address
}

// mails returns what the history of the running gateway has about mails.
func mails(t *testing.T) (entries []history.Entry) {
	t.Helper()
	var shared process.Use
	if err := shared.Load(); err != nil {
		t.Fatal(err)
	}
	defer shared.Release() //nolint:errcheck // the running gateway uses it
	for _, e := range shared.History.List() {
		if e.Source == site.SourceSMTP {
			entries = append(entries, e)
		}
	}
	return entries
}

// mailClient is a client of SMTP that shows the answers.
type mailClient struct{ *smtp.Client }

func dialMail(t *testing.T, address string) mailClient {
	t.Helper()
	c, err := smtp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return mailClient{c}
}

// dialTLS connects to a mail server, and begins TLS with STARTTLS or, if implicit, at once.
func dialTLS(t *testing.T, address string, config *tls.Config, implicit bool) mailClient {
	t.Helper()
	if !implicit {
		c := dialMail(t, address)
		if err := c.StartTLS(config); err != nil {
			t.Fatal(err)
		}
		return c
	}
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := smtp.NewClient(conn, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return mailClient{c}
}

// command sends a line, and returns the answer, which has to have a code.
func (c mailClient) command(code int, format string, args ...any) (string, error) {
	if err := c.Text.PrintfLine(format, args...); err != nil {
		return "", err
	}
	_, answer, err := c.Text.ReadResponse(code)
	return answer, err
}

// logIn signs in with the mechanism PLAIN, or with LOGIN if identity is that.
func (c mailClient) logIn(identity, user, password string) error {
	if err := c.Noop(); err != nil { // which says hello first
		return err
	}
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	if identity != "LOGIN" {
		_, err := c.command(235, "AUTH PLAIN %s", encode(identity+"\x00"+user+"\x00"+password))
		return err
	}
	_, err := c.command(334, "AUTH LOGIN")
	if err == nil {
		_, err = c.command(334, "%s", encode(user))
	}
	if err == nil {
		_, err = c.command(235, "%s", encode(password))
	}
	return err
}

// sendMail sends a mail over a new connection. It returns the last answer: the reply
// code, the enhanced status code and the text.
func sendMail(t *testing.T, address, mail string, to ...string) string {
	t.Helper()
	return sendOver(t, dialMail(t, address), mail, to...)
}

// sendOver sends a mail over a connection and returns the last answer.
func sendOver(t *testing.T, c mailClient, mail string, to ...string) string {
	t.Helper()
	err := c.Noop() // which says hello first
	if err == nil {
		_, err = c.command(250, "MAIL FROM:<sender@example.com> BODY=8BITMIME")
	}
	for _, r := range to {
		if err == nil {
			_, err = c.command(25, "RCPT TO:<%s>", r)
		}
	}
	if err == nil {
		_, err = c.command(354, "DATA")
	}
	if err != nil {
		return answerText(t, err)
	}
	w := c.Text.DotWriter()
	if _, err := w.Write(bytes.ReplaceAll([]byte(mail), []byte("\n"), []byte("\r\n"))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, answer, err := c.Text.ReadResponse(250)
	if err != nil {
		return answerText(t, err)
	}
	return "250 " + answer
}

// answerText returns the answer in an error.
func answerText(t *testing.T, err error) string {
	t.Helper()
	e, ok := errors.AsType[*textproto.Error](err)
	if !ok {
		t.Fatalf("not an answer: %v", err)
	}
	return fmt.Sprintf("%d %s", e.Code, e.Msg)
}

const simpleMail = "Subject: Disk full\n\nThe disk is full.\n"

// TestMailRecipients checks which key, type and tags a recipient selects, and which
// recipients are refused.
func TestMailRecipients(t *testing.T) {
	s := gatewaytest.NewStation(t)
	address := newMailServer(t, `
		key ops {
			url `+s.NotifyURL("/all")+`
			url `+s.NotifyURL("/disk")+` disk
			url `+s.NotifyURL("/disk-raid")+` disk raid
			default_tag untagged
		}
		key Ops_2-x {
			url `+s.NotifyURL("/two")+`
		}
		key web {
			url `+s.NotifyURL("/web")+`
			accept direct grafana
		}
		key mail {
			url `+s.NotifyURL("/mail")+`
			accept smtp
		}`, "")
	for to, want := range map[string]struct {
		answer, paths string
		typ           notifier.Type
	}{
		"ops@localhost":                 {"250 ", "all", "info"},
		"ops@[192.0.2.1]":               {"250 ", "all", "info"},
		"ops.failure@x":                 {"250 ", "all", "failure"},
		"ops.RESOLVED@x":                {"250 ", "all", "success"},
		"ops.warn+disk@x":               {"250 ", "disk disk-raid", "warning"},
		"ops+disk@x":                    {"250 ", "disk disk-raid", "info"},
		"ops+DISK+raid@x":               {"250 ", "disk-raid", "info"},
		"ops+none|raid@x":               {"250 ", "disk-raid", "info"},
		"ops+all@x":                     {"250 ", "all disk disk-raid", "info"},
		"Ops_2-x@x":                     {"250 ", "two", "info"},
		"mail@x":                        {"250 ", "mail", "info"},
		"web@x":                         {"550 5.7.1 ", "", ""},
		"ops_2-x@x":                     {"550 5.1.1 there is no such key; check its name, also upper and lower case; ", "", ""},
		"none@x":                        {"550 5.1.1 there is no such key", "", ""},
		`"ops; rm"@x`:                   {"550 5.1.1 ", "", ""},
		"ops.odd@x":                     {"550 5.1.3 ", "", ""},
		"ops.@x":                        {"550 5.1.3 ", "", ""},
		"ops.failure.odd@x":             {"550 5.1.3 ", "", ""},
		"ops+@x":                        {"550 5.1.3 ", "", ""},
		"ops+none@x":                    {"550 5.1.1 none of the 3 destinations", "", ""},
		strings.Repeat("k", 129) + "@x": {"550 5.1.1 ", "", ""},
	} {
		if got := sendMail(t, address, simpleMail, to); !strings.HasPrefix(got, want.answer) {
			t.Errorf("%s: got %s, want %s", to, got, want.answer)
		}
		var paths []string
		for _, a := range s.Take() {
			paths = append(paths, strings.TrimPrefix(a.Path, "/"))
			if a.Type != string(want.typ) || a.Title != "Disk full" || a.Message != "The disk is full." {
				t.Errorf("%s: got %+v", to, a)
			}
		}
		if got := strings.Join(paths, " "); got != want.paths {
			t.Errorf("%s: arrived at %q, want %q", to, got, want.paths)
		}
	}
	refused, sent := 0, false
	for _, e := range mails(t) {
		if e.Outcome == site.OutcomeRefused {
			refused += e.Count
		}
		sent = sent || e.Outcome == site.OutcomeDelivered && e.Key == "ops"
	}
	if refused != 10 || !sent {
		t.Errorf("the history has %d refusals, want 10; it has a delivered mail: %t", refused, sent)
	}
}

// TestMailType checks that a subject that says that a problem is over makes a mail a
// success wherever it is sent, and that the address decides about other mails before
// the subject does.
func TestMailType(t *testing.T) {
	s := gatewaytest.NewStation(t)
	address := newMailServer(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\n}", "")
	for _, tt := range []struct {
		subject, to string
		want        notifier.Type
	}{
		{"[RESOLVED] DiskFull", "ops@x", notifier.Success},
		{"[RESOLVED] DiskFull", "ops.failure@x", notifier.Success},
		{"[FIRING:1] DiskFull", "ops@x", notifier.Failure},
		{"[FIRING:1] DiskFull", "ops.warning@x", notifier.Warning},
		{"[FIRING:1] DiskFull", "ops.success@x", notifier.Success},
		{"[FIRING:1] DiskFull", "ops.info@x", notifier.Info},
		{"Warning: disk", "ops@x", notifier.Warning},
		{"Warning: disk", "ops.failure@x", notifier.Failure},
		{"All is OK", "ops@x", notifier.Info},
		{"All is OK", "ops.failure@x", notifier.Failure},
	} {
		if got := sendMail(t, address, "Subject: "+tt.subject+"\n\nx\n", tt.to); !strings.HasPrefix(got, "250 ") {
			t.Fatal(got)
		}
		if got := s.One(t); got.Type != string(tt.want) || got.Title != tt.subject {
			t.Errorf("%s to %s: got %+v, want the type %s", tt.subject, tt.to, got, tt.want)
		}
	}
	// Each recipient of a mail has the type of its address.
	if got := sendMail(t, address, "Subject: Problem: disk\n\nx\n", "ops.warning@x", "ops@x"); !strings.HasPrefix(got, "250 ") {
		t.Fatal(got)
	}
	types := map[string]bool{}
	for _, a := range s.Take() {
		types[a.Type] = true
	}
	if len(types) != 2 || !types["warning"] || !types["failure"] {
		t.Errorf("two recipients: got %v", types)
	}
}

// TestMailThread checks that the mails of a thread are about one incident, and that
// the same thread to another key is another one.
func TestMailThread(t *testing.T) {
	s := gatewaytest.NewStation(t)
	address := newMailServer(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\n}\nkey door {\nurl "+s.NotifyURL("/door")+"\n}", "")
	incident := func(to, header string) string {
		t.Helper()
		if got := sendMail(t, address, header+"Subject: Disk\n\nx\n", to); !strings.HasPrefix(got, "250 ") {
			t.Fatal(got)
		}
		return s.One(t).Incident
	}
	first := incident("ops.failure@x", "Message-ID: <a@b>\n")
	if len(first) != 32 {
		t.Fatalf("the incident is %q", first)
	}
	if got := incident("ops.success@x", "Message-ID: <c@b>\nReferences: <a@b>\n"); got != first {
		t.Errorf("the next mail of the thread is about %q, not %q", got, first)
	}
	if got := incident("ops@x", "Message-ID: <d@b>\n"); got == first || got == "" {
		t.Errorf("another mail is about %q", got)
	}
	if got := incident("door@x", "Message-ID: <a@b>\n"); got == first || got == "" {
		t.Errorf("a mail to another key is about %q", got)
	}
	if got := incident("ops@x", ""); got != "" {
		t.Errorf("a mail without Message-ID is about %q", got)
	}
}

// TestMailAnswers checks that the answer asks the sender to try again only if another
// attempt can succeed.
func TestMailAnswers(t *testing.T) {
	s := gatewaytest.NewStation(t)
	gone := httptest.NewServer(nil)
	t.Cleanup(gone.Close)
	address := newMailServer(t, `
		key ok {
			url `+s.NotifyURL("/ok")+`
		}
		key down {
			url `+s.NotifyURL("/ok")+`
			url `+s.NotifyURL("/refuse?retry=0")+`
		}
		key wrong {
			url `+s.NotifyURL("/ok")+`
			url `+strings.Replace(gone.URL, "http://", "json://", 1)+`/gone
		}
		key optional {
			url `+s.NotifyURL("/refuse?retry=0&optional=yes")+`
		}`, "max_recipients 3")
	for to, want := range map[string]string{
		"ok@x":                   "250 2.0.0 delivered",
		"optional@x":             "250 2.0.0 delivered",
		"ok@x ok.failure@x":      "250 2.0.0 delivered",
		"down@x":                 "451 4.4.0 1 of 2 destinations",
		"wrong@x":                "554 5.4.0 1 of 2 destinations",
		"wrong@x down@x":         "451 4.4.0 2 of 4 destinations",
		"ok@x down@x wrong@x":    "451 4.4.0 2 of 5 destinations",
		"ok@x ok@y ok@z wrong@x": "452 4.5.3 ",
	} {
		if got := sendMail(t, address, simpleMail, strings.Fields(to)...); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", to, got, want)
		}
	}
}

// TestMailQueue checks that a mail is accepted when the queue has it.
func TestMailQueue(t *testing.T) {
	s := gatewaytest.NewStation(t)
	address := newMailServer(t, "queue {\npath "+t.TempDir()+"\n}\n"+`
		key ops {
			url `+s.NotifyURL("/ok")+`
			url `+s.NotifyURL("/refuse?retry=0")+`
		}
		key off {
			url `+s.NotifyURL("/refuse?retry=0")+`
			queue off
		}`, "")
	got := sendMail(t, address, simpleMail, "ops@x")
	id, ok := strings.CutPrefix(got, "250 2.0.0 queued as ")
	if !ok {
		t.Fatal(got)
	}
	if got := caddyhttptest.Do(t, "GET", "http://"+caddyhttptest.Admin+"/notify/queue/"+id, ""); got.Status != 200 ||
		!strings.Contains(got.Body, id) {
		t.Errorf("the queue does not have the message %s: %d %s", id, got.Status, got.Body)
	}
	if got := caddyhttptest.Do(t, "GET", caddyhttptest.Server+"/notify/messages/"+id, ""); got.Status != 404 {
		t.Errorf("a site shows a mail: %d %s", got.Status, got.Body)
	}
	if got := sendMail(t, address, simpleMail, "off@x"); !strings.HasPrefix(got, "451 4.4.0") {
		t.Errorf("without the queue: %s", got)
	}
	if got := sendMail(t, address, simpleMail, "off@x", "ops@x"); !strings.HasPrefix(got, "451 4.4.0") {
		t.Errorf("one recipient with and one without the queue: %s", got)
	}
}

// TestMailContent checks the message that a mail becomes, and that the text arrives
// without the attachments that exceed a limit.
func TestMailContent(t *testing.T) {
	s := gatewaytest.NewStation(t)
	address := newMailServer(t, `
		max_body 10KiB
		attachments {
			max_size 1KiB
			max_count 2
		}
		key ops {
			url `+s.NotifyURL("/ok")+`
		}`, "max_size 20KiB")
	mixed := func(parts ...string) string {
		return "Subject: Scan\nContent-Type: multipart/mixed; boundary=b\n\n--b\n" + strings.Join(parts, "\n--b\n") + "\n--b--\n"
	}
	file := func(name string, size int) string {
		return "Content-Type: application/pdf; name=" + name + "\nContent-Transfer-Encoding: base64\n\n" +
			base64.StdEncoding.EncodeToString(make([]byte, size))
	}
	for name, tt := range map[string]struct {
		mail, answer       string
		title, text, files string
	}{
		"text":           {simpleMail, "250", "Disk full", "The disk is full.", ""},
		"only a subject": {"Subject: Paper stalled\n\n", "250", "", "Paper stalled", ""},
		"only a text":    {"Paper stalled, tray 2\n", "250", "", "Paper stalled, tray 2", ""},
		"dots":           {"Subject: x\n\n.\n..\nend\n", "250", "x", ".\n..\nend", ""},
		"files": {
			mixed("Content-Type: text/plain\n\nsee", file("a.pdf", 10), file("b.pdf", 1024)),
			"250", "Scan", "see", "a.pdf b.pdf",
		},
		"only a file": {mixed(file("a.pdf", 10)), "250", "Scan", "", "a.pdf"},
		"a file too large": {
			mixed("\nsee", file("a.pdf", 1025), file("b.pdf", 1)), "250", "Scan",
			"see\n\nLeft out: a.pdf (the attachment a.pdf is larger than 1.0 KiB)", "b.pdf",
		},
		"too many files": {
			mixed("\nsee", file("a", 1), file("b", 1), file("c.pdf", 1), file("d.pdf", 1)), "250", "Scan",
			"see\n\nLeft out: c.pdf, d.pdf (the message has too many attachments; send at most 2)", "a.pdf b.pdf",
		},
		"a file with a bad name": {mixed("\nsee", file("the scan.pdf", 1)), "250", "Scan", "see", "the scan.pdf"},
		"a file without a name":  {mixed("\nsee", file("", 1)), "250", "Scan", "see", "attachment.pdf"},
		"a button": {
			"Subject: x\nContent-Type: text/html\n\n<p>The disk is full.</p><a href=\"https://nas.example/disk?n=1&amp;m=2\">View</a>\n", "250", "x",
			"The disk is full.\nView (https://nas.example/disk?n=1&m=2)", "",
		},
		"an unknown charset": {
			"Subject: x\nContent-Type: text/plain; charset=x-none\n\n35 \xb0C\n", "250", "x",
			"35 °C\n\nThe charset \"x-none\" is unknown, so what is not UTF-8 is read as Windows-1252; send UTF-8", "",
		},
		"an unknown charset of HTML": {
			"Subject: x\nContent-Type: text/html; charset=\"<b>\"\n\n<p>35 \xb0C</p>\n", "250", "x",
			"35 °C\nThe charset \"<b>\" is unknown, so what is not UTF-8 is read as Windows-1252; send UTF-8", "",
		},
		"an unknown charset of a subject": {
			"Subject: =?x-none?Q?35_=B0C?=\n\ny\n", "250", "35 °C",
			"y\n\nThe charset \"x-none\" is unknown, so what is not UTF-8 is read as Windows-1252; send UTF-8", "",
		},
		"UTF-8 in an unknown charset": {
			"Subject: x\nContent-Type: text/plain; charset=x-none\n\n35 °C\n", "250", "x", "35 °C", "",
		},
		"a long subject": {
			"Subject: " + strings.Repeat("word ", 500) + "\n\nx\n", "250",
			strings.TrimSpace(strings.Repeat("word ", 500))[:1000], "x", "",
		},
		"empty": {"X: y\n\n", "554 5.6.0 the mail is empty", "", "", ""},
		"a text too large": {
			"Subject: x\n\n" + strings.Repeat("line\n", 3<<10),
			"552 5.3.4 the text of the mail is larger than 10 KiB", "", "", "",
		},
		"a mail too large":     {mixed(file("a.pdf", 20<<10)), "552 5.3.4 Maximum message size exceeded", "", "", ""},
		"an endless line":      {"Subject: x\n\n" + strings.Repeat("x", 70<<10), "55", "", "", ""},
		"from another gateway": {"X-Apprise-Recursion-Count: 1\nSubject: x\n\ny\n", "250", "x", "y", ""},
		"in a loop": {
			"X-Apprise-Recursion-Count: 2\nSubject: x\n\ny\n",
			"554 5.4.6 the message has passed through too many gateways", "", "", "",
		},
		"through many servers": {strings.Repeat("Received: x\n", 101) + "Subject: x\n\ny\n", "554 5.4.6", "", "", ""},
	} {
		if got := sendMail(t, address, tt.mail, "ops@x"); !strings.HasPrefix(got, tt.answer) {
			t.Errorf("%s: got %s, want %s", name, got, tt.answer)
		}
		got := s.Take()
		if tt.title+tt.text+tt.files == "" {
			if len(got) > 0 {
				t.Errorf("%s: a refused mail was sent: %+v", name, got)
			}
			continue
		}
		if len(got) != 1 {
			t.Errorf("%s: %d messages arrived", name, len(got))
			continue
		}
		var files []string
		for _, a := range got[0].Attachments {
			files = append(files, a.Filename)
		}
		if title := strings.TrimSuffix(got[0].Title, "…"); !strings.HasPrefix(tt.title, title) ||
			title == "" && tt.title != "" || got[0].Message != tt.text || strings.Join(files, " ") != tt.files {
			t.Errorf("%s: got %q, %q, %v", name, got[0].Title, got[0].Message, files)
		}
	}
}

// certificate writes a certificate for example.com and its key to files. It returns
// their paths and the TLS configuration of a client that trusts the certificate.
func certificate(t *testing.T) (files string, client *tls.Config) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	c := s.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, b := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, "key.pem": {Type: "PRIVATE KEY", Bytes: key},
	} {
		path := filepath.Join(dir, name)
		files += " " + path
		if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return filepath.Join(dir, "cert.pem") + " " + filepath.Join(dir, "key.pem"), &tls.Config{RootCAs: pool, ServerName: "example.com"}
}

// TestMailAuthentication checks who needs an account, with which mechanisms a client
// can authenticate, and to which keys it may then send.
func TestMailAuthentication(t *testing.T) {
	s := gatewaytest.NewStation(t)
	files, config := certificate(t)
	hash, err := bcrypt.GenerateFromPassword([]byte("tray-2"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	implicit := porttest.Address()
	address := newMailServer(t, `
		key ops {
			url `+s.NotifyURL("/ops")+`
		}
		key other {
			url `+s.NotifyURL("/other")+`
		}`, `
		trusted_clients none
		implicit_tls `+implicit+`
		tls `+files+`
		auth {
			printer `+string(hash)+` ops
			nas `+string(hash)+`
		}`)
	dial := func() mailClient {
		t.Helper()
		return dialTLS(t, address, config, false)
	}

	t.Run("without an account", func(t *testing.T) {
		if got := sendMail(t, address, simpleMail, "ops@x"); !strings.HasPrefix(got, "530 5.7.0") {
			t.Error(got)
		}
	})
	t.Run("without TLS", func(t *testing.T) {
		c := dialMail(t, address)
		if ok, _ := c.Extension("AUTH"); ok {
			t.Error("AUTH is offered without TLS")
		}
		if ok, _ := c.Extension("STARTTLS"); !ok {
			t.Error("STARTTLS is not offered")
		}
		if err := c.logIn("", "nas", "tray-2"); err == nil || !strings.HasPrefix(answerText(t, err), "523") {
			t.Errorf("AUTH without TLS: %v", err)
		}
	})
	for name, identity := range map[string]string{"PLAIN": "", "LOGIN": "LOGIN"} {
		t.Run(name, func(t *testing.T) {
			c := dial()
			if err := c.logIn(identity, "nas", "tray-2"); err != nil {
				t.Fatal(err)
			}
			if got := sendOver(t, c, simpleMail, "other@x"); got != "250 2.0.0 delivered" {
				t.Error(got)
			}
		})
	}
	t.Run("implicit TLS", func(t *testing.T) {
		c := dialTLS(t, implicit, config, true)
		if err := c.logIn("", "printer", "tray-2"); err != nil {
			t.Fatal(err)
		}
		if got := sendOver(t, c, simpleMail, "ops@x"); got != "250 2.0.0 delivered" {
			t.Error(got)
		}
		if got := sendOver(t, c, simpleMail, "other@x"); !strings.HasPrefix(got, "550 5.7.1 the account may not") {
			t.Errorf("a key that is not allowed for the account: %s", got)
		}
	})
	t.Run("wrong credentials", func(t *testing.T) {
		c := dial()
		for _, l := range [][3]string{{"", "nas", "tray-3"}, {"", "nobody", "tray-2"}, {"nas", "printer", "tray-2"}} {
			if err := c.logIn(l[0], l[1], l[2]); err == nil || answerText(t, err) != "535 5.7.8 the user name or the password is wrong" {
				t.Errorf("got %v", err)
			}
		}
	})
	t.Run("three wrong passwords", func(t *testing.T) {
		c := dial()
		for range 3 {
			if err := c.logIn("", "nas", "guess"); err == nil {
				t.Fatal("a wrong password is accepted")
			}
		}
		if err := c.logIn("", "nas", "tray-2"); err == nil {
			t.Error("the connection stays open after three wrong passwords")
		}
	})
	reasons := map[string]bool{}
	for _, e := range mails(t) {
		reasons[e.Reason] = true
		if strings.Contains(fmt.Sprint(e), "tray") || strings.Contains(fmt.Sprint(e), "guess") {
			t.Errorf("the history has a password: %+v", e)
		}
	}
	if !reasons[metrics.RefusalForbidden] {
		t.Errorf("no refusal is recorded: %v", reasons)
	}
}

// TestMailToken checks that a key with a token takes mails only from an account that
// names it, and that nobody else can tell it from a key that does not exist.
func TestMailToken(t *testing.T) {
	s := gatewaytest.NewStation(t)
	files, config := certificate(t)
	hash, err := bcrypt.GenerateFromPassword([]byte("tray-2"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	address := newMailServer(t, `
		key ops {
			url `+s.NotifyURL("/ops")+`
			token 0psT0ken-0psT0ken
		}
		key free {
			url `+s.NotifyURL("/free")+`
		}`, `
		tls `+files+`
		auth {
			printer `+string(hash)+` ops
			nas `+string(hash)+`
		}`)
	const unnamed = "550 5.7.1 there is no such key, or it has a token"
	for _, tt := range []struct{ user, to, want string }{
		{"", "ops@x", unnamed},
		{"", "nothing@x", unnamed},
		{"", "a!b@x", "550 5.1.1"},
		{"", "free@x", "250"},
		{"nas", "ops@x", unnamed},
		{"nas", "nothing@x", unnamed},
		{"nas", "free@x", "250"},
		{"printer", "ops@x", "250"},
		{"printer", "free@x", "550 5.7.1 the account may not send to this key; check its name, also upper and lower case"},
		{"printer", "opps@x", "550 5.7.1 the account may not send to this key; you may mean ops"},
	} {
		c := dialTLS(t, address, config, false)
		if tt.user != "" {
			if err := c.logIn("", tt.user, "tray-2"); err != nil {
				t.Fatal(err)
			}
		}
		if got := sendOver(t, c, simpleMail, tt.to); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%q to %s: %s", tt.user, tt.to, got)
		}
		_ = c.Close()
	}
	if got := s.Paths(); got != "free free ops" {
		t.Errorf("messages at %q", got)
	}
}

// TestMailSaved checks that mails reach saved keys if the global option has configs.
func TestMailSaved(t *testing.T) {
	s := gatewaytest.NewStation(t)
	address := newMailServer(t, "configs {\nmanage open\ntrust operator\n}\nkey k {\nurl "+s.NotifyURL("/k")+"\n}", "")
	if status, text := caddyhttptest.Send(t.Context(), t, "/add/saved", "urls="+s.NotifyURL("/saved")); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if got := sendMail(t, address, simpleMail, "saved.failure@x"); got != "250 2.0.0 delivered" {
		t.Fatal(got)
	}
	if got := s.One(t); got.Path != "/saved" || got.Type != "failure" {
		t.Errorf("got %+v", got)
	}
}

// TestSMTPCaddyfile checks the errors of the block smtp.
func TestSMTPCaddyfile(t *testing.T) {
	const key = "key k {\nurl json://localhost\n}\n"
	hash, err := bcrypt.GenerateFromPassword([]byte("x"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	account := "auth {\nuser " + string(hash) + "\n}\n"
	for block, want := range map[string]string{
		"smtp":                                            "it has no address",
		"smtp localhost":                                  "it is not an address to listen on",
		"smtp udp/:25":                                    "it is not an address to listen on",
		"smtp :99999":                                     "it is not an address to listen on",
		"smtp :25\nsmtp :26":                              "smtp occurs twice",
		"smtp :25 {\nport 25\n}":                          `unknown subdirective "port" in smtp`,
		"smtp :25 {\nhostname a_b/c\n}":                   "hostname: it must be a host name",
		"smtp {\nimplicit_tls :465\n}":                    "implicit_tls needs a certificate",
		"smtp :25 {\n" + account + "}":                    "auth needs a certificate",
		"smtp :25 {\ntls a@b\n}":                          "tls: Caddy cannot obtain a certificate for it",
		"smtp :25 {\ntls a b c\n}":                        "wrong number of arguments; expected tls <domain>",
		"smtp :25 {\ntls none.pem none.key\n}":            "",
		"smtp :25 {\ntls a.example.com\n" + account + "}": "",
		"smtp :25 {\ntls a.example.com\nauth {\nuser secret\n}\n}": "auth: the password is not a hash",
		"smtp :25 {\ntls a.example.com\nauth {\nuser\n}\n}": "the " +
			"hash of the password is missing",
		"smtp :25 {\ntls a.example.com\nauth {\n}\n}":                                                       "auth needs a block",
		"smtp :25 {\ntls a.example.com\nauth {\nuser " + string(hash) + "\nuser " + string(hash) + "\n}\n}": "auth: the user user occurs twice",
		"smtp :25 {\ntls a.example.com\nauth {\nuser {env.HASH}\n}\n}":                                      "",
		"smtp :25 {\ntrusted_clients home\n}": "trusted_clients: " +
			"expected an IP address",
		"smtp :25 {\ntrusted_clients none 10.0.0.0/8\n}":            "trusted_clients: none stands alone",
		"smtp :25 {\ntrusted_clients private_ranges 2001:db8::1\n}": "",
		"smtp :25 {\nmax_size 0\n}":                                 "max_size: it must be a size above 0",
		"smtp :25 {\nmax_recipients 0\n}":                           "max_recipients: it must be a whole number",
		"smtp :25 {\nmax_connections -1\n}":                         "max_connections: it must be a whole number",
		"smtp :25 {\ntimeout 0\n}":                                  "timeout: it must be a duration above 0",
		"smtp unix//run/notify.sock tcp6/:25":                       "",
	} {
		err := new(caddyhttp.App).UnmarshalCaddyfile(caddyfile.NewTestDispenser("notify {\n" + key + block + "\n}"))
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s\ngot %v, want %q", block, err, want)
		case err != nil && (strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "Testfile:")):
			t.Errorf("%s\nthe error shows the password, or has no line: %v", block, err)
		}
	}
	if err := new(caddyhttp.Settings).UnmarshalCaddyfile(caddyfile.NewTestDispenser("notify {\nsmtp :25\n}")); err == nil ||
		!strings.Contains(err.Error(), "smtp belongs into the global option notify") {
		t.Errorf("in a site: %v", err)
	}
}

// TestForeignMail checks that mails count as texts of another program, with plain
// text and with HTML.
func TestForeignMail(t *testing.T) {
	// A link whose text hides its address, in Markdown, and as a destination that takes Markdown gets it.
	const disguised, shown = "[click](https://evil.example)", `\[click\](https://evil.example)`
	s := gatewaytest.NewStation(t)
	address := newMailServer(t, "key ops {\nurl "+s.NotifyURL("/ops")+"?format=markdown\n}", "")
	for mail, want := range map[string]string{
		"Subject: x\n\n" + disguised + "\n": shown,
		"Subject: x\nContent-Type: text/html\n\n<a href=\"https://evil.example\">click</a> &#91;click](https://evil.example)\n": `click ` +
			`(https://evil.example) \[click](https://evil.example)`,
	} {
		if got := sendMail(t, address, mail, "ops@mail.example.com"); !strings.HasPrefix(got, "250") {
			t.Error(got)
		}
		if got := s.One(t); got.Message != want {
			t.Errorf("got %q, want %q", got.Message, want)
		}
	}
}
