package xmpp

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"mellium.im/sasl"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// testCA is the only CA that the tests of this package trust.
var testCA = servicetest.NewTrustedCA()

// server is the server of example.org. It has the account "gateway" with the
// password "secret-word", the user bob and the rooms ops and closed.
type server struct {
	servicetest.Log
	*servicetest.Server
	startTLS   *tls.Config // nil: STARTTLS is not offered
	mechanisms []string
	oldRooms   bool // rooms replace ids and send no status
}

// newServer starts the server, with TLS from the first byte if direct is not
// nil.
func newServer(t *testing.T, n *server, address string, direct *tls.Config) *server {
	t.Helper()
	if n.mechanisms == nil {
		n.mechanisms = []string{"PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256"}
	}
	n.Server = servicetest.Serve(t, address, direct, func(conn net.Conn) {
		n.serve(&peer{net: n, Conn: conn, secure: direct != nil, inside: map[string]bool{}})
	})
	return n
}

// peer is one client.
type peer struct {
	net.Conn
	net            *server
	d              *xml.Decoder
	secure, signed bool
	jid            string
	inside         map[string]bool // rooms
}

// testElement is an element from the client.
type testElement struct {
	XMLName   xml.Name
	ID        string `xml:"id,attr"`
	To        string `xml:"to,attr"`
	Type      string `xml:"type,attr"`
	Mechanism string `xml:"mechanism,attr"`
	Text      string `xml:",chardata"`
	Body      string `xml:"body"`
	Subject   string `xml:"subject"`
	Priority  string `xml:"priority"`
	Bind      *struct {
		Resource string `xml:"resource"`
	} `xml:"urn:ietf:params:xml:ns:xmpp-bind bind"`
	Roster *struct{} `xml:"jabber:iq:roster query"`
	Room   *struct{} `xml:"http://jabber.org/protocol/muc x"`
}

func (p *peer) say(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (n *server) serve(p *peer) {
	p.stream()
	for {
		token, err := p.d.Token()
		if err != nil {
			return
		}
		switch token := token.(type) {
		case xml.EndElement:
			n.Add("END")
			return
		case xml.StartElement:
			var e testElement
			if p.d.DecodeElement(&e, &token) != nil || !p.handle(&e) {
				return
			}
		}
	}
}

// stream answers the beginning of a stream.
func (p *peer) stream() {
	p.d = xml.NewDecoder(p.Conn)
	for {
		token, err := p.d.Token()
		if err != nil {
			return
		}
		if start, ok := token.(xml.StartElement); ok {
			for _, a := range start.Attr {
				if a.Name.Local == "to" && a.Value != "example.org" {
					p.net.Add("STREAM to " + a.Value)
				}
			}
			break
		}
	}
	p.say(`<?xml version='1.0'?><stream:stream xmlns='jabber:client' ` +
		`xmlns:stream='http://etherx.jabber.org/streams' id='1' from='example.org' version='1.0'><stream:features>`)
	switch {
	case p.signed:
		p.say(`<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>`)
	case p.net.startTLS != nil && !p.secure:
		p.say(`<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>`)
	default:
		p.say(`<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>%s</mechanism></mechanisms>`,
			strings.Join(p.net.mechanisms, "</mechanism><mechanism>"))
	}
	p.say(`</stream:features>`)
}

func (p *peer) handle(e *testElement) (more bool) {
	n := p.net
	switch e.XMLName.Local {
	case "starttls":
		if n.startTLS == nil {
			p.say(`<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:stream>`)
			return false
		}
		p.say(`<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>`)
		secure := tls.Server(p.Conn, n.startTLS)
		if secure.Handshake() != nil {
			return false
		}
		n.Add("TLS")
		p.Conn, p.secure = secure, true
		p.stream()
	case "auth":
		user, err := p.signIn(e)
		n.Add(fmt.Sprintf("AUTH %s %s %t", e.Mechanism, user, err == nil))
		if err != nil {
			p.say(`<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/></failure></stream:stream>`)
			return false
		}
		p.signed, p.jid = true, user+"@example.org"
		p.stream()
	case "iq":
		switch {
		case e.Bind != nil:
			p.jid += "/" + cmp.Or(e.Bind.Resource, "made-up")
			p.say(`<iq id='%s' type='result'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>%s</jid></bind></iq>`, e.ID, p.jid)
			return true
		case e.Roster != nil:
			n.Add("ROSTER")
		}
		p.say(`<iq id='%s' type='result'/>`, e.ID)
	case "presence":
		p.presence(e)
	case "message":
		n.Add(fmt.Sprintf("MESSAGE %s %s [%s] %s", e.Type, e.To, e.Subject, e.Body))
		p.message(e)
	}
	return true
}

func (p *peer) presence(e *testElement) {
	switch room, nick, _ := strings.Cut(e.To, "/"); {
	case e.To == "":
		p.net.Add("PRESENCE " + e.Priority)
	case room == "closed@example.org":
		p.say(`<presence from='%s' type='error' id='%s'><error type='auth'><registration-required `+
			`xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></presence>`, e.To, e.ID)
	case nick == "taken":
		p.say(`<presence from='%s' type='error' id='%s'><error type='cancel'><conflict `+
			`xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></presence>`, e.To, e.ID)
	default:
		if strings.HasPrefix(nick, "taken-") {
			nick = "another"
		}
		p.net.Add("ENTER " + room + " as " + nick)
		p.inside[room] = true
		p.say(`<presence from='%s/somebody'><x xmlns='http://jabber.org/protocol/muc#user'/></presence>`, room)
		status := `<status code='110'/>`
		if p.net.oldRooms {
			status = ""
		}
		p.say(`<presence from='%s'><x xmlns='http://jabber.org/protocol/muc#user'>%s</x></presence>`, e.To, status)
	}
}

func (p *peer) message(e *testElement) {
	var body bytes.Buffer
	_ = xml.EscapeText(&body, []byte(e.Body))
	switch {
	case e.Type == "groupchat" && !p.inside[e.To]:
		p.say(`<message from='%s' type='error' id='%s'><error type='modify'><not-acceptable `+
			`xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>`, e.To, e.ID)
	case e.Type == "groupchat":
		if p.net.oldRooms {
			e.ID = "1"
		}
		p.say(`<message from='%s/somebody' type='groupchat' id='0'><body>hello</body></message>`, e.To)
		p.say(`<message from='%s/gateway' type='groupchat' id='%s'><body>%s</body></message>`, e.To, e.ID, body.Bytes())
		if e.Body == "throw me out" {
			delete(p.inside, e.To)
			p.say(`<presence from='%s/gateway' type='unavailable'><x `+
				`xmlns='http://jabber.org/protocol/muc#user'><status code='110'/><status `+
				`code='307'/></x></presence>`, e.To)
		}
	case strings.HasPrefix(e.To, "nobody@"):
		p.say(`<message from='%s' type='error' id='%s'><error type='cancel'><service-unavailable `+
			`xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>`, e.To, e.ID)
	}
}

// signIn handles a step of the sign-in.
func (p *peer) signIn(e *testElement) (user string, err error) {
	if !slices.Contains(p.net.mechanisms, e.Mechanism) {
		return "", errors.New("not offered")
	}
	if e.Mechanism == "PLAIN" {
		text, _ := base64.StdEncoding.DecodeString(e.Text)
		if string(text) != "\x00gateway\x00secret-word" {
			return "", sasl.ErrAuthn
		}
		p.say(`<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>`)
		return "gateway", nil
	}
	mechanism, fn := sasl.ScramSha1, func() hash.Hash { return sha1.New() }
	switch e.Mechanism {
	case "SCRAM-SHA-256":
		mechanism, fn = sasl.ScramSha256, sha256.New
	case "SCRAM-SHA-1":
	default: // channel binding fails here
		return "", sasl.ErrAuthn
	}
	salt := []byte("salt")
	server := sasl.NewServer(mechanism, func(*sasl.Negotiator) bool { return true },
		sasl.SaltedCredentials(func(name, _ []byte, _ string) ([]byte, []byte, int64, error) {
			user = string(name)
			return salt, sasl.SCRAMSaltPassword(fn, []byte("secret-word"), salt, 4096), 4096, nil
		}))
	for text := e.Text; ; {
		in, _ := base64.StdEncoding.DecodeString(text)
		more, out, err := server.Step(in)
		if err != nil {
			return user, err
		}
		name := "success"
		if more {
			name = "challenge"
		}
		p.say(`<%s xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>%s</%s>`, name, base64.StdEncoding.EncodeToString(out), name)
		if !more {
			return user, nil
		}
		token, err := p.d.Token()
		if err != nil {
			return user, err
		}
		start, ok := token.(xml.StartElement)
		var response testElement
		if !ok || p.d.DecodeElement(&response, &start) != nil {
			return user, io.ErrUnexpectedEOF
		}
		text = response.Text
	}
}
