package mailto

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// sendTo sends one mail: to the target, and to all addresses of cc and bcc.
func (m *service) sendTo(ctx context.Context, c *notifier.Client, msg *notifier.Message, target mail.Address, content mimePart) error {
	// Another attempt has the same ID, by which a mailbox that has the mail
	// recognizes it.
	id, err := notifier.OnceValue(c.Steps, "mail "+target.Address, func() (string, error) { return m.messageID(), nil })
	if err != nil {
		return err
	}
	l := mail.Letter{To: []mail.Address{target}}
	l.BCC = mail.Without(parseAddresses(m.bcc), l.To)
	l.CC = mail.Without(mail.Without(parseAddresses(m.cc), parseAddresses(m.bcc)), l.To)
	if content, err = m.protect(ctx, c, l, content); err != nil {
		return err
	}
	return m.deliver(ctx, c, &envelope{
		from: m.sender.Address, to: mail.Addresses(append(append(l.To, l.CC...), l.BCC...)),
		mail: m.mail(msg, l, id, content), id: id, steps: c.Steps,
	})
}

// envelope is a mail with its sender and recipients (RFC 5321, section 2.3.1).
type envelope struct {
	from  string
	to    []string
	mail  mimePart
	id    string
	steps *notifier.Steps
}

// step names the step of sending the mail to one recipient.
func (e *envelope) step(recipient string) string { return e.id + " to " + recipient }

// deliver hands the mail to the server.
func (m *service) deliver(ctx context.Context, c *notifier.Client, e *envelope) error {
	open := func(ctx context.Context) (*connection, error) { return m.dial(ctx, c) }
	var unknown error // the server may have the mail, so that it must not get it again
	return m.pool.do(ctx, open, func(ctx context.Context, mc *connection) error {
		if unknown != nil {
			return unknown
		}
		mc.conn.ResetReadLimit()
		defer wire.InterruptOnDone(ctx, mc.conn)()
		again, err := mc.transact(e)
		if err == nil || mc.reset(err) {
			return err
		}
		if !again {
			unknown = err
		}
		// At once, since a goodbye behind half a mail would end it properly.
		_ = mc.conn.Close()
		return wire.Broken(err)
	})
}

// reset makes the connection ready for the next mail after a failed one.
func (mc *connection) reset(err error) bool {
	refused, ok := errors.AsType[*replyError](err)
	return errors.Is(err, errNotASCII) || ok && refused.code != 421 && mc.client.Reset() == nil
}

var errNotASCII = errors.New("an address has letters beyond ASCII before its @, which the mail server cannot take")

// transact sends the mail to those recipients that do not have it. If the
// server takes some of them, they get it and the error is about the others.
// again says, where the connection broke, that the server has no mail yet.
func (mc *connection) transact(e *envelope) (again bool, err error) {
	international := !isASCII(e.from + strings.Join(e.to, ""))
	if ok, _ := mc.client.Extension("SMTPUTF8"); !ok && international {
		return false, errNotASCII
	}
	mc.client.SkipSMTPUTF8(!international)
	if err := mc.client.Mail("<" + e.from + ">"); err != nil {
		return true, stepError("MAIL", err)
	}
	var taken []string
	var refused []error
	for i, address := range e.to {
		if e.steps.Sent(e.step(address)) {
			continue
		}
		err := mc.client.Rcpt("<" + address + ">")
		if err == nil {
			taken = append(taken, address)
			continue
		}
		err = stepError("RCPT", err)
		answer, ok := errors.AsType[*replyError](err)
		if !ok || answer.code == 421 {
			return true, err
		}
		refused = append(refused, fmt.Errorf("recipient %d of %d: %w", i+1, len(e.to), err))
	}
	if len(taken) == 0 {
		return false, errors.Join(refused...)
	}
	w, err := mc.client.Data()
	if err != nil {
		return true, stepError("DATA", err)
	}
	// Where the mail cannot be written to its end, the end is not marked:
	// half a mail would be one.
	buf := bufio.NewWriterSize(w, 32<<10)
	if err := e.mail.write(buf); err != nil {
		return true, stepError("sending the mail", err)
	}
	if err := buf.Flush(); err != nil {
		return true, stepError("sending the mail", err)
	}
	if err := w.Close(); err != nil {
		return false, stepError(stepEnd, err)
	}
	for _, address := range taken {
		e.steps.MarkSent(e.step(address))
	}
	return false, errors.Join(refused...)
}
