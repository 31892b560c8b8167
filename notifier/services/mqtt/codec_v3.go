package mqtt

import (
	"io"
	"strings"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// codecV3 is the codec for MQTT 3.1 and 3.1.1, by the protocol level.
type codecV3 struct{ level byte }

func (v codecV3) connect(w io.Writer, h *connectOptions) error {
	p := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	p.ProtocolName, p.ProtocolVersion = "MQTT", v.level
	if v.level == version31 {
		p.ProtocolName = "MQIsdp"
	}
	p.CleanSession, p.Keepalive, p.ClientIdentifier = h.cleanSession, keepAlive, h.clientID
	p.UsernameFlag, p.Username = h.user != "", h.user
	p.PasswordFlag, p.Password = h.password != "", []byte(h.password)
	return p.Write(w)
}

func (codecV3) publish(w io.Writer, m *publication) error {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName, p.Payload, p.MessageID = m.topic, m.body, m.id
	p.Qos, p.Retain, p.Dup = m.qos, m.retain, m.sent && m.qos > 0
	return p.Write(w)
}

func (codecV3) release(w io.Writer, id uint16) error {
	p := packets.NewControlPacket(packets.Pubrel).(*packets.PubrelPacket)
	p.MessageID = id
	return p.Write(w)
}

func (codecV3) ping(w io.Writer) error {
	return packets.NewControlPacket(packets.Pingreq).Write(w)
}

func (codecV3) disconnect(w io.Writer) error {
	return packets.NewControlPacket(packets.Disconnect).Write(w)
}

func (codecV3) read(r io.Reader) (a reply, err error) {
	p, err := packets.ReadPacket(r)
	switch p := p.(type) {
	case *packets.ConnackPacket:
		a.packetType, a.resumed = connack, p.SessionPresent
		if p.ReturnCode != packets.Accepted {
			a.err, a.denied = "unknown reason", p.ReturnCode != packets.ErrRefusedServerUnavailable
			if text := packets.ConnackReturnCodes[p.ReturnCode]; text != "" {
				a.err = strings.ToLower(strings.TrimPrefix(text, "Connection Refused: "))
			}
		}
	case *packets.PubackPacket:
		a.packetType, a.id = puback, p.MessageID
	case *packets.PubrecPacket:
		a.packetType, a.id = pubrec, p.MessageID
	case *packets.PubcompPacket:
		a.packetType, a.id = pubcomp, p.MessageID
	case *packets.PingrespPacket:
		a.packetType = pingresp
	}
	return a, err
}
