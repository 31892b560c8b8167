package mqtt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/eclipse/paho.golang/packets"
)

// codecV3 is the codec for MQTT 3.1 and 3.1.1, by the protocol level. The library for version 5.0
// does not know these, but has their packet types.
type codecV3 struct{ level byte }

func (v codecV3) connect(w io.Writer, h *connectOptions) error {
	var flags byte
	if h.cleanSession {
		flags |= 1 << 1
	}
	name := "MQTT"
	if v.level == version31 {
		name = "MQIsdp"
	}
	payload := appendText(nil, h.clientID)
	if h.user != "" {
		flags |= 1 << 7
		payload = appendText(payload, h.user)
	}
	if h.password != "" {
		flags |= 1 << 6
		payload = appendText(payload, h.password)
	}
	b := append(appendText(nil, name), v.level, flags)
	b = binary.BigEndian.AppendUint16(b, keepAlive)
	return writeV3(w, packets.CONNECT, 0, append(b, payload...))
}

func (codecV3) publish(w io.Writer, m *publication) error {
	flags := m.qos << 1
	b := appendText(nil, m.topic)
	if m.qos > 0 {
		b = binary.BigEndian.AppendUint16(b, m.id)
		if m.sent {
			flags |= 1 << 3
		}
	}
	if m.retain {
		flags |= 1
	}
	return writeV3(w, packets.PUBLISH, flags, append(b, m.body...))
}

func (codecV3) release(w io.Writer, id uint16) error {
	return writeV3(w, packets.PUBREL, 2, binary.BigEndian.AppendUint16(nil, id))
}

func (codecV3) ping(w io.Writer) error { return writeV3(w, packets.PINGREQ, 0, nil) }

func (codecV3) disconnect(w io.Writer) error { return writeV3(w, packets.DISCONNECT, 0, nil) }

// writeV3 writes a packet with what follows the fixed header (MQTT 3.1.1, section 2.2).
func writeV3(w io.Writer, packetType, flags byte, rest []byte) error {
	// Groups of seven bits, the lowest first, are how varints are encoded, too.
	b := binary.AppendUvarint([]byte{packetType<<4 | flags}, uint64(len(rest)))
	_, err := w.Write(append(b, rest...))
	return err
}

// appendText appends a text with its length before it. A longer one than the length can say is cut,
// so that what is left is not read as other fields.
func appendText(b []byte, text string) []byte {
	text = text[:min(len(text), 1<<16-1)]
	return append(binary.BigEndian.AppendUint16(b, uint16(len(text))), text...) //nolint:gosec // it is checked
}

func (codecV3) read(r io.Reader) (a reply, err error) {
	var first [1]byte
	if _, err := io.ReadFull(r, first[:]); err != nil {
		return a, err
	}
	length, err := readLength(r)
	if err != nil {
		return a, err
	}
	rest := make([]byte, length)
	if _, err := io.ReadFull(r, rest); err != nil {
		return a, err
	}
	switch t := first[0] >> 4; t {
	case packets.CONNACK, packets.PUBACK, packets.PUBREC, packets.PUBCOMP:
		if length < 2 {
			return a, fmt.Errorf("the MQTT server sent a packet of type %d that is too short", t)
		}
		a.packetType = t
		if t != packets.CONNACK {
			a.id = binary.BigEndian.Uint16(rest)
			return a, nil
		}
		a.resumed = rest[0]&1 != 0
		if code := rest[1]; code != 0 {
			a.err, a.denied = "unknown reason", code != serverUnavailable
			if int(code) < len(returnCodes) {
				a.err = returnCodes[code]
			}
		}
	case packets.PINGRESP:
		a.packetType = t
	}
	return a, nil
}

// readLength reads the length in a fixed header.
func readLength(r io.Reader) (length int, err error) {
	var b [1]byte
	for shift := 0; shift < 28; shift += 7 {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return 0, err
		}
		length |= int(b[0]&0x7f) << shift
		if b[0]&0x80 == 0 {
			return length, nil
		}
	}
	return 0, errors.New("the MQTT server sent data that is not MQTT")
}

// serverUnavailable is the one return code that a later attempt can change.
const serverUnavailable = 3

// returnCodes are the texts for the return codes of CONNACK (MQTT 3.1.1, section 3.2.2.3).
var returnCodes = [...]string{
	1:                 "bad protocol version",
	2:                 "client identifier rejected",
	serverUnavailable: "server unavailable",
	4:                 "username or password in unknown format",
	5:                 "not authorised",
}
