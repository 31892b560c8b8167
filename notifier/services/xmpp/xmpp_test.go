package xmpp

import (
	"strings"
	"testing"
	"time"

	"mellium.im/sasl"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// serverURL returns the URL of an account at example.org, on the server at this
// address.
func serverURL(scheme, at, rest string) string {
	host, port, _ := strings.Cut(at, ":")
	url := scheme + "://gateway:secret-word@example.org:" + port + rest
	if strings.Contains(rest, "?") {
		return url + "&xmpp=" + host
	}
	return url + "?xmpp=" + host
}

// TestParameters checks that each parameter of the description changes what the
// server sees. TestIdleTimeout covers keepalive.
func TestParameters(t *testing.T) {
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
		{
			"xmpp", "/#taken@example.org?name=taken",
			[]string{auth, presence, "ENTER taken@example.org as another", "MESSAGE groupchat taken@example.org [] Disk\r\n91% full"},
		},
		{
			"xmpp", "/#ops?name=alerts",
			[]string{auth, presence, "ENTER ops@example.org as alerts", "MESSAGE groupchat ops@example.org [] Disk\r\n91% full"},
		},
		{"xmpp", "/bob?mode=starttls&verify=no", []string{"TLS", auth, presence, bob}},
		{"xmpps", "/bob?verify=no", []string{"TLS", auth, presence, bob}},
		{"xmpps", "/bob?verify=no&mode=none", []string{"TLS", auth, presence, bob}},
		{"xmpps", "/bob?verify=no&scramplus=no", []string{"TLS", auth, presence, bob}},
	}
	for _, c := range cases {
		t.Run(c.scheme+c.rest, func(t *testing.T) {
			n := &server{}
			if strings.Contains(c.rest, "verify=no") {
				n.startTLS = servicetest.SelfSigned(t)
			}
			newServer(t, n, "", nil)
			m := &notifier.Message{Title: "Disk", Body: "91% full"}
			if r := servicetest.Send(t, servicetest.NewSender(t), serverURL(c.scheme, n.Addr(), c.rest), m, 5*time.Second); r.Err != nil {
				t.Fatal(r.Err)
			}
			n.Expect(t, c.want...)
		})
	}
}

func TestIdleTimeout(t *testing.T) {
	if got := (&service{}).idleTimeout(); got != wire.IdleTimeout {
		t.Errorf("got %s", got)
	}
	if got := (&service{keepalive: true}).idleTimeout(); got != time.Hour {
		t.Errorf("with keepalive, got %s", got)
	}
}

func TestTLS(t *testing.T) {
	n := newServer(t, &server{mechanisms: []string{"PLAIN"}}, "", servicetest.SelfSigned(t, "example.org"))
	servicetest.SendFails(t, servicetest.NewSender(t), serverURL("xmpps", n.Addr(), "/bob?mode=tls"), "certificate")
	n.Expect(t)
	servicetest.SendText(t, servicetest.NewSender(t), serverURL("xmpps", n.Addr(), "/bob?mode=tls&verify=no"), "one")
	n.Expect(t, "AUTH PLAIN gateway true", "PRESENCE -1", "MESSAGE chat bob@example.org [] one")

	n = newServer(t, &server{startTLS: servicetest.SelfSigned(t, "example.org")}, "", nil)
	servicetest.SendFails(t, servicetest.NewSender(t), serverURL("xmpps", n.Addr(), "/bob"), "certificate")
	n.Expect(t)

	// A trusted certificate for the domain of the account.
	config := testCA.Certificate(t, "example.org")
	n = newServer(t, &server{mechanisms: []string{"PLAIN"}}, "", config)
	servicetest.SendText(t, servicetest.NewSender(t), serverURL("xmpps", n.Addr(), "/bob?mode=tls"), "two")
	n.Expect(t, "AUTH PLAIN gateway true", "PRESENCE -1", "MESSAGE chat bob@example.org [] two")
	n = newServer(t, &server{startTLS: config, mechanisms: []string{"PLAIN"}}, "", nil)
	servicetest.SendText(t, servicetest.NewSender(t), serverURL("xmpps", n.Addr(), "/bob"), "three")
	n.Expect(t, "TLS", "AUTH PLAIN gateway true", "PRESENCE -1", "MESSAGE chat bob@example.org [] three")

	// Without STARTTLS, the password is not sent.
	n = newServer(t, &server{}, "", nil)
	servicetest.SendFails(t, servicetest.NewSender(t), serverURL("xmpps", n.Addr(), "/bob"), "")
	n.Expect(t)
	n = newServer(t, &server{mechanisms: []string{"PLAIN"}}, "", nil)
	servicetest.SendFails(t, servicetest.NewSender(t), serverURL("xmpp", n.Addr(), "/bob"),
		"no way to sign in that is safe on this connection; it offers PLAIN")
	n.Expect(t)
	n = newServer(t, &server{startTLS: servicetest.SelfSigned(t)}, "", nil)
	servicetest.SendFails(t, servicetest.NewSender(t), serverURL("xmpp", n.Addr(), "/bob"), "it may require TLS")
	n.Expect(t)
}

func TestChannelBinding(t *testing.T) {
	n := newServer(t, &server{startTLS: servicetest.SelfSigned(t), mechanisms: []string{"SCRAM-SHA-1", "SCRAM-SHA-1-PLUS"}}, "", nil)
	servicetest.SendFails(t, servicetest.NewSender(t), serverURL("xmpps", n.Addr(), "/bob?verify=no"), "scramplus=no may help", "secret-word")
	n.Expect(t, "TLS", "AUTH SCRAM-SHA-1-PLUS  false")
	servicetest.SendText(t, servicetest.NewSender(t), serverURL("xmpps", n.Addr(), "/bob?verify=no&scramplus=no"), "one")
	n.Expect(t, "TLS", "AUTH SCRAM-SHA-1 gateway true", "PRESENCE -1", "MESSAGE chat bob@example.org [] one")
}

func TestBytes(t *testing.T) {
	n := newServer(t, &server{}, "", nil)
	body := "one <b>&\"quoted\"</b> ]]> </message>\r\n\ttwo: é 漢字 😀\r three" + strings.Repeat(" long", 20000)
	s := servicetest.NewSender(t)
	for _, to := range []string{"bob", "#ops"} {
		servicetest.SendText(t, s, serverURL("xmpp", n.Addr(), "/"+to), body)
		if got := n.Take(); !strings.HasSuffix(got[len(got)-1], "[] "+body) {
			t.Errorf("%s: the message is not what was sent", to)
		}
	}
	servicetest.SendText(t, s, serverURL("xmpp", n.Addr(), "/bob"), "a\x00b\x1bc")
	n.Expect(t, "MESSAGE chat bob@example.org [] a\uFFFDb\uFFFDc")
}

func TestKeepsConnection(t *testing.T) {
	n := newServer(t, &server{oldRooms: true}, "", nil)
	s, url := servicetest.NewSender(t), serverURL("xmpp", n.Addr(), "/#ops/bob")
	servicetest.SendText(t, s, url, "one")
	n.Take()
	servicetest.SendText(t, s, url, "throw me out")
	if got := strings.Join(n.Take(), "\n"); strings.Contains(got, "AUTH") ||
		strings.Contains(got, "ENTER") || strings.Count(got, "MESSAGE") != 2 {
		t.Errorf("the second message should send only itself, got\n%s", got)
	}
	servicetest.SendText(t, s, url, "three")
	if got := strings.Join(n.Take(), "\n"); strings.Contains(got, "AUTH") || strings.Count(got, "ENTER") != 1 {
		t.Errorf("the third message should enter the room again, got\n%s", got)
	}
	n.Stop()
	again := newServer(t, &server{}, n.Addr(), nil)
	servicetest.SendText(t, s, url, "four")
	if got := strings.Join(again.Take(), "\n"); strings.Count(got, "AUTH") != 1 || strings.Count(got, " four") != 2 {
		t.Errorf("after a restart, want a new connection and the messages, got\n%s", got)
	}
	s.Close()
	servicetest.Eventually(t, "the stream is not ended", func() bool { return again.Take() != nil })
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	n := newServer(t, &server{}, "", nil)
	s := servicetest.NewSender(t)
	wrong := strings.Replace(serverURL("xmpp", n.Addr(), "/bob"), "secret-word", "wrong-password", 1)
	servicetest.SendFails(t, s, wrong, "the XMPP server refused the sign-in: not-authorized", "wrong-password")
	servicetest.SendFails(t, s, serverURL("xmpp", n.Addr(), "/nobody"), "the XMPP server refused the message: service-unavailable")
	servicetest.SendFails(t, s, serverURL("xmpp", n.Addr(), "/#closed"),
		"the XMPP server refused to let us into the room: registration-required")
	n.Take()
	servicetest.SendFails(t, s, serverURL("xmpp", n.Addr(), "/bob/nobody/alice"), "target 2 of 3: the XMPP server refused the message")
	if got := n.Take(); len(got) != 5 {
		t.Errorf("the others should have the message: %q", got)
	}
	at := servicetest.SilentServer(t)
	servicetest.Unanswered(t, s, serverURL("xmpp", at, "/bob"), "not done within")
	servicetest.Unanswered(t, s, serverURL("xmpps", at, "/bob?mode=tls"), "not done within")
}

// TestChallenges checks that a server cannot demand an unlimited number of
// hashes.
func TestChallenges(t *testing.T) {
	const nonce = "r=fyko+d2lbbFgONRv9qkxdawL"
	for challenge, want := range map[string]string{
		nonce + ",s=QSXCR+Q6sek8bf92,i=2147483647": "iterations",
		nonce + ",s=QSXCR+Q6sek8bf92,i=many":       "iterations",
		nonce + ",s=QSXCR+Q6sek8bf92,i=4096,":      "malformed",
		nonce + ",s=,i=4096":                       "malformed",
		"":                                         "malformed",
	} {
		client := sasl.NewClient(limitIterations(t.Context(), new(notifier.Client),
			sasl.ScramSha256), sasl.Credentials(func() ([]byte, []byte, []byte) {
			return []byte("a"), []byte("b"), nil
		}))
		if _, _, err := client.Step(nil); err != nil {
			t.Fatal(err)
		}
		if _, _, err := client.Step([]byte(challenge)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", challenge, err, want)
		}
	}
}
