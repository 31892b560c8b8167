package integration

import (
	"context"
	"encoding/xml"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mellium.im/sasl"
	"mellium.im/xmlstream"
	"mellium.im/xmpp"
	"mellium.im/xmpp/jid"
	"mellium.im/xmpp/stanza"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// prosodyServer is an XMPP server with two ports.
type prosodyServer struct {
	clear, direct int
	file          string
	process       *server
}

func (p *prosodyServer) restart(t *testing.T) {
	p.process.stop()
	p.process = start(t, p.clear, program(t, "prosody", "prosody"), "--config", p.file)
}

// prosody starts the server of example.org with the users gateway and bob, whose
// password is "secret-word", and with rooms at rooms.example.org. protocol is the
// version of TLS.
func prosody(t *testing.T, s *signer, protocol string) *prosodyServer {
	t.Helper()
	daemon := program(t, "prosody", "prosody")
	cert, key := s.certificate(t, "example.org")
	clear, direct := freePort(t), freePort(t)
	data := t.TempDir()
	accounts := filepath.Join(data, "example%2eorg", "accounts")
	if err := os.MkdirAll(accounts, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"gateway", "bob"} {
		if err := os.WriteFile(filepath.Join(accounts, user+".dat"), []byte(`return { ["password"] = "secret-word" };`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := writeFile(t, "prosody.cfg.lua", fmt.Sprintf(`
run_as_root = true
data_path = %q
interfaces = { "127.0.0.1" }
c2s_ports = { %d }
c2s_direct_tls_ports = { %d }
modules_enabled = { "roster", "saslauth", "tls", "disco", "ping", "offline" }
modules_disabled = { "s2s", "posix" }
authentication = "internal_plain"
c2s_require_encryption = false
ssl = { certificate = %q; key = %q; protocol = %q }
log = { debug = "*console" }
VirtualHost "example.org"
Component "rooms.example.org" "muc"
	restrict_room_creation = false
	muc_room_default_public_jids = true
`, data, clear, direct, cert, key, protocol))
	return &prosodyServer{clear, direct, file, start(t, clear, daemon, "--config", file)}
}

// reader is a session of the user bob in the room ops.
type reader struct {
	messages chan readMessage
}

type readMessage struct {
	stanza.Message
	Subject string `xml:"subject"`
	Body    string `xml:"body"`
}

func read(t *testing.T, port int) *reader {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	signIn := xmpp.SASL("", "secret-word", sasl.ScramSha1)
	signIn.Necessary = 0
	session, err := xmpp.NewClientSession(ctx, jid.MustParse("bob@example.org"), conn, xmpp.BindResource(), signIn)
	if err != nil {
		t.Fatal(err)
	}
	r, inside := &reader{make(chan readMessage, 10)}, make(chan struct{}, 10)
	go session.Serve(xmpp.HandlerFunc(func(in xmlstream.TokenReadEncoder, start *xml.StartElement) error {
		d := xml.NewTokenDecoder(xmlstream.MultiReader(xmlstream.Token(*start), in))
		switch start.Name.Local {
		case "message":
			var m readMessage
			if err := d.Decode(&m); err != nil {
				return err
			}
			if m.Body != "" {
				r.messages <- m
			}
		case "presence":
			for _, a := range start.Attr {
				if a.Value == "ops@rooms.example.org/bob" {
					inside <- struct{}{}
				}
			}
		}
		return nil
	}))
	for _, p := range []xml.TokenReader{
		stanza.Presence{}.Wrap(nil),
		stanza.Presence{To: jid.MustParse("ops@rooms.example.org/bob")}.Wrap(xmlstream.Wrap(nil,
			xml.StartElement{Name: xml.Name{Space: "http://jabber.org/protocol/muc", Local: "x"}})),
	} {
		if err := session.Send(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-inside:
	case <-ctx.Done():
		t.Fatal("bob cannot join the room")
	}
	// A new room is locked until its owner accepts its settings.
	answer, err := session.SendIQ(ctx, stanza.IQ{To: jid.MustParse("ops@rooms.example.org"), Type: stanza.SetIQ}.Wrap(xmlstream.Wrap(
		xmlstream.Wrap(nil, xml.StartElement{
			Name: xml.Name{Space: "jabber:x:data", Local: "x"},
			Attr: []xml.Attr{{Name: xml.Name{Local: "type"}, Value: "submit"}},
		}),
		xml.StartElement{Name: xml.Name{Space: "http://jabber.org/protocol/muc#owner", Local: "query"}})))
	if err != nil {
		t.Fatal(err)
	}
	answer.Close() // the session reads no further before it is closed
	return r
}

// expect expects a message from this sender.
func (r *reader) expect(t *testing.T, from, subject, body string) {
	t.Helper()
	select {
	case m := <-r.messages:
		if !strings.HasPrefix(m.From.String(), from) || m.Subject != subject || m.Body != body {
			t.Errorf("bob got %q, %q, %q; want %q, %q, %q", m.From, m.Subject, m.Body, from, subject, body)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("no message %q arrived", body)
	}
}

func TestProsody(t *testing.T) {
	p := prosody(t, authority, "tlsv1_2+")
	clear, direct := p.clear, p.direct
	bob := read(t, clear)
	url := func(scheme string, port int, rest string) string {
		return fmt.Sprintf("%s://gateway:secret-word@example.org:%d/%s&xmpp=127.0.0.1", scheme, port, rest)
	}
	const tabs = body + "\n\ttabs"

	delivers(t, newSender(t), url("xmpp", clear, "bob?"), tabs)
	bob.expect(t, "gateway@example.org/", "", tabs)
	delivers(t, newSender(t), url("xmpps", clear, "bob?roster=yes"), tabs)
	bob.expect(t, "gateway@example.org/", "", tabs)
	delivers(t, newSender(t), url("xmpps", direct, "bob@example.org?mode=tls"), body)
	bob.expect(t, "gateway@example.org/", "", body)
	delivers(t, newSender(t), url("xmpp", clear, "%23ops@rooms.example.org?name=alerts"), tabs)
	bob.expect(t, "ops@rooms.example.org/alerts", "", tabs)
	if r, _ := send(t, newSender(t), url("xmpps", clear, "bob?subject=yes"), &notifier.Message{Title: "Disk", Body: body}); r.Err != nil {
		t.Error(r.Err)
	}
	bob.expect(t, "gateway@example.org/", "Disk", body)

	bad := prosody(t, newSigner(), "tlsv1_2+")
	fails(t, newSender(t), url("xmpps", bad.clear, "bob?"), "certificate", "secret-word")
	fails(t, newSender(t), url("xmpps", bad.direct, "bob?mode=tls"), "certificate", "secret-word")
	delivers(t, newSender(t), url("xmpps", bad.direct, "bob?mode=tls&verify=no"), body)

	wrong := strings.NewReplacer("secret-word", "wrong-password")
	for _, scheme := range []string{"xmpp", "xmpps"} {
		denies(t, newSender(t), wrong.Replace(url(scheme, clear, "bob?")), "the XMPP server refused the sign-in", "wrong-password")
	}
	fails(t, newSender(t), url("xmpp", clear, "nobody?"), "the XMPP server refused the message: service-unavailable", "secret-word")
	fails(t, newSender(t), url("xmpp", clear, "%23ops@nowhere.example.org?"), "the XMPP server refused to let us into the room", "secret-word")

	s := newSender(t)
	both := url("xmpps", clear, "bob/%23ops@rooms.example.org?")
	delivers(t, s, both, "before")
	p.restart(t)
	bob = read(t, clear)
	delivers(t, s, both, "after")
	for range 2 {
		bob.expect(t, "", "", "after") // from the user and from the room, in any order
	}
}

// TestProsodyChannelBinding uses TLS 1.2, with which Prosody supports channel
// binding.
func TestProsodyChannelBinding(t *testing.T) {
	p := prosody(t, authority, "tlsv1_2")
	bob := read(t, p.clear)
	for _, rest := range []string{"bob?", "bob?scramplus=no"} {
		delivers(t, newSender(t), fmt.Sprintf("xmpps://gateway:secret-word@example.org:%d/%s&xmpp=127.0.0.1", p.clear, rest), body)
		bob.expect(t, "gateway@example.org/", "", body)
	}
	p.process.stop()
	log := p.process.out.String()
	for _, mechanism := range []string{"SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"} {
		if strings.Count(log, "mechanism='"+mechanism+"'") != 1 {
			t.Errorf("want one sign-in by %s", mechanism)
		}
	}
}
