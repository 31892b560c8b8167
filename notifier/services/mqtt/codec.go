package mqtt

import "io"

// codec writes and reads the packets of one version of the protocol.
type codec interface {
	connect(w io.Writer, h *connectOptions) error
	publish(w io.Writer, p *publication) error
	release(w io.Writer, id uint16) error
	ping(w io.Writer) error
	disconnect(w io.Writer) error
	read(r io.Reader) (reply, error)
}

type connectOptions struct {
	id, user, password string
	fresh              bool // without what the server has kept of a session
}

// publication is a message on its way to a topic.
type publication struct {
	topic          string
	body           []byte
	id             uint16
	qos            byte
	retain         bool
	sent, received bool // for all we know
}

// reply is a packet of the server.
type reply struct {
	kind    byte
	id      uint16
	refusal string // "" if it is none
	resumed bool
}

// The kinds of packets that answer ours (MQTT 5.0, section 2.1.2; those of
// the older versions are the same).
const (
	connack    = 2
	puback     = 4
	pubrec     = 5
	pubcomp    = 7
	pingresp   = 13
	disconnect = 14
)
