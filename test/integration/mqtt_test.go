package integration

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// mosquitto starts a broker with the user gateway, who may write below alerts/.
// It listens at three ports: without TLS, with a trusted certificate, and with
// another certificate.
func mosquitto(t *testing.T) (clear, good, bad int, restart func()) {
	t.Helper()
	broker := program(t, "mosquitto", "mosquitto")
	passwords := writeFile(t, "passwords", "")
	if out, err := exec.Command(program(t, "mosquitto_passwd", "mosquitto"),
		"-b", passwords, "gateway", "secret-word").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	if err := os.Chmod(passwords, 0o644); err != nil {
		t.Fatal(err)
	}
	rights := writeFile(t, "rights", "user gateway\ntopic readwrite alerts/#\n")
	clear, good, bad = freePort(t), freePort(t), freePort(t)
	config := fmt.Sprintf("allow_anonymous false\npassword_file %s\nacl_file %s\nlistener %d 127.0.0.1\n", passwords, rights, clear)
	for port, s := range map[int]*signer{good: authority, bad: newSigner()} {
		cert, key := s.certificate(t)
		config += fmt.Sprintf("listener %d 127.0.0.1\ncertfile %s\nkeyfile %s\n", port, cert, key)
	}
	if os.Getuid() == 0 {
		config += "user root\n" // so that it can read our files
	}
	file := writeFile(t, "mosquitto.conf", config)
	s := start(t, clear, broker, "-c", file)
	return clear, good, bad, func() {
		s.stop()
		s = start(t, clear, broker, "-c", file)
	}
}

// subscribe collects messages published below alerts/.
func subscribe(t *testing.T, port int) <-chan paho.Message {
	t.Helper()
	messages := make(chan paho.Message, 10)
	client := paho.NewClient(paho.NewClientOptions().AddBroker(fmt.Sprintf("tcp://127.0.0.1:%d", port)).
		SetUsername("gateway").SetPassword("secret-word").SetAutoReconnect(false))
	if token := client.Connect(); token.Wait() && token.Error() != nil {
		t.Fatal(token.Error())
	}
	t.Cleanup(func() { client.Disconnect(0) })
	if token := client.Subscribe("alerts/#", 2, func(_ paho.Client, m paho.Message) { messages <- m }); token.Wait() && token.Error() != nil {
		t.Fatal(token.Error())
	}
	return messages
}

func nextMQTT(t *testing.T, messages <-chan paho.Message) paho.Message {
	t.Helper()
	select {
	case m := <-messages:
		return m
	case <-time.After(10 * time.Second):
		t.Fatal("no message arrived")
		return nil
	}
}

func TestMosquitto(t *testing.T) {
	clear, good, bad, restart := mosquitto(t)
	const account = "gateway:secret-word@127.0.0.1"
	messages := subscribe(t, clear)

	for _, version := range []string{"v3.1", "v3.1.1", "v5.0"} {
		for qos := range 3 {
			delivers(t, newSender(t), fmt.Sprintf("mqtt://%s:%d/alerts/disk?version=%s&qos=%d", account, clear, version, qos), body)
			if m := nextMQTT(t, messages); string(m.Payload()) != body || m.Topic() != "alerts/disk" || int(m.Qos()) != qos {
				t.Errorf("%s, quality %d: got %q on %s with quality %d", version, qos, m.Payload(), m.Topic(), m.Qos())
			}
		}
	}

	delivers(t, newSender(t), fmt.Sprintf("mqtts://%s:%d/alerts/disk?retain=yes", account, good), body)
	nextMQTT(t, messages)
	if m := nextMQTT(t, subscribe(t, clear)); string(m.Payload()) != body || !m.Retained() {
		t.Errorf("got %q, retained %t", m.Payload(), m.Retained())
	}
	fails(t, newSender(t), fmt.Sprintf("mqtts://%s:%d/alerts/disk", account, bad), "certificate", "secret-word")
	delivers(t, newSender(t), fmt.Sprintf("mqtts://%s:%d/alerts/disk?verify=no", account, bad), body)

	wrong := fmt.Sprintf("gateway:wrong-password@127.0.0.1:%d/alerts/disk", clear)
	denies(t, newSender(t), "mqtt://"+wrong, "the MQTT server refused the connection: not authorised", "wrong-password")
	denies(t, newSender(t), "mqtt://"+wrong+"?version=5", "the MQTT server refused the connection: Not authorized", "wrong-password")
	denies(t, newSender(t), fmt.Sprintf("mqtt://%s:%d/private?version=5&qos=1", account, clear),
		"the MQTT server refused the message: The PUBLISH is not authorized", "")

	for _, rest := range []string{"", "?qos=1&version=5", "?qos=2&client_id=gateway&session=yes"} {
		s, url := newSender(t), fmt.Sprintf("mqtt://%s:%d/alerts/disk", account, clear)+rest
		delivers(t, s, url, "before")
		restart()
		messages := subscribe(t, clear)
		delivers(t, s, url, "after")
		if m := nextMQTT(t, messages); string(m.Payload()) != "after" {
			t.Errorf("%s: got %q", rest, m.Payload())
		}
	}
}
