package services

import (
	"strings"
	"testing"
	"time"

	"mellium.im/sasl"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// xmppURL is for an account of example.org whose server is elsewhere.
func xmppURL(scheme, at, rest string) string {
	host, port, _ := strings.Cut(at, ":")
	url := scheme + "://gateway:secret-word@example.org:" + port + rest
	if strings.Contains(rest, "?") {
		return url + "&xmpp=" + host
	}
	return url + "?xmpp=" + host
}

// Each parameter of the description changes what the server sees; keepalive
// does so after a minute, see TestXMPPIdleTime.
func TestXMPPParameters(t *testing.T) {
	const auth, presence = "AUTH SCRAM-SHA-256 gateway true", "PRESENCE -1"
	const bob = "MESSAGE chat bob@example.org [] Disk\r\n91% full"
	cases := []struct {
		scheme, rest string
		want         []string
	}{
		{"xmpp", "/bob", []string{auth, presence, bob}},
		{"xmpp", "", []string{auth, presence, "MESSAGE chat gateway@example.org [] Disk\r\n91% full"}},
		{"xmpp", "?to=bob", []string{auth, presence, bob}},
		{"xmpp", "/bob@example.net%2Fphone", []string{auth, presence, "MESSAGE chat bob@example.net/phone [] Disk\r\n91% full"}},
		{"xmpp", "/bob?roster=yes", []string{auth, "ROSTER", presence, bob}},
		{"xmpp", "/bob?subject=yes", []string{auth, presence, "MESSAGE chat bob@example.org [Disk] 91% full"}},
		{"xmpp", "/#ops", []string{auth, presence, "ENTER ops@example.org as gateway", "MESSAGE groupchat ops@example.org [] Disk\r\n91% full"}},
		{"xmpp", "/#taken@example.org?name=taken", []string{auth, presence, "ENTER taken@example.org as another", "MESSAGE groupchat taken@example.org [] Disk\r\n91% full"}},
		{"xmpp", "/#ops?name=alerts", []string{auth, presence, "ENTER ops@example.org as alerts", "MESSAGE groupchat ops@example.org [] Disk\r\n91% full"}},
		{"xmpp", "/bob?mode=starttls&verify=no", []string{"TLS", auth, presence, bob}},
		{"xmpps", "/bob?verify=no", []string{"TLS", auth, presence, bob}},
		{"xmpps", "/bob?verify=no&mode=none", []string{"TLS", auth, presence, bob}},
		{"xmpps", "/bob?verify=no&scramplus=no", []string{"TLS", auth, presence, bob}},
	}
	for _, c := range cases {
		t.Run(c.scheme+c.rest, func(t *testing.T) {
			n := &xmppNet{}
			if strings.Contains(c.rest, "verify=no") {
				n.startTLS = ownCertificate(t)
			}
			newXMPPNet(t, n, "", nil)
			m := &notifier.Message{Title: "Disk", Body: "91% full"}
			if r := sendOver(t, wireSender(t), xmppURL(c.scheme, n.at(), c.rest), m, 5*time.Second); r.Err != nil {
				t.Fatal(r.Err)
			}
			n.expect(t, c.want...)
		})
	}
}

func TestXMPPIdleTime(t *testing.T) {
	if got := (&xmpp{}).idle(); got != idleTime {
		t.Errorf("got %s", got)
	}
	if got := (&xmpp{keepalive: true}).idle(); got != time.Hour {
		t.Errorf("with keepalive, got %s", got)
	}
}

func TestXMPPOverTLS(t *testing.T) {
	n := newXMPPNet(t, &xmppNet{mechanisms: []string{"PLAIN"}}, "", ownCertificate(t, "example.org"))
	sendFails(t, wireSender(t), xmppURL("xmpps", n.at(), "/bob?mode=tls"), "certificate")
	n.expect(t)
	sendText(t, wireSender(t), xmppURL("xmpps", n.at(), "/bob?mode=tls&verify=no"), "one")
	n.expect(t, "AUTH PLAIN gateway true", "PRESENCE -1", "MESSAGE chat bob@example.org [] one")

	n = newXMPPNet(t, &xmppNet{startTLS: ownCertificate(t, "example.org")}, "", nil)
	sendFails(t, wireSender(t), xmppURL("xmpps", n.at(), "/bob"), "certificate")
	n.expect(t)

	// A certificate that the system trusts, for the name in the addresses.
	config := testCA.certificate(t, "example.org")
	n = newXMPPNet(t, &xmppNet{mechanisms: []string{"PLAIN"}}, "", &config)
	sendText(t, wireSender(t), xmppURL("xmpps", n.at(), "/bob?mode=tls"), "two")
	n.expect(t, "AUTH PLAIN gateway true", "PRESENCE -1", "MESSAGE chat bob@example.org [] two")
	n = newXMPPNet(t, &xmppNet{startTLS: &config, mechanisms: []string{"PLAIN"}}, "", nil)
	sendText(t, wireSender(t), xmppURL("xmpps", n.at(), "/bob"), "three")
	n.expect(t, "TLS", "AUTH PLAIN gateway true", "PRESENCE -1", "MESSAGE chat bob@example.org [] three")

	// A server, or somebody between, that does not want TLS gets no password.
	n = newXMPPNet(t, &xmppNet{}, "", nil)
	sendFails(t, wireSender(t), xmppURL("xmpps", n.at(), "/bob"), "")
	n.expect(t)
	n = newXMPPNet(t, &xmppNet{mechanisms: []string{"PLAIN"}}, "", nil)
	sendFails(t, wireSender(t), xmppURL("xmpp", n.at(), "/bob"), "no way to sign in that is safe on this connection; it takes PLAIN")
	n.expect(t)
	n = newXMPPNet(t, &xmppNet{startTLS: ownCertificate(t)}, "", nil)
	sendFails(t, wireSender(t), xmppURL("xmpp", n.at(), "/bob"), "it may demand TLS")
	n.expect(t)
}

func TestXMPPChannelBinding(t *testing.T) {
	n := newXMPPNet(t, &xmppNet{startTLS: ownCertificate(t), mechanisms: []string{"SCRAM-SHA-1", "SCRAM-SHA-1-PLUS"}}, "", nil)
	sendFails(t, wireSender(t), xmppURL("xmpps", n.at(), "/bob?verify=no"), "scramplus=no may help", "secret-word")
	n.expect(t, "TLS", "AUTH SCRAM-SHA-1-PLUS  false")
	sendText(t, wireSender(t), xmppURL("xmpps", n.at(), "/bob?verify=no&scramplus=no"), "one")
	n.expect(t, "TLS", "AUTH SCRAM-SHA-1 gateway true", "PRESENCE -1", "MESSAGE chat bob@example.org [] one")
}

func TestXMPPBytes(t *testing.T) {
	n := newXMPPNet(t, &xmppNet{}, "", nil)
	body := "one <b>&\"quoted\"</b> ]]> </message>\r\n\ttwo: é 漢字 😀\r three" + strings.Repeat(" long", 20000)
	s := wireSender(t)
	for _, to := range []string{"bob", "#ops"} {
		sendText(t, s, xmppURL("xmpp", n.at(), "/"+to), body)
		if got := n.take(); !strings.HasSuffix(got[len(got)-1], "[] "+body) {
			t.Errorf("%s: the message is not what was sent", to)
		}
	}
	sendText(t, s, xmppURL("xmpp", n.at(), "/bob"), "a\x00b\x1bc")
	n.expect(t, "MESSAGE chat bob@example.org [] a\uFFFDb\uFFFDc")
}

func TestXMPPKeepsItsConnection(t *testing.T) {
	n := newXMPPNet(t, &xmppNet{oldRooms: true}, "", nil)
	s, url := wireSender(t), xmppURL("xmpp", n.at(), "/#ops/bob")
	sendText(t, s, url, "one")
	n.take()
	sendText(t, s, url, "throw me out")
	if got := strings.Join(n.take(), "\n"); strings.Contains(got, "AUTH") || strings.Contains(got, "ENTER") || strings.Count(got, "MESSAGE") != 2 {
		t.Errorf("the second message should need nothing but itself, got\n%s", got)
	}
	sendText(t, s, url, "three")
	if got := strings.Join(n.take(), "\n"); strings.Contains(got, "AUTH") || strings.Count(got, "ENTER") != 1 {
		t.Errorf("the third message should enter the room again, got\n%s", got)
	}
	n.stop()
	again := newXMPPNet(t, &xmppNet{}, n.at(), nil)
	sendText(t, s, url, "four")
	if got := strings.Join(again.take(), "\n"); strings.Count(got, "AUTH") != 1 || strings.Count(got, " four") != 2 {
		t.Errorf("after a restart, want a new connection and the messages, got\n%s", got)
	}
	s.Close()
	for range 100 {
		if lines := again.take(); lines != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the stream is not ended")
}

func TestXMPPRefusals(t *testing.T) {
	n := newXMPPNet(t, &xmppNet{}, "", nil)
	s := wireSender(t)
	wrong := strings.Replace(xmppURL("xmpp", n.at(), "/bob"), "secret-word", "wrong-password", 1)
	sendFails(t, s, wrong, "the XMPP server refused the sign-in: not-authorized", "wrong-password")
	sendFails(t, s, xmppURL("xmpp", n.at(), "/nobody"), "the XMPP server refused the message: service-unavailable")
	sendFails(t, s, xmppURL("xmpp", n.at(), "/#closed"), "the XMPP server refused to let us into the room: registration-required")
	n.take()
	sendFails(t, s, xmppURL("xmpp", n.at(), "/bob/nobody/alice"), "target 2 of 3: the XMPP server refused the message")
	if got := n.take(); len(got) != 5 {
		t.Errorf("the others should have the message: %q", got)
	}
	at := silentServer(t)
	sendFails(t, s, xmppURL("xmpp", at, "/bob"), "not done within")
	sendFails(t, s, xmppURL("xmpps", at, "/bob?mode=tls"), "not done within")
	sendFails(t, s, xmppURL("xmpp", at, "/bob?rto=0.1"), "no answer within 100ms (rto)")
	sendFails(t, s, xmppURL("xmpps", at, "/bob?mode=tls&rto=0.1"), "no answer within 100ms (rto)")
}

// What a server makes us compute has an end.
func TestXMPPChallenges(t *testing.T) {
	const nonce = "r=fyko+d2lbbFgONRv9qkxdawL"
	for challenge, want := range map[string]string{
		nonce + ",s=QSXCR+Q6sek8bf92,i=2147483647": "iterations",
		nonce + ",s=QSXCR+Q6sek8bf92,i=many":       "iterations",
		nonce + ",s=QSXCR+Q6sek8bf92,i=4096,":      "malformed",
		nonce + ",s=,i=4096":                       "malformed",
		"":                                         "malformed",
	} {
		client := sasl.NewClient(xmppScram(sasl.ScramSha256), sasl.Credentials(func() ([]byte, []byte, []byte) { return []byte("a"), []byte("b"), nil }))
		if _, _, err := client.Step(nil); err != nil {
			t.Fatal(err)
		}
		if _, _, err := client.Step([]byte(challenge)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", challenge, err, want)
		}
	}
}
