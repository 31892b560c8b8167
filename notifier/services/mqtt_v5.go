package services

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/eclipse/paho.golang/packets"
)

// mqttV5 are the packets of MQTT 5.0.
type mqttV5 struct{}

func (mqttV5) connect(w io.Writer, h *mqttHello) error {
	p := packets.NewControlPacket(packets.CONNECT)
	c := p.Content.(*packets.Connect)
	c.CleanStart, c.KeepAlive, c.ClientID = h.fresh, mqttKeepAlive, h.id
	c.UsernameFlag, c.Username = h.user != "", h.user
	c.PasswordFlag, c.Password = h.password != "", []byte(h.password)
	if !h.fresh {
		forever := uint32(math.MaxUint32) // as in the older versions
		c.Properties.SessionExpiryInterval = &forever
	}
	return mqttWrite(w, p)
}

func (mqttV5) publish(w io.Writer, m *mqttPublication) error {
	p := packets.NewControlPacket(packets.PUBLISH)
	p.Content = &packets.Publish{
		Topic: m.topic, Payload: m.body, PacketID: m.id, Properties: &packets.Properties{},
		QoS: m.qos, Retain: m.retain, Duplicate: m.sent && m.qos > 0,
	}
	return mqttWrite(w, p)
}

func (mqttV5) release(w io.Writer, id uint16) error {
	p := packets.NewControlPacket(packets.PUBREL)
	p.Content.(*packets.Pubrel).PacketID = id
	return mqttWrite(w, p)
}

func (mqttV5) ping(w io.Writer) error { return mqttWrite(w, packets.NewControlPacket(packets.PINGREQ)) }

func (mqttV5) disconnect(w io.Writer) error {
	return mqttWrite(w, packets.NewControlPacket(packets.DISCONNECT))
}

func mqttWrite(w io.Writer, p *packets.ControlPacket) error {
	_, err := p.WriteTo(w)
	return err
}

func (mqttV5) read(r io.Reader) (a mqttAnswer, err error) {
	p, err := packets.ReadPacket(r)
	if err != nil {
		return a, err
	}
	a.kind, a.id = p.Type, p.PacketID()
	switch c := p.Content.(type) {
	case *packets.Connack:
		a.resumed, a.refusal = c.SessionPresent, mqttRefusal(c.ReasonCode, c.Reason(), c.Properties)
	case *packets.Puback:
		a.refusal = mqttRefusal(c.ReasonCode, c.Reason(), c.Properties)
	case *packets.Pubrec:
		a.refusal = mqttRefusal(c.ReasonCode, c.Reason(), c.Properties)
	case *packets.Disconnect:
		a.refusal = cmp.Or(mqttRefusal(c.ReasonCode, c.Reason(), c.Properties), "it gives no reason")
	}
	return a, nil
}

// mqttRefusal is the text of a reason code, "" for one that means success,
// and what the server says besides.
func mqttRefusal(code byte, reason string, p *packets.Properties) string {
	if code < 0x80 {
		return ""
	}
	text := strings.TrimRight(cmp.Or(reason, fmt.Sprintf("reason code %#x", code)), ".")
	if p != nil && p.ReasonString != "" {
		text += " (" + p.ReasonString + ")"
	}
	return text
}
