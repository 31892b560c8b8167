package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/linxGnu/gosmpp/data"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// smppLink is a session with a message centre. It has one outstanding request at a
// time.
type smppLink struct {
	conn     *wire.Conn
	sequence uint32 // of the last request
}

// bind signs in as a transmitter.
func (l *smppLink) bind(ctx context.Context, timeout time.Duration, user, password string) error {
	status, err := l.do(ctx, timeout, data.BIND_TRANSMITTER, smppBind(user, password))
	if errors.Is(err, io.EOF) {
		return errors.New("the SMPP server closed the connection at the login; check the user and the password")
	}
	if err != nil {
		return fmt.Errorf("signing in to the SMPP server: %w", err)
	}
	if status != data.ESME_ROK {
		return smppRefusal("the login", status)
	}
	return nil
}

// submit sends a message and waits until the server has accepted it.
func (l *smppLink) submit(ctx context.Context, timeout time.Duration, m smppMessage) error {
	status, err := l.do(ctx, timeout, data.SUBMIT_SM, m.body())
	if err != nil {
		return fmt.Errorf("sending to the SMPP server: %w", err)
	}
	switch status {
	case data.ESME_ROK:
		return nil
	case data.ESME_RINVBNDSTS: // the server no longer knows the session
		return wire.Broken(smppStatus(status))
	default:
		return smppRefusal("the message", status)
	}
}

// smppDenied are the statuses that no later attempt can change: a wrong password or user,
// and a wrong number.
var smppDenied = []data.CommandStatusType{data.ESME_RINVPASWD, data.ESME_RINVSYSID, data.ESME_RINVSRCADR, data.ESME_RINVDSTADR}

// smppRefusal returns the error for a status with which the server refuses what.
func smppRefusal(what string, status data.CommandStatusType) error {
	err := fmt.Errorf("the SMPP server refused %s: %w", what, smppStatus(status))
	if slices.Contains(smppDenied, status) {
		return notifier.Denied(err)
	}
	return err
}

// Ping checks that the server answers.
func (l *smppLink) Ping(ctx context.Context) error {
	_, err := l.do(ctx, 0, data.ENQUIRE_LINK, nil)
	return err
}

// smppStatus returns the error for a status other than ESME_ROK.
func smppStatus(s data.CommandStatusType) error {
	return fmt.Errorf("%s (%s)", s.Desc(), s)
}

// do sends a request and waits for the status of the answer, at most for timeout,
// or until ctx is done if timeout is 0. It answers requests of the server
// meanwhile. An error ends the session.
func (l *smppLink) do(ctx context.Context, timeout time.Duration, id data.CommandIDType, body []byte) (data.CommandStatusType, error) {
	ctx, cancel := wire.WithAnswerTimeout(ctx, timeout)
	defer cancel()
	if err := l.conn.SetDeadline(time.Time{}); err != nil {
		return 0, wire.Broken(err)
	}
	defer wire.InterruptOnDone(ctx, l.conn)()
	l.conn.ResetReadLimit()
	if err := l.request(id, body); err != nil {
		return 0, err
	}
	for {
		p, err := smppRead(l.conn)
		if err != nil {
			return 0, wire.Broken(errs.ContextError(ctx, err))
		}
		// Another message may have been submitted before this one.
		if p.id == id|smppAnswerBit && (p.sequence == l.sequence || id != data.SUBMIT_SM) {
			return p.status, nil
		}
		if p.id == data.GENERIC_NACK {
			return 0, wire.Broken(smppStatus(p.status))
		}
		if a, ok := p.answer(); ok {
			if err := l.write(a); err != nil {
				return 0, err
			}
		}
		if p.id == data.UNBIND {
			return 0, wire.Broken(errors.New("the server ended the session"))
		}
	}
}

func (l *smppLink) request(id data.CommandIDType, body []byte) error {
	l.sequence = l.sequence%math.MaxInt32 + 1
	return l.write(smppPDU{id: id, sequence: l.sequence, body: body})
}

func (l *smppLink) write(p smppPDU) error {
	if _, err := l.conn.Write(p.encode()); err != nil {
		return wire.Broken(err)
	}
	return nil
}

// Close ends the session. It does not wait for the answer of the server.
func (l *smppLink) Close() error {
	_ = l.conn.SetDeadline(time.Now().Add(time.Second))
	_ = l.request(data.UNBIND, nil)
	return l.conn.Close()
}
