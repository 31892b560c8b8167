package services

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// smppLink is a session with a message centre. It has one outstanding request at a
// time.
type smppLink struct{ conn *wire.Conn }

// bind signs in as a transmitter.
func (l *smppLink) bind(ctx context.Context, timeout time.Duration, user, password string) error {
	request := pdu.NewBindRequest(pdu.Transmitter)
	request.SystemID, request.Password = user, password
	answer, err := l.do(ctx, timeout, request, func(p pdu.PDU) bool {
		_, ok := p.(*pdu.BindResp)
		return ok
	})
	if errors.Is(err, io.EOF) {
		return errors.New("the SMPP server closed the connection at the login; check the user and the password")
	}
	if err != nil {
		return fmt.Errorf("signing in to the SMPP server: %w", err)
	}
	if status := answer.GetHeader().CommandStatus; status != data.ESME_ROK {
		return fmt.Errorf("the SMPP server refused the login: %w", smppStatus(status))
	}
	return nil
}

// submit sends a message and waits until the server has accepted it.
func (l *smppLink) submit(ctx context.Context, timeout time.Duration, m *pdu.SubmitSM) error {
	m.AssignSequenceNumber()
	answer, err := l.do(ctx, timeout, m, func(p pdu.PDU) bool {
		_, ok := p.(*pdu.SubmitSMResp)
		return ok && p.GetSequenceNumber() == m.GetSequenceNumber()
	})
	if err != nil {
		return fmt.Errorf("sending to the SMPP server: %w", err)
	}
	switch status := answer.GetHeader().CommandStatus; status {
	case data.ESME_ROK:
		return nil
	case data.ESME_RINVBNDSTS: // the server no longer knows the session
		return wire.Broken(smppStatus(status))
	default:
		return fmt.Errorf("the SMPP server refused the message: %w", smppStatus(status))
	}
}

// Ping checks that the server answers.
func (l *smppLink) Ping(ctx context.Context) error {
	_, err := l.do(ctx, 0, pdu.NewEnquireLink(), func(p pdu.PDU) bool {
		_, ok := p.(*pdu.EnquireLinkResp)
		return ok
	})
	return err
}

// smppStatus returns the error for a status other than ESME_ROK.
func smppStatus(s data.CommandStatusType) error {
	return fmt.Errorf("%s (%s)", s.Desc(), s)
}

// do sends a request and waits for the answer, at most for timeout, or until ctx is
// done if timeout is 0. It responds to requests of the server meanwhile. An error
// ends the session.
func (l *smppLink) do(ctx context.Context, timeout time.Duration, request pdu.PDU, isAnswer func(pdu.PDU) bool) (pdu.PDU, error) {
	ctx, cancel := wire.WithAnswerTimeout(ctx, timeout)
	defer cancel()
	if err := l.conn.SetDeadline(time.Time{}); err != nil {
		return nil, wire.Broken(err)
	}
	defer wire.InterruptOnDone(ctx, l.conn)()
	l.conn.ResetReadLimit()
	if err := l.write(request); err != nil {
		return nil, err
	}
	for {
		p, err := smppRead(l.conn)
		if err != nil {
			return nil, wire.Broken(errs.ContextError(ctx, err))
		}
		if isAnswer(p) {
			return p, nil
		}
		if p.IsGNack() {
			return nil, wire.Broken(smppStatus(p.GetHeader().CommandStatus))
		}
		if p.CanResponse() {
			if err := l.write(p.GetResponse()); err != nil {
				return nil, err
			}
		}
		if _, ok := p.(*pdu.Unbind); ok {
			return nil, wire.Broken(errors.New("the server ended the session"))
		}
	}
}

// smppRead reads a PDU. It skips the body of a refusal: the body is optional, and
// the library fails to parse some.
func smppRead(r io.Reader) (pdu.PDU, error) {
	var head [data.PDU_HEADER_SIZE]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	h := pdu.ParseHeader(head)
	if h.CommandLength < data.PDU_HEADER_SIZE || h.CommandLength > data.MAX_PDU_LEN {
		return nil, errors.New("the server does not speak SMPP; check the host and the port")
	}
	body := make([]byte, h.CommandLength-data.PDU_HEADER_SIZE)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	if h.CommandStatus != data.ESME_ROK {
		body = nil
		binary.BigEndian.PutUint32(head[:], data.PDU_HEADER_SIZE)
	}
	return pdu.Parse(io.MultiReader(bytes.NewReader(head[:]), bytes.NewReader(body)))
}

func (l *smppLink) write(p pdu.PDU) error {
	b := pdu.NewBuffer(nil)
	p.Marshal(b)
	if _, err := l.conn.Write(b.Bytes()); err != nil {
		return wire.Broken(err)
	}
	return nil
}

// Close ends the session. It does not wait for the answer of the server.
func (l *smppLink) Close() error {
	_ = l.conn.SetDeadline(time.Now().Add(time.Second))
	_ = l.write(pdu.NewUnbind())
	return l.conn.Close()
}
