package integration

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// eximConfig configures Exim to accept mail from the user gateway and to store
// it in one folder.
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
xoauth2:
  driver = plaintext
  public_name = XOAUTH2
  server_prompts = :
  server_condition = ${if eq{$auth1}{user=gateway\x01auth=Bearer secret-word\x01\x01}}
cram:
  driver = cram_md5
  public_name = CRAM-MD5
  server_secret = ${if eq{$auth1}{gateway}{secret-word}fail}
`

// exim is a mail server and the folder in which it stores mail.
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
		// Started by root, Exim runs as another user.
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	e := &exim{clear: freePort(t), tls: freePort(t), box: filepath.Join(dir, "box", "new")}
	cert, key := authority.certificate(t)
	config := writeFile(t, "exim.conf",
		strings.NewReplacer("DIR", dir, "CERT", cert, "KEY", key, "TLSPORT", fmt.Sprint(e.tls)).Replace(eximConfig))
	args := []string{"-C", config, "-bdf", "-oX", fmt.Sprintf("%d : %d", e.clear, e.tls)}
	s := start(t, e.clear, name, args...)
	e.restart = func() {
		s.stop()
		s = start(t, e.clear, name, args...)
	}
	return e
}

// url returns a notification URL with this user and this text after the host.
func (e *exim) url(scheme, login, rest string) string {
	port := e.clear
	if strings.Contains(rest, "mode=ssl") {
		port = e.tls
	}
	return fmt.Sprintf("%s://%s@127.0.0.1:%d/you@example.org?from=gateway@example.com&%s", scheme, login, port, rest)
}

// next waits for a mail, and removes it from the folder.
func (e *exim) next(t *testing.T) *mail.Message {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(e.source(t)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// source is like [exim.next], but returns the source of the mail.
func (e *exim) source(t *testing.T) []byte {
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
	return data
}

// leaves returns the parts of a mail that contain no others, each after its
// type.
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

	// Each kind of connection and of authentication.
	for _, c := range []struct{ scheme, rest, connection, auth string }{
		{"mailto", "", "clear", "cram"},
		{"mailto", "auth=plain", "clear", "plain"},
		{"mailto", "auth=login", "clear", "login"},
		{"mailtos", "auth=xoauth2", "encrypted", "xoauth2"},
		{"mailtos", "", "encrypted", "plain"},
		{"mailtos", "auth=login", "encrypted", "login"},
		{"mailtos", "mode=ssl", "encrypted", "plain"},
		{"mailtos", "mode=ssl&auth=cram-md5", "encrypted", "cram"},
	} {
		delivers(t, newSender(t), e.url(c.scheme, login, c.rest+"&format=text"), body)
		m := e.next(t)
		// A mail ends in a line break, and every line break is CR LF.
		if got := leaves(t, m.Header, m.Body); len(got) != 2 || strings.TrimSuffix(got[1], "\n") != body {
			t.Errorf("%s %s: got %q", c.scheme, c.rest, got)
		}
		if m.Header.Get("X-Came") != c.connection+" "+c.auth || m.Header.Get("Envelope-To") != "you@example.org" {
			t.Errorf("%s %s: %v", c.scheme, c.rest, m.Header)
		}
	}

	// Every part of a message arrives.
	file := bytes.Repeat([]byte("\r\n.\r\n\x00\xff"), 300_000)
	r, _ := send(t, newSender(t), e.url("mailtos", login,
		"cc=%22D%C3%B6e,%20Jo%22%3Cjo@example.org%3E&name=W%C3%A4chter&+X-Origin=gateway"), &notifier.Message{
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

	// Failures.
	for _, mode := range []string{"mode=starttls", "mode=ssl"} {
		fails(t, newSender(t), stranger.url("mailtos", login, mode), "certificate", "secret-word")
		delivers(t, newSender(t), stranger.url("mailtos", login, mode+"&verify=no"), body)
		stranger.next(t)
	}
	for _, auth := range []string{"plain", "login", "cram-md5", "xoauth2"} {
		fails(t, newSender(t), e.url("mailtos", "gateway:wrong-password", "auth="+auth),
			"the mail server answered 535 Incorrect authentication data (signing in)", "wrong-password")
	}
	fails(t, newSender(t), e.url("mailto", "gateway", ""), "550 sign in first", "")
	fails(t, newSender(t), e.url("mailtos", login, "cc=nobody@example.org"), "recipient 2 of 2: the mail server answered 550 no such user", "")
	e.next(t)

	// No message is lost when the server restarts between two messages.
	s := newSender(t)
	delivers(t, s, e.url("mailtos", login, "format=text"), "before")
	e.next(t)
	e.restart()
	delivers(t, s, e.url("mailtos", login, "format=text"), "after")
	if m := e.next(t); !strings.Contains(fmt.Sprint(leaves(t, m.Header, m.Body)), "after") {
		t.Error("another mail arrived")
	}
}

// mailReader is a Python program that parses a mail with Python's own parser, and
// prints its content and its defects.
const mailReader = `
import base64, email, email.policy, json, sys
m = email.message_from_binary_file(sys.stdin.buffer, policy=email.policy.default)
print(json.dumps({
  "defects": [str(d) for p in m.walk() for d in p.defects + [d for v in p.values() for d in v.defects]],
  "header": {name: str(m[name]) for name in m.keys()},
  "text": m.get_body(("plain",)).get_content(),
  "html": m.get_body(("html",)).get_content(),
  "files": [{"kind": p.get_content_disposition() + " " + p.get_content_type(), "name": p.get_filename(), "id": p["Content-ID"],
    "data": base64.b64encode(p.get_payload(decode=True)).decode()} for p in m.walk() if p.get_content_disposition()],
}))`

// readMail returns the output of mailReader.
type readMail struct {
	Defects    []string
	Header     map[string]string
	Text, HTML string
	Files      []struct {
		Kind, Name, ID string
		Data           []byte
	}
}

func readWithPython(t *testing.T, source []byte) (m readMail) {
	t.Helper()
	cmd := exec.Command(program(t, "python3", "python3"), "-c", mailReader)
	cmd.Stdin = bytes.NewReader(source)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMailReadsRight checks that a mail program shows a mail as it was sent.
func TestMailReadsRight(t *testing.T) {
	e := startExim(t, authority)
	picture, file := []byte("\x89PNG\r\n\x1a\n\x00\xff"), []byte("line\r\n.\r\nline\n")
	url := e.url("mailtos", "gateway:secret-word", "name=Die%20W%C3%A4chter&"+
		"reply=%22Hilfe,%20Z%C3%BCrich%22%3Chelp@example.com%3E&bcc=secret@example.org"+
		"&+X-Ort=Z%C3%BCrich%20%E2%98%83&inline=yes&format=html")
	r, _ := send(t, newSender(t), strings.Replace(url, "/you@", "/%22D%C3%B6e,%20Jo%22%3Cyou@", 1), &notifier.Message{
		Title: strings.Repeat("Über 90 % ☃ ", 20) + "Ende", Body: "<p>Größe: 漢字</p>" + strings.Repeat("<p>long</p>", 300), Format: notifier.HTML,
		Attachments: []*notifier.Attachment{
			notifier.NewAttachment("Kurve ☃.png", "image/png", picture),
			notifier.NewAttachment("größe.txt", "text/plain", file),
		},
	})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	var to []string
	for range 2 {
		source := e.source(t)
		m := readWithPython(t, source)
		to = append(to, m.Header["Envelope-to"])
		if len(m.Defects) > 0 {
			t.Errorf("Python finds the defects %q", m.Defects)
		}
		for name, want := range map[string]string{
			"Subject": strings.Repeat("Über 90 % ☃ ", 20) + "Ende", "From": "Die Wächter <gateway@example.com>", "To": `"Döe, Jo" <you@example.org>`,
			"Reply-To": `"Hilfe, Zürich" <help@example.com>`, "X-Ort": "Zürich ☃", "Bcc": "",
		} {
			if m.Header[name] != want {
				t.Errorf("%s is %q instead of %q", name, m.Header[name], want)
			}
		}
		if !strings.Contains(m.Text, "Größe: 漢字") || !strings.Contains(m.HTML, "<p>Größe: 漢字</p>") {
			t.Errorf("the text reads %.100q, and %.100q", m.Text, m.HTML)
		}
		if len(m.Files) != 2 {
			t.Fatalf("the files are %+v", m.Files)
		}
		if p := m.Files[0]; p.Kind != "inline image/png" ||
			p.Name != "Kurve ☃.png" || !bytes.Equal(p.Data, picture) ||
			!strings.Contains(m.HTML, `<img src="cid:`+strings.Trim(p.ID, "<>")+`">`) {
			t.Errorf("the picture is %+v", p)
		}
		if p := m.Files[1]; p.Kind != "attachment text/plain" || p.Name != "größe.txt" || !bytes.Equal(p.Data, file) {
			t.Errorf("the file is %+v", p)
		}
		// Exim writes the recipient to a separate line.
		if bytes.Count(source, []byte("secret@example.org")) != strings.Count(m.Header["Envelope-to"], "secret@example.org") {
			t.Error("the mail names the recipient of a blind copy")
		}
	}
	if slices.Sort(to); !slices.Equal(to, []string{"secret@example.org", "you@example.org"}) {
		t.Errorf("it went to %q", to)
	}
}

// TestMailGnuPG checks that GnuPG decrypts an encrypted mail and verifies its
// signature.
func TestMailGnuPG(t *testing.T) {
	home, e := t.TempDir(), startExim(t, authority)
	// GnuPG starts an agent, which keeps running.
	t.Cleanup(func() { _ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run() })
	gpg := func(in []byte, args ...string) (out []byte, said string) {
		t.Helper()
		cmd := exec.Command(program(t, "gpg", "gnupg"),
			append([]string{"--homedir", home, "--batch", "--pinentry-mode", "loopback", "--passphrase", ""}, args...)...)
		var stdout, stderr bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%q: %v: %s", args, err, stderr.String())
		}
		return stdout.Bytes(), stderr.String()
	}
	for _, user := range []string{"you@example.org", "gateway@example.com"} {
		gpg(nil, "--quick-generate-key", user)
	}
	public, _ := gpg(nil, "--export", "you@example.org")
	private, _ := gpg(nil, "--export-secret-keys", "gateway@example.com")
	for _, c := range []struct{ rest, says string }{
		{"pgpprv=" + base64.StdEncoding.EncodeToString(private), `Good signature from "gateway@example.com"`},
		{"", "encrypted with"},
	} {
		query := strings.NewReplacer("+", "%2B", "=", "%3D").Replace(base64.StdEncoding.EncodeToString(public))
		delivers(t, newSender(t),
			e.url("mailtos", "gateway:secret-word", "format=text&pgppub="+query+"&"+strings.ReplaceAll(c.rest, "+", "%2B")),
			body)
		m := e.next(t)
		parts := leaves(t, m.Header, m.Body)
		if len(parts) != 4 || parts[0] != "application/pgp-encrypted" || strings.Contains(parts[3], "漢字") {
			t.Fatalf("got %.300q", parts)
		}
		inner, said := gpg([]byte(parts[3]), "--decrypt")
		if !strings.Contains(said, c.says) {
			t.Errorf("unexpected output of GnuPG: %s", said)
		}
		clear, err := mail.ReadMessage(bytes.NewReader(inner))
		if err != nil {
			t.Fatal(err)
		}
		if got := leaves(t, clear.Header, clear.Body); len(got) != 2 || strings.ReplaceAll(got[1], "\r\n", "\n") != body {
			t.Errorf("the decrypted part is %q", got)
		}
	}
}
