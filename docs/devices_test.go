package docs_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	netsmtp "net/smtp"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	domain "github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/smtpd"
	"github.com/caddy-notify/caddy-notify/internal/golden"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// devices are the rows of the table in docs/devices.md, and what is odd about what they send. Each
// has a sample in testdata/devices: a mail, whose sender is in Return-Path, or a request.
var devices = []struct{ kind, name, file, odd string }{
	{"camera", "Hikvision", "hikvision.eml", "the sender `<Front Door@cam>`, which is no address; a picture"},
	{
		"camera", "Reolink", "reolink.eml",
		"the sender `<camera@>`; `\"base64\"` in quotes and without padding; a picture without a name and a type",
	},
	{"camera", "Axis", "axis.http", "a picture alone, by HTTP to `/notify/KEY/ntfy/TOPIC?title=…`"},
	{"NAS", "Synology DSM", "synology.eml", "subject and text in base64"},
	{"NAS", "QNAP", "qnap.eml", "HTML alone"},
	{"NAS", "TrueNAS", "truenas.eml", "the sender `<root>`; text and HTML, quoted-printable"},
	{"UPS", "apcupsd", "apcupsd.eml", "the sender `<UPS>`; a header without an empty line at its end"},
	{"UPS", "NUT", "nut.eml", "the sender `<nut>`; no MIME"},
	{"UPS", "Eaton", "eaton.eml", "a boundary that is not the declared one; ISO 8859-1; a file whose name has no extension"},
	{"printer", "HP", "hp.eml", "the sender `<HP LaserJet@>`; plain text that is declared as base64"},
	{"printer", "Brother", "brother.eml", "ISO 8859-1 without a charset"},
	{"printer", "Canon", "canon.eml", "a scan: no text, and a PDF whose name has no extension"},
	{"router", "MikroTik", "mikrotik.eml", "ISO 8859-1 that is declared as UTF-8"},
	{"router", "OPNsense, with Monit", "opnsense.eml", "plain text"},
	{"router", "Fritz!Box", "fritzbox.eml", "HTML with a picture in it"},
	{"CI", "Jenkins", "jenkins.eml", "the sender `<jenkins>`; a `From` that is not configured"},
	{"CI", "GitLab", "gitlab.http", "its webhook, to `/notify/KEY/gitlab`"},
	{"CI", "GitHub Actions", "github.http", "a step with `curl -d`, with a percent sign that is not escaped"},
}

// TestDevices sends what devices send, and compares how it arrives with the table of docs/devices.md,
// and the texts with a golden file.
func TestDevices(t *testing.T) {
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}},
		Site:   site.Options{Egress: gatewaytest.Loopback()},
	})
	m := newMailbox(t)
	table, texts := "| | sender | what is special | title | files |\n| --- | --- | --- | --- | --- |\n", ""
	for _, d := range devices {
		data, err := os.ReadFile(filepath.Join("testdata", "devices", d.file))
		if err != nil {
			t.Fatal(err)
		}
		var title, text, files string
		if strings.HasSuffix(d.file, ".eml") {
			title, text, files = m.receive(t, d.name, data)
		} else {
			if got := g.Do(readRequest(t, data)); got.Status/100 != 2 {
				t.Errorf("%s: %d %s", d.name, got.Status, got.Body)
				continue
			}
			a := s.One(t)
			title, text = a.Type+": "+a.Title, a.Message
			for _, f := range a.Attachments {
				files += f.Filename
			}
		}
		table += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", d.kind, d.name, d.odd, cell(title), cell(files))
		texts += "--- " + d.name + "\n" + strings.TrimSpace(text) + "\n"
	}
	golden.Check(t, filepath.Join("testdata", "devices", "texts.golden"), texts)
	if page := readFile(t, "docs/devices.md"); !strings.Contains(page, table) {
		t.Errorf("docs/devices.md has another table than\n%s", table)
	}
}

// maxCell bounds a text in the table, in bytes.
const maxCell = 90

// cell returns a text as a cell of a table.
func cell(text string) string {
	text = strings.NewReplacer("\n", " ", "\t", " ", "|", `\|`, "<", "&lt;", "[", `\[`, "*", `\*`, "_",
		`\_`).Replace(strings.Join(strings.Fields(text), " "))
	if cut := markup.TruncateBytes(text, maxCell); cut != text {
		return strings.TrimSuffix(cut, "…") + "…"
	}
	return text
}

// readRequest returns the request in a sample, whose lines end with line feeds.
func readRequest(t *testing.T, data []byte) *http.Request {
	t.Helper()
	head, body, ok := bytes.Cut(data, []byte("\n\n"))
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(head) + "\n\n")))
	if err != nil || !ok {
		t.Fatal(err)
	}
	q := httptest.NewRequest(r.Method, r.URL.String(), bytes.NewReader(body))
	q.Header = r.Header
	return q
}

// mailbox is a mail server that keeps the last mail as a message.
type mailbox struct {
	address            string
	mu                 sync.Mutex
	title, text, files string
}

// newMailbox starts a mailbox.
func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	m := new(mailbox)
	s := smtpd.New(smtpd.Config{
		Hostname: "gateway", MaxSize: 1 << 20, MaxRecipients: 1, MaxConnections: 10, Timeout: time.Minute,
		Local: true, Log: zap.NewNop(),
	}, smtpd.Gateway{
		Check:   func(smtpd.Recipient) error { return nil },
		Refused: func(r smtpd.Refusal) { t.Errorf("refused: %+v", r) },
		Deliver: m.deliver,
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.address = l.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() { s.Serve(l, false) })
	t.Cleanup(func() {
		s.Stop(new(smtpd.Replaced), false)
		serving.Wait()
	})
	return m
}

func (m *mailbox) deliver(mail io.Reader, _ []smtpd.Recipient) (*smtpd.Outcome, error) {
	q, _, err := api.ReadMail(mail, domain.Limits{MaxBody: 1 << 20, MaxFiles: 10, MaxFileSize: 1 << 20})
	if err != nil {
		return nil, err
	}
	defer q.Close()
	message, err := q.Message()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.title, m.files = string(message.Type)+": "+message.Title, ""
	m.text = markup.Convert(message.Body, message.Format, markup.Text)
	files, err := q.Attachments(context.Background(), nil)
	for _, f := range files {
		m.files += f.Name
	}
	return new(smtpd.Outcome), err
}

// receive sends a mail to the mailbox, as its device does, and returns the message.
func (m *mailbox) receive(t *testing.T, name string, data []byte) (title, text, files string) {
	t.Helper()
	path, mail, _ := bytes.Cut(data, []byte("\n"))
	from := strings.TrimPrefix(string(path), "Return-Path: ")
	c, err := net.Dial("tcp", m.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := netsmtp.NewClient(c, "gateway")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"EHLO device", "MAIL FROM:" + from, "RCPT TO:<ops@alerts.example.com>"} {
		id, err := s.Text.Cmd("%s", command)
		if err != nil {
			t.Fatal(err)
		}
		s.Text.StartResponse(id)
		if _, _, err := s.Text.ReadResponse(250); err != nil {
			t.Errorf("%s: %s: %v", name, command, err)
		}
		s.Text.EndResponse(id)
	}
	w, err := s.Data()
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if _, err = w.Write(mail); err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.title, m.text, m.files
}
