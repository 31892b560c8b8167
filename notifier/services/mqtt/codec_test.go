package mqtt

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/golden"
)

// codecs are the codecs of all versions of the protocol.
var codecs = []struct {
	name string
	codec
}{{"v3.1", codecV3{version31}}, {"v3.1.1", codecV3{version311}}, {"v5.0", codecV5{}}}

// TestPackets compares the packets that are sent, byte by byte. Brokers in test/integration read them.
func TestPackets(t *testing.T) {
	var out strings.Builder
	for _, v := range codecs {
		for _, p := range []struct {
			name  string
			write func(io.Writer) error
		}{
			{"connect", func(w io.Writer) error {
				return v.connect(w, &connectOptions{clientID: "caddy-1", cleanSession: true})
			}},
			{"connect with an account and a kept session", func(w io.Writer) error {
				return v.connect(w, &connectOptions{clientID: "gateway", user: "bob", password: "secret é"})
			}},
			{"connect with a user", func(w io.Writer) error {
				return v.connect(w, &connectOptions{clientID: "gateway", user: "bob", cleanSession: true})
			}},
			{"publish", func(w io.Writer) error {
				return v.publish(w, &publication{topic: "a/é", body: []byte("91%"), id: 0x102})
			}},
			{"publish at least once, again", func(w io.Writer) error {
				return v.publish(w, &publication{topic: "a", body: []byte("91%"), id: 0x102, qos: 1, sent: true})
			}},
			{"publish exactly once, retained", func(w io.Writer) error {
				return v.publish(w, &publication{topic: "a", body: []byte("91%"), id: 0x102, qos: 2, retain: true})
			}},
			{"publish nothing", func(w io.Writer) error {
				return v.publish(w, &publication{topic: "a", id: 1, sent: true})
			}},
			{"publish 200 bytes", func(w io.Writer) error {
				return v.publish(w, &publication{topic: "a", body: bytes.Repeat([]byte("x"), 200), id: 1})
			}},
			{"release", func(w io.Writer) error { return v.release(w, 0xfffe) }},
			{"ping", v.ping},
			{"disconnect", v.disconnect},
		} {
			var b bytes.Buffer
			if err := p.write(&b); err != nil {
				t.Fatalf("%s: %s: %v", v.name, p.name, err)
			}
			fmt.Fprintf(&out, "%s: %s\n%s", v.name, p.name, hex.Dump(b.Bytes()))
		}
	}
	golden.Check(t, "packets.golden", out.String())
}

// TestReplies checks what is read from the packets of a server.
func TestReplies(t *testing.T) {
	for _, c := range []struct {
		version, packet string
		want            reply
	}{
		{"v3.1.1", "20020000", reply{packetType: connack}},
		{"v3.1.1", "20020100", reply{packetType: connack, resumed: true}},
		{"v3.1.1", "20020001", reply{packetType: connack, err: "bad protocol version", denied: true}},
		{"v3.1.1", "20020002", reply{packetType: connack, err: "client identifier rejected", denied: true}},
		{"v3.1.1", "20020003", reply{packetType: connack, err: "server unavailable"}},
		{"v3.1.1", "20020004", reply{packetType: connack, err: "username or password in unknown format", denied: true}},
		{"v3.1", "20020005", reply{packetType: connack, err: "not authorised", denied: true}},
		{"v3.1", "20020009", reply{packetType: connack, err: "unknown reason", denied: true}},
		{"v3.1.1", "40020102", reply{packetType: puback, id: 0x102}},
		{"v3.1.1", "50020102", reply{packetType: pubrec, id: 0x102}},
		{"v3.1.1", "70020102", reply{packetType: pubcomp, id: 0x102}},
		{"v3.1.1", "d000", reply{packetType: pingresp}},
		{"v3.1.1", "30050001612121", reply{}}, // a message, from a subscription of an earlier session
		{"v5.0", "2003000000", reply{packetType: connack}},
		{"v5.0", "2003010000", reply{packetType: connack, resumed: true}},
		{"v5.0", "2003008600", reply{
			packetType: connack, denied: true,
			err: "Bad User Name or Password - The Server does not accept the User Name or Password specified by the Client",
		}},
		{"v5.0", "40020102", reply{packetType: puback, id: 0x102}},
		{"v5.0", "4007010287031f0000", reply{packetType: puback, id: 0x102, denied: true, err: "The PUBLISH is not authorized"}},
		{"v5.0", "400b010297071f000466756c6c", reply{
			packetType: puback, id: 0x102, err: "An implementation or administrative imposed limit has been exceeded (full)",
		}},
		{"v5.0", "50020102", reply{packetType: pubrec, id: 0x102}},
		{"v5.0", "70020102", reply{packetType: pubcomp, id: 0x102}},
		{"v5.0", "d000", reply{packetType: pingresp}},
		{"v5.0", "e0028b00", reply{packetType: disconnect, err: "Server shutting down - The Server is shutting down"}},
	} {
		packet, err := hex.DecodeString(c.packet)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range codecs {
			if v.name != c.version {
				continue
			}
			got, err := v.read(bytes.NewReader(packet))
			if err != nil || got != c.want {
				t.Errorf("%s: %s: got %+v, %v, want %+v", v.name, c.packet, got, err, c.want)
			}
		}
	}
}

// TestCutReplies checks that a packet of a server that is too short is an error.
func TestCutReplies(t *testing.T) {
	for _, v := range codecs {
		for _, packet := range []string{"", "20", "2002", "200200", "2000", "200100", "4000", "400101", "4002", "5000", "7000", "700100"} {
			b, err := hex.DecodeString(packet)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := v.read(bytes.NewReader(b)); err == nil {
				t.Errorf("%s: %s: got %+v", v.name, packet, got)
			}
		}
	}
}

func TestLongPacket(t *testing.T) {
	for name, b := range map[string]string{
		"longer than any answer": "\x30\xff\xff\xff\x7f",
		"no length":              "\x30\xff\xff\xff\xff\xff",
	} {
		conn := &connection{r: bufio.NewReader(strings.NewReader(b)), codec: codecV3{version311}}
		if _, err := conn.read(); err == nil || !strings.Contains(err.Error(), "1048576 bytes") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	conn := &connection{r: bufio.NewReader(strings.NewReader("\x40\x02\x01\x02")), codec: codecV3{version311}}
	if a, err := conn.read(); err != nil || a != (reply{packetType: puback, id: 0x102}) {
		t.Error(a, err)
	}
}
