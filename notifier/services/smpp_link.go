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

// smppLink is a session with a message centre. One request is under way at a
// time.
type smppLink struct{ conn *wire.Conn }

// bind signs in as one that only sends.
func (l *smppLink) bind(ctx context.Context, patience time.Duration, user, password string) error {
	request := pdu.NewBindRequest(pdu.Transmitter)
	request.SystemID, request.Password = user, password
	answer, err := l.ask(ctx, patience, request, func(p pdu.PDU) bool {
		_, ok := p.(*pdu.BindResp)
		return ok
	})
	if errors.Is(err, io.EOF) {
		return errors.New("the SMPP server hung up instead of letting us in; check the user and the password")
	}
	if err != nil {
		return fmt.Errorf("signing in to the SMPP server: %w", err)
	}
	if status := answer.GetHeader().CommandStatus; status != data.ESME_ROK {
		return fmt.Errorf("the SMPP server refused to let us in: %w", smppStatus(status))
	}
	return nil
}

// submit sends a message and waits until the server has taken it.
func (l *smppLink) submit(ctx context.Context, patience time.Duration, m *pdu.SubmitSM) error {
	m.AssignSequenceNumber()
	answer, err := l.ask(ctx, patience, m, func(p pdu.PDU) bool {
		_, ok := p.(*pdu.SubmitSMResp)
		return ok && p.GetSequenceNumber() == m.GetSequenceNumber()
	})
	if err != nil {
		return fmt.Errorf("sending to the SMPP server: %w", err)
	}
	switch status := answer.GetHeader().CommandStatus; status {
	case data.ESME_ROK:
		return nil
	case data.ESME_RINVBNDSTS: // it has forgotten the session
		return wire.Broken(smppStatus(status))
	default:
		return fmt.Errorf("the SMPP server refused the message: %w", smppStatus(status))
	}
}

// Ping asks whether the server is there.
func (l *smppLink) Ping(ctx context.Context) error {
	_, err := l.ask(ctx, 0, pdu.NewEnquireLink(), func(p pdu.PDU) bool {
		_, ok := p.(*pdu.EnquireLinkResp)
		return ok
	})
	return err
}

// smppStatus is a status that says no.
func smppStatus(s data.CommandStatusType) error {
	return fmt.Errorf("%s (%s)", s.Desc(), s)
}

// ask sends a request and reads until the answer comes, for so long at most; 0
// is as long as ctx. What the server asks meanwhile is answered. Errors are
// such as end the session.
func (l *smppLink) ask(ctx context.Context, patience time.Duration, request pdu.PDU, isAnswer func(pdu.PDU) bool) (pdu.PDU, error) {
	ctx, cancel := wire.WithAnswerTimeout(ctx, patience)
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
			return nil, wire.Broken(errors.New("it ended the session"))
		}
	}
}

// smppRead reads what the server says. A refusal need not have a body, and the
// library stumbles over some that have one, so that is left out.
func smppRead(r io.Reader) (pdu.PDU, error) {
	var head [data.PDU_HEADER_SIZE]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	h := pdu.ParseHeader(head)
	if h.CommandLength < data.PDU_HEADER_SIZE || h.CommandLength > data.MAX_PDU_LEN {
		return nil, errors.New("what answers there does not speak SMPP")
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

// Close takes leave of the server, without waiting for its answer.
func (l *smppLink) Close() error {
	_ = l.conn.SetDeadline(time.Now().Add(time.Second))
	_ = l.write(pdu.NewUnbind())
	return l.conn.Close()
}
