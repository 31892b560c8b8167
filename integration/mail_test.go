//go:build integration

package integration

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// eximConfig is an Exim that takes mail from the user gateway and puts all of
// it into one folder.
const eximConfig = `
primary_hostname = mail.example.com
spool_directory = DIR/spool
log_file_path = DIR/spool/%slog
pid_file_path = DIR/spool/pid
local_interfaces = 127.0.0.1
tls_advertise_hosts = *
tls_certificate = CERT
tls_privatekey = KEY
tls_on_connect_ports = TLSPORT
smtputf8_advertise_hosts = *
auth_advertise_hosts = *
acl_smtp_rcpt = rcpt
acl_smtp_data = data
deliver_drop_privilege
host_lookup =
rfc1413_query_timeout = 0s
keep_environment =
begin acl
rcpt:
  deny local_parts = nobody
       message = no such user
  accept authenticated = *
  deny message = sign in first
data:
  deny message = the header is malformed
       ! verify = header_syntax
  accept add_header = X-Came: ${if def:tls_in_cipher{encrypted}{clear}} $sender_host_authenticated
begin routers
all:
  driver = accept
  transport = box
begin transports
box:
  driver = appendfile
  directory = DIR/box
  maildir_format
  envelope_to_add
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${if and{{eq{$auth2}{gateway}}{eq{$auth3}{secret-word}}}}
login:
  driver = plaintext
  public_name = LOGIN
  server_prompts = Username:: : Password::
  server_condition = ${if and{{eq{$auth1}{gateway}}{eq{$auth2}{secret-word}}}}
cram:
  driver = cram_md5
  public_name = CRAM-MD5
  server_secret = ${if eq{$auth1}{gateway}{secret-word}fail}
`

// exim is a mail server and the folder that it puts mail into.
type exim struct {
	clear, tls int // ports
	box        string
	restart    func()
}

func startExim(t *testing.T, authority *signer) *exim {
	t.Helper()
	name := program(t, "exim4", "exim4-daemon-light")
	dir := t.TempDir()
	for _, sub := range []string{"..", "spool", "box"} {
		// Exim runs as a user of its own where root starts it.
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	e := &exim{clear: freePort(t), tls: freePort(t), box: filepath.Join(dir, "box", "new")}
	cert, key := authority.certificate(t)
	config := writeFile(t, "exim.conf", strings.NewReplacer("DIR", dir, "CERT", cert, "KEY", key, "TLSPORT", fmt.Sprint(e.tls)).Replace(eximConfig))
	args := []string{"-C", config, "-bdf", "-oX", fmt.Sprintf("%d : %d", e.clear, e.tls)}
	s := start(t, e.clear, name, args...)
	e.restart = func() {
		s.stop()
		s = start(t, e.clear, name, args...)
	}
	return e
}

// url is that of a user, and of what is behind the host.
func (e *exim) url(scheme, login, rest string) string {
	port := e.clear
	if strings.Contains(rest, "mode=ssl") {
		port = e.tls
	}
	return fmt.Sprintf("%s://%s@127.0.0.1:%d/you@example.org?from=gateway@example.com&%s", scheme, login, port, rest)
}

// next waits for a mail and takes it out of the folder.
func (e *exim) next(t *testing.T) *mail.Message {
	t.Helper()
	var files []string
	eventually(t, "a mail is there", func() bool {
		files, _ = filepath.Glob(filepath.Join(e.box, "*"))
		return len(files) > 0
	})
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	m, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// leaves are the parts of a mail that are no containers, each with its type
// before it.
func leaves(t *testing.T, h mail.Header, body io.Reader) (out []string) {
	t.Helper()
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(kind, "multipart/") {
		for r := multipart.NewReader(body, params["boundary"]); ; {
			p, err := r.NextRawPart()
			if err == io.EOF {
				return out
			}
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, leaves(t, mail.Header(p.Header), p)...)
		}
	}
	switch h.Get("Content-Transfer-Encoding") {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return append(out, kind, string(text))
}

func TestExim(t *testing.T) {
	e, stranger := startExim(t, authority), startExim(t, newSigner())
	const login = "gateway:secret-word"

	// Exim answers to each kind of connection and of signing in.
	for _, c := range []struct{ scheme, rest, connection, auth string }{
		{"mailto", "", "clear", "cram"}, {"mailto", "auth=plain", "clear", "plain"}, {"mailto", "auth=login", "clear", "login"},
		{"mailtos", "", "encrypted", "plain"}, {"mailtos", "auth=login", "encrypted", "login"}, {"mailtos", "mode=ssl", "encrypted", "plain"}, {"mailtos", "mode=ssl&auth=cram-md5", "encrypted", "cram"},
	} {
		delivers(t, newSender(t), e.url(c.scheme, login, c.rest+"&format=text"), body)
		m := e.next(t)
		// Mail ends in a line break, and has no other than CR LF on its way.
		if got := leaves(t, m.Header, m.Body); len(got) != 2 || strings.TrimSuffix(got[1], "\n") != body {
			t.Errorf("%s %s: got %q", c.scheme, c.rest, got)
		}
		if m.Header.Get("X-Came") != c.connection+" "+c.auth || m.Header.Get("Envelope-To") != "you@example.org" {
			t.Errorf("%s %s: %v", c.scheme, c.rest, m.Header)
		}
	}

	// All of a message arrives.
	file := bytes.Repeat([]byte("\r\n.\r\n\x00\xff"), 300_000)
	r, _ := send(t, newSender(t), e.url("mailtos", login, "cc=%22D%C3%B6e,%20Jo%22%3Cjo@example.org%3E&name=W%C3%A4chter&+X-Origin=gateway"), &notifier.Message{
		Title: "Über 90 %", Body: "<p>" + body + "</p>", Format: notifier.HTML,
		Attachments: []*notifier.Attachment{notifier.NewAttachment("größe.bin", "application/octet-stream", file)},
	})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	copies := []*mail.Message{e.next(t), e.next(t)}
	for _, m := range copies {
		got := leaves(t, m.Header, m.Body)
		if len(got) != 6 || got[0] != "text/plain" || got[2] != "text/html" || got[3] != "<p>"+body+"</p>" || got[5] != string(file) {
			t.Errorf("got %.300q", got)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
		if err != nil || subject != "Über 90 %" || m.Header.Get("X-Origin") != "gateway" {
			t.Errorf("%v: %v", err, m.Header)
		}
		if cc, err := m.Header.AddressList("Cc"); err != nil || cc[0].Name != "Döe, Jo" {
			t.Errorf("%v: %v", err, cc)
		}
	}
	to := []string{copies[0].Header.Get("Envelope-To"), copies[1].Header.Get("Envelope-To")}
	if slices.Sort(to); !slices.Equal(to, []string{"jo@example.org", "you@example.org"}) {
		t.Errorf("to %q", to)
	}
	delivers(t, newSender(t), e.url("mailtos", login, "to=j%C3%BCrgen@b%C3%BCcher.example"), body)
	to = []string{e.next(t).Header.Get("Envelope-To"), e.next(t).Header.Get("Envelope-To")}
	if !slices.Contains(to, "jürgen@xn--bcher-kva.example") {
		t.Errorf("to %q", to)
	}

	// What must not work, does not.
	for _, mode := range []string{"mode=starttls", "mode=ssl"} {
		fails(t, newSender(t), stranger.url("mailtos", login, mode), "certificate", "secret-word")
		delivers(t, newSender(t), stranger.url("mailtos", login, mode+"&verify=no"), body)
		stranger.next(t)
	}
	for _, auth := range []string{"plain", "login", "cram-md5"} {
		fails(t, newSender(t), e.url("mailtos", "gateway:wrong-password", "auth="+auth), "the mail server answered 535 Incorrect authentication data (signing in)", "wrong-password")
	}
	fails(t, newSender(t), e.url("mailto", "gateway", ""), "550 sign in first", "")
	fails(t, newSender(t), e.url("mailtos", login, "cc=nobody@example.org"), "recipient 2 of 2: the mail server answered 550 no such user", "")
	e.next(t)

	// A restart between two messages loses none.
	s := newSender(t)
	delivers(t, s, e.url("mailtos", login, "format=text"), "before")
	e.next(t)
	e.restart()
	delivers(t, s, e.url("mailtos", login, "format=text"), "after")
	if m := e.next(t); !strings.Contains(fmt.Sprint(leaves(t, m.Header, m.Body)), "after") {
		t.Error("another mail arrived")
	}
}
