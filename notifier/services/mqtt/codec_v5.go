package mqtt

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/eclipse/paho.golang/packets"
)

// codecV5 are the packets of MQTT 5.0.
type codecV5 struct{}

func (codecV5) connect(w io.Writer, h *connectOptions) error {
	p := packets.NewControlPacket(packets.CONNECT)
	c := p.Content.(*packets.Connect)
	c.CleanStart, c.KeepAlive, c.ClientID = h.fresh, keepAlive, h.id
	c.UsernameFlag, c.Username = h.user != "", h.user
	c.PasswordFlag, c.Password = h.password != "", []byte(h.password)
	if !h.fresh {
		forever := uint32(math.MaxUint32) // as in the older versions
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
	a.kind, a.id = p.Type, p.PacketID()
	switch c := p.Content.(type) {
	case *packets.Connack:
		a.resumed, a.refusal = c.SessionPresent, reasonText(c.ReasonCode, c.Reason(), c.Properties)
	case *packets.Puback:
		a.refusal = reasonText(c.ReasonCode, c.Reason(), c.Properties)
	case *packets.Pubrec:
		a.refusal = reasonText(c.ReasonCode, c.Reason(), c.Properties)
	case *packets.Disconnect:
		a.refusal = cmp.Or(reasonText(c.ReasonCode, c.Reason(), c.Properties), "it gives no reason")
	}
	return a, nil
}

// reasonText is the text of a reason code, "" for one that means success,
// and what the server says besides.
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
