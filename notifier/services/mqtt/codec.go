package mqtt

import (
	"errors"
	"io"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// codec writes and reads the packets of one version of the protocol.
type codec interface {
	connect(w io.Writer, h *connectOptions) error
	publish(w io.Writer, p *publication) error
	release(w io.Writer, id uint16) error
	ping(w io.Writer) error
	disconnect(w io.Writer) error
	read(r io.Reader) (reply, error)
}

// connectOptions are the fields of a CONNECT packet.
type connectOptions struct {
	clientID, user, password string
	cleanSession             bool // forget the session that the server has kept
}

// publication is a message to one topic and its state.
type publication struct {
	topic    string
	body     []byte
	id       uint16 // packet identifier
	qos      byte
	retain   bool
	sent     bool // written to a connection, perhaps a broken one
	received bool // acknowledged by PUBREC
}

// reply is a packet from the server.
type reply struct {
	packetType byte
	id         uint16 // packet identifier
	err        string // why the server refuses; "" if it does not
	denied     bool   // no later attempt can succeed
	resumed    bool   // CONNACK: the server has kept the session
}

// Types of the packets that the server sends (MQTT 5.0, section 2.1.2; the same
// in older versions).
const (
	connack    = 2
	puback     = 4
	pubrec     = 5
	pubcomp    = 7
	pingresp   = 13
	disconnect = 14
)

// refusal returns the error of a reply that refuses what.
func (a *reply) refusal(what string) error {
	err := errors.New("the MQTT server refused " + what + ": " + a.err)
	if a.denied {
		return notifier.Denied(err)
	}
	return err
}
