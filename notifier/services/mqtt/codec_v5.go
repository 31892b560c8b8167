package mqtt

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/eclipse/paho.golang/packets"
)

// codecV5 is the codec for MQTT 5.0.
type codecV5 struct{}

func (codecV5) connect(w io.Writer, h *connectOptions) error {
	p := packets.NewControlPacket(packets.CONNECT)
	c := p.Content.(*packets.Connect)
	c.CleanStart, c.KeepAlive, c.ClientID = h.cleanSession, keepAlive, h.clientID
	c.UsernameFlag, c.Username = h.user != "", h.user
	c.PasswordFlag, c.Password = h.password != "", []byte(h.password)
	if !h.cleanSession {
		forever := uint32(math.MaxUint32) // as older versions do
		c.Properties.SessionExpiryInterval = &forever
	}
	return writePacket(w, p)
}

func (codecV5) publish(w io.Writer, m *publication) error {
	p := packets.NewControlPacket(packets.PUBLISH)
	p.Content = &packets.Publish{
		Topic: m.topic, Payload: m.body, PacketID: m.id, Properties: &packets.Properties{},
		QoS: m.qos, Retain: m.retain, Duplicate: m.sent && m.qos > 0,
	}
	return writePacket(w, p)
}

func (codecV5) release(w io.Writer, id uint16) error {
	p := packets.NewControlPacket(packets.PUBREL)
	p.Content.(*packets.Pubrel).PacketID = id
	return writePacket(w, p)
}

func (codecV5) ping(w io.Writer) error {
	return writePacket(w, packets.NewControlPacket(packets.PINGREQ))
}

func (codecV5) disconnect(w io.Writer) error {
	return writePacket(w, packets.NewControlPacket(packets.DISCONNECT))
}

func writePacket(w io.Writer, p *packets.ControlPacket) error {
	_, err := p.WriteTo(w)
	return err
}

func (codecV5) read(r io.Reader) (a reply, err error) {
	p, err := packets.ReadPacket(r)
	if err != nil {
		return a, err
	}
	a.packetType, a.id = p.Type, p.PacketID()
	switch c := p.Content.(type) {
	case *packets.Connack:
		a.resumed, a.err, a.denied = c.SessionPresent, reasonText(c.ReasonCode, c.Reason(), c.Properties), denied[c.ReasonCode]
	case *packets.Puback:
		a.err, a.denied = reasonText(c.ReasonCode, c.Reason(), c.Properties), denied[c.ReasonCode]
	case *packets.Pubrec:
		a.err, a.denied = reasonText(c.ReasonCode, c.Reason(), c.Properties), denied[c.ReasonCode]
	case *packets.Disconnect:
		a.err = cmp.Or(reasonText(c.ReasonCode, c.Reason(), c.Properties), "no reason given")
	}
	return a, nil
}

// denied are the reason codes that no later attempt can change (MQTT 5.0, section 2.4).
// Other codes come from a server that is busy, shuts down or limits what it takes.
var denied = map[byte]bool{
	0x84: true, // unsupported protocol version
	0x85: true, // client identifier not valid
	0x86: true, // bad user name or password
	0x87: true, // not authorized
	0x8A: true, // banned
	0x8C: true, // bad authentication method
	0x90: true, // topic name invalid
	0x95: true, // packet too large
	0x99: true, // payload format invalid
	0x9A: true, // retain not supported
	0x9B: true, // quality of service not supported
}

// reasonText returns the text of a reason code, with what the server adds, or
// "" if the code means success.
func reasonText(code byte, reason string, p *packets.Properties) string {
	if code < 0x80 {
		return ""
	}
	text := strings.TrimRight(cmp.Or(reason, fmt.Sprintf("reason code %#x", code)), ".")
	if p != nil && p.ReasonString != "" {
		text += " (" + p.ReasonString + ")"
	}
	return text
}
