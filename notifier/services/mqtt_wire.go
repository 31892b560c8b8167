package services

import "io"

// mqttWire writes and reads the packets of one version of the protocol.
type mqttWire interface {
	connect(w io.Writer, h *mqttHello) error
	publish(w io.Writer, p *mqttPublication) error
	release(w io.Writer, id uint16) error
	ping(w io.Writer) error
	disconnect(w io.Writer) error
	read(r io.Reader) (mqttAnswer, error)
}

type mqttHello struct {
	id, user, password string
	fresh              bool // without what the server has kept of a session
}

// mqttPublication is a message on its way to a topic.
type mqttPublication struct {
	topic          string
	body           []byte
	id             uint16
	qos            byte
	retain         bool
	sent, received bool // for all we know
}

// mqttAnswer is a packet of the server.
type mqttAnswer struct {
	kind    byte
	id      uint16
	refusal string // "" if it is none
	resumed bool
}

// The kinds of packets that answer ours (MQTT 5.0, section 2.1.2; those of
// the older versions are the same).
const (
	mqttConnack    = 2
	mqttPuback     = 4
	mqttPubrec     = 5
	mqttPubcomp    = 7
	mqttPingresp   = 13
	mqttDisconnect = 14
)
