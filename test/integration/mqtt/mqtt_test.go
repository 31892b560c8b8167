// Package mqtt sends to an MQTT broker whose packets the tests see. It is apart from the other
// tests here because it trusts another CA.
package mqtt

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	broker "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	_ "github.com/caddy-notify/caddy-notify/notifier/services/mqtt" // what is tested
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// testCA is the only CA that the tests of this package trust.
var testCA = servicetest.NewTrustedCA()

// hook makes the broker log packets, accept every password but
// "wrong-password", and refuse messages to topics below private/.
type hook struct {
	broker.HookBase
	log *servicetest.Log
	cut atomic.Int32 // packet type after which the connection is cut once
}

func (h *hook) Provides(b byte) bool {
	return bytes.Contains([]byte{
		broker.OnConnectAuthenticate, broker.OnACLCheck, broker.OnConnect, broker.OnPublish, broker.OnPacketSent,
	}, []byte{b})
}

func (h *hook) OnConnectAuthenticate(_ *broker.Client, p packets.Packet) bool {
	return string(p.Connect.Password) != "wrong-password"
}

func (h *hook) OnACLCheck(_ *broker.Client, topic string, _ bool) bool {
	return !strings.HasPrefix(topic, "private/")
}

func (h *hook) OnConnect(_ *broker.Client, p packets.Packet) error {
	id := p.Connect.ClientIdentifier
	if strings.HasPrefix(id, "caddy-") && len(id) <= 23 {
		id = "random"
	}
	h.log.Add(fmt.Sprintf("CONNECT %s/%d %s user=%s:%s clean=%t", p.Connect.ProtocolName,
		p.ProtocolVersion, id, p.Connect.Username, p.Connect.Password, p.Connect.Clean))
	return nil
}

func (h *hook) OnPublish(_ *broker.Client, p packets.Packet) (packets.Packet, error) {
	h.log.Add(fmt.Sprintf("PUBLISH %s qos=%d retain=%t %s", p.TopicName, p.FixedHeader.Qos, p.FixedHeader.Retain, p.Payload))
	return p, nil
}

func (h *hook) OnPacketSent(cl *broker.Client, p packets.Packet, _ []byte) {
	if h.cut.CompareAndSwap(int32(p.FixedHeader.Type), 0) {
		h.log.Add("cut")
		cl.Net.Conn.Close()
	}
}

// newServer starts a broker. An empty address is any free port.
func newServer(t *testing.T, address string, config *tls.Config, hook *hook) (server *broker.Server, at string, stop func()) {
	t.Helper()
	server = broker.New(&broker.Options{Logger: slog.New(slog.DiscardHandler)})
	if err := server.AddHook(hook, nil); err != nil {
		t.Fatal(err)
	}
	if address == "" {
		address = "127.0.0.1:0"
	}
	l := listeners.NewTCP(listeners.Config{ID: "t", Address: address, TLSConfig: config})
	if err := server.AddListener(l); err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { closeServer(server) })
	t.Cleanup(stop)
	return server, l.Address(), stop
}

// closeServer closes a broker. Close of the broker itself looks for clients with a lock that it takes
// twice, and waits for ever if a client ends between; after this, it finds none.
func closeServer(b *broker.Server) {
	b.Listeners.CloseAll(func(string) {
		for _, c := range b.Clients.GetAll() {
			c.Stop(nil)
		}
	})
	_ = b.Close() // nothing can be done about it
}

// TestParameters checks that each parameter of the description changes what the
// server sees.
func TestParameters(t *testing.T) {
	const hello, publish = "CONNECT MQTT/4 random user=: clean=true", "PUBLISH alerts/disk qos=0 retain=false 91% full"
	cases := []struct {
		user, rest string
		want       []string
	}{
		{"", "/alerts/disk", []string{hello, publish}},
		{"bob:secret%40word@", "/alerts/disk", []string{"CONNECT MQTT/4 random user=bob:secret@word clean=true", publish}},
		{"bob@", "/alerts/disk", []string{"CONNECT MQTT/4 random user=bob: clean=true", publish}},
		{"", "/alerts/disk?qos=1", []string{hello, "PUBLISH alerts/disk qos=1 retain=false 91% full"}},
		{"", "/alerts/disk?qos=2", []string{hello, "PUBLISH alerts/disk qos=2 retain=false 91% full"}},
		{"", "/alerts/disk?retain=yes", []string{hello, "PUBLISH alerts/disk qos=0 retain=true 91% full"}},
		{"", "/alerts/disk?version=v3.1", []string{"CONNECT MQIsdp/3 random user=: clean=true", publish}},
		{"", "/alerts/disk?version=3.1.1", []string{hello, publish}},
		{"", "/alerts/disk?version=5", []string{"CONNECT MQTT/5 random user=: clean=true", publish}},
		{
			"bob:pass@", "/alerts/disk?version=v5.0&qos=2&retain=yes",
			[]string{"CONNECT MQTT/5 random user=bob:pass clean=true", "PUBLISH alerts/disk qos=2 retain=true 91% full"},
		},
		{
			"", "/alerts/disk?version=v5.0&qos=1",
			[]string{"CONNECT MQTT/5 random user=: clean=true", "PUBLISH alerts/disk qos=1 retain=false 91% full"},
		},
		{"", "/alerts/disk?client_id=gateway", []string{"CONNECT MQTT/4 gateway user=: clean=true", publish}},
		{"", "/alerts/disk?client_id=gateway&session=yes", []string{"CONNECT MQTT/4 gateway user=: clean=false", publish}},
		{"", "/alerts/disk?client_id=gateway&session=yes&version=5", []string{"CONNECT MQTT/5 gateway user=: clean=false", publish}},
		{"", "/alerts/disk?session=yes", []string{hello, publish}},
		{
			"", "/alerts/disk,b/%C3%A9?to=c,d/e/",
			[]string{
				hello, publish, "PUBLISH b/é qos=0 retain=false 91% full",
				"PUBLISH c qos=0 retain=false 91% full", "PUBLISH d/e/ qos=0 retain=false 91% full",
			},
		},
		{"", "?targets=alerts/disk", []string{hello, publish}},
	}
	log := &servicetest.Log{}
	_, at, _ := newServer(t, "", nil, &hook{log: log})
	for _, c := range cases {
		t.Run(c.user+c.rest, func(t *testing.T) {
			servicetest.SendText(t, servicetest.NewSender(t), "mqtt://"+c.user+at+c.rest, "91% full")
			log.Expect(t, c.want...)
		})
	}
}

func TestKeepsConnection(t *testing.T) {
	for _, rest := range []string{"", "?qos=1", "?qos=2&version=5"} {
		t.Run(rest, func(t *testing.T) {
			log, s := &servicetest.Log{}, servicetest.NewSender(t)
			_, at, stop := newServer(t, "", nil, &hook{log: log})
			url := "mqtt://" + at + "/a" + rest
			servicetest.SendText(t, s, url, "one")
			servicetest.SendText(t, s, url, "two")
			if got := strings.Join(log.Take(), "\n"); strings.Count(got, "CONNECT") != 1 || strings.Count(got, "PUBLISH") != 2 {
				t.Errorf("want one connection and two messages, got\n%s", got)
			}
			stop()
			newServer(t, at, nil, &hook{log: log})
			servicetest.SendText(t, s, url, "three")
			if got := strings.Join(log.Take(), "\n"); strings.Count(got, "CONNECT") != 1 || !strings.HasSuffix(got, " three") {
				t.Errorf("after a restart, want a new connection and the message, got\n%s", got)
			}
		})
	}
}

// With a kept session, a message is published only once even if the connection
// breaks after the server has received it.
func TestExactlyOnce(t *testing.T) {
	for _, version := range []string{"v3.1.1", "v5.0"} {
		t.Run(version, func(t *testing.T) {
			log, s := &servicetest.Log{}, servicetest.NewSender(t)
			hook := &hook{log: log}
			_, at, _ := newServer(t, "", nil, hook)
			url := "mqtt://" + at + "/a?qos=2&client_id=gateway&session=yes&version=" + version
			servicetest.SendText(t, s, url, "one")
			log.Take()
			hook.cut.Store(int32(packets.Pubrec))
			servicetest.SendText(t, s, url, "two")
			got := strings.Join(log.Take(), "\n")
			if strings.Count(got, "PUBLISH") != 1 || strings.Count(got, "cut") != 1 || strings.Count(got, "CONNECT") != 1 {
				t.Errorf("want the message, a cut and a new connection, got\n%s", got)
			}
		})
	}
}

func TestBytes(t *testing.T) {
	log := &servicetest.Log{}
	_, at, _ := newServer(t, "", nil, &hook{log: log})
	body := "line one <b>&\r\nline two: é 漢字 😀\x01 " + strings.Repeat("long ", 20000) + "."
	for _, version := range []string{"v3.1", "v5.0"} {
		servicetest.SendText(t, servicetest.NewSender(t), "mqtt://"+at+"/a?version="+version, body)
		if got := log.Take(); !strings.HasSuffix(got[1], " "+body) {
			t.Errorf("%s: the message is not what was sent", version)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	log := &servicetest.Log{}
	_, at, _ := newServer(t, "", nil, &hook{log: log})
	s := servicetest.NewSender(t)
	const refused = "the MQTT server refused the connection: "
	servicetest.SendFails(t, s, "mqtt://bob:wrong-password@"+at+"/a", refused, "wrong-password")
	servicetest.SendFails(t, s, "mqtt://bob:wrong-password@"+at+"/a?version=5", refused+"Bad User Name or Password", "wrong-password")
	servicetest.SendFails(t, s, "mqtt://"+at+"/private/a?version=5&qos=1",
		"the MQTT server refused the message: The PUBLISH is not authorized")
	log.Take()
	servicetest.SendFails(t, s, "mqtt://"+at+"/a,private/b,c?version=5&qos=2", "topic 2 of 3: the MQTT server refused the message")
	if got := strings.Join(log.Take(), "\n"); strings.Count(got, "PUBLISH") != 2 {
		t.Errorf("the other topics should have the message, got\n%s", got)
	}
	silent := servicetest.SilentServer(t)
	servicetest.Unanswered(t, s, "mqtt://"+silent+"/a", "not done within")
	servicetest.Unanswered(t, s, "mqtts://"+silent+"/a", "not done within")
}

func TestTLS(t *testing.T) {
	log := &servicetest.Log{}
	_, at, _ := newServer(t, "", servicetest.SelfSigned(t), &hook{log: log})
	servicetest.SendFails(t, servicetest.NewSender(t), "mqtts://"+at+"/a", "certificate")
	log.Expect(t)
	servicetest.SendText(t, servicetest.NewSender(t), "mqtts://"+at+"/a?verify=no", "one")
	log.Expect(t, "CONNECT MQTT/4 random user=: clean=true", "PUBLISH a qos=0 retain=false one")

	config := testCA.Certificate(t, "127.0.0.1")
	_, at, _ = newServer(t, "", config, &hook{log: log})
	servicetest.SendText(t, servicetest.NewSender(t), "mqtts://"+at+"/a", "two")
	log.Expect(t, "CONNECT MQTT/4 random user=: clean=true", "PUBLISH a qos=0 retain=false two")
}

// A connection is closed after its message with store=no, otherwise with the
// sender.
func TestServerCloses(t *testing.T) {
	for _, rest := range []string{"?store=no", ""} {
		server, at, _ := newServer(t, "", nil, &hook{log: &servicetest.Log{}})
		s := servicetest.NewSender(t)
		servicetest.SendText(t, s, "mqtt://"+at+"/a"+rest, "one")
		if rest == "" {
			s.Close()
		}
		servicetest.Eventually(t, "a connection is left with "+rest, func() bool { return server.Clients.Len() == 0 })
	}
}
