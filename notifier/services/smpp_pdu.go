package services

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/linxGnu/gosmpp/data"
)

// smppPDU is a protocol data unit: a request or an answer (SMPP 3.4, section 3.2).
type smppPDU struct {
	id       data.CommandIDType
	status   data.CommandStatusType
	sequence uint32
	body     []byte // of a PDU to write
}

// smppAnswerBit is set in the ID of an answer. The other bits are the request's.
const smppAnswerBit data.CommandIDType = -1 << 31

// answer returns the answer to a request of the server, or false if p needs none.
func (p smppPDU) answer() (smppPDU, bool) {
	a := smppPDU{id: p.id | smppAnswerBit, sequence: p.sequence}
	switch p.id {
	case data.ENQUIRE_LINK, data.UNBIND:
	case data.DELIVER_SM, data.DATA_SM:
		a.body = []byte{0} // an empty ID of the message
	case data.OUTBIND, data.ALERT_NOTIFICATION:
		return a, false
	default:
		if p.id&smppAnswerBit != 0 {
			return a, false
		}
		a.id, a.status = data.GENERIC_NACK, data.ESME_RINVCMDID
	}
	return a, true
}

// smppRead reads a PDU and skips its body. The header has the status of a request.
func smppRead(r io.Reader) (p smppPDU, err error) {
	var head [data.PDU_HEADER_SIZE]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return p, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < data.PDU_HEADER_SIZE || n > data.MAX_PDU_LEN {
		return p, errors.New("the server does not speak SMPP; check the host and the port")
	}
	p.id = data.CommandIDType(binary.BigEndian.Uint32(head[4:]))
	p.status = data.CommandStatusType(binary.BigEndian.Uint32(head[8:]))
	p.sequence = binary.BigEndian.Uint32(head[12:])
	_, err = io.CopyN(io.Discard, r, int64(n-data.PDU_HEADER_SIZE))
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return p, err
}

// encode returns the PDU as it is written.
func (p smppPDU) encode() []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(data.PDU_HEADER_SIZE+len(p.body)))
	b = binary.BigEndian.AppendUint32(b, uint32(p.id))
	b = binary.BigEndian.AppendUint32(b, uint32(p.status))
	b = binary.BigEndian.AppendUint32(b, p.sequence)
	return append(b, p.body...)
}

// smppBind returns the body of a request to sign in (section 4.1.1).
func smppBind(user, password string) []byte {
	return slices.Concat(smppText(user), smppText(password),
		smppText(""),                // type of system
		[]byte{data.SMPP_V34, 0, 0}, // type of number and numbering plan: unknown
		smppText(""))                // range of addresses
}

// smppMessage is one part of a text for one number.
type smppMessage struct {
	from, to string
	coding   byte
	header   []byte // user data header, which joins the parts of a text; may be nil
	text     []byte
}

const (
	smppInternational = 1 // type of number
	smppTelephone     = 1 // numbering plan: ITU-T E.164
)

// body returns the body of a request to send the message (section 4.4.1). It
// requests no delivery receipt, since nothing would read it.
func (m smppMessage) body() []byte {
	class := byte(0)
	if m.header != nil {
		class = data.SM_UDH_GSM
	}
	return slices.Concat(smppText(""), // type of service
		[]byte{smppInternational, smppTelephone}, smppText(m.from),
		[]byte{smppInternational, smppTelephone}, smppText(m.to),
		[]byte{class, 0, 0},        // protocol, priority
		smppText(""), smppText(""), // times of delivery and expiry
		[]byte{0, 0, m.coding, 0, byte(len(m.header) + len(m.text))}, // receipt, replacement; text of the server
		m.header, m.text)
}

// smppText returns a text that ends at a NUL.
func smppText(s string) []byte { return append([]byte(s), 0) }
