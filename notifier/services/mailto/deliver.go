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

// sendTo sends one mail, to the target and to the recipients of copies.
func (m *service) sendTo(ctx context.Context, c *notifier.Client, msg *notifier.Message, target mail.Address, content mail.Part) error {
	// A retry has the same Message-ID, so that a mailbox that has the mail
	// already can drop it.
	id, err := notifier.OnceValue(c.Steps, "mail "+target.Address, func() (string, error) { return m.messageID(), nil })
	if err != nil {
		return err
	}
	rcpt := mail.NewRecipients([]mail.Address{target}, parseAddresses(m.cc), parseAddresses(m.bcc))
	if content, err = m.protect(ctx, c, rcpt, content); err != nil {
		return err
	}
	chat, err := m.chatHeader(ctx, c, msg)
	if err != nil {
		return err
	}
	return m.deliver(ctx, c, &envelope{
		from: m.sender.Address, to: mail.Addresses(rcpt.All()),
		mail: m.mail(msg, rcpt, id, content, chat), id: id, steps: c.Steps,
	})
}

// envelope is a mail with its sender and recipients (RFC 5321, section 2.3.1).
type envelope struct {
	from  string
	to    []string
	mail  mail.Part
	id    string
	steps *notifier.Steps
}

// step names the step of sending the mail to one recipient.
func (e *envelope) step(recipient string) string { return e.id + " to " + recipient }

// deliver hands the mail to the server.
func (m *service) deliver(ctx context.Context, c *notifier.Client, e *envelope) error {
	open := func(ctx context.Context) (*connection, error) { return m.dial(ctx, c) }
	var unknown error // set if the server may have the mail: it must not get it again
	return m.connections().do(ctx, open, func(ctx context.Context, mc *connection) error {
		if unknown != nil {
			return unknown
		}
		mc.conn.ResetReadLimit()
		defer wire.InterruptOnDone(ctx, mc.conn)()
		retry, err := mc.transact(e)
		if err == nil || mc.reset(err) {
			return err
		}
		if !retry {
			unknown = err
		}
		// Close without QUIT, because a line after half a mail could complete it.
		_ = mc.conn.Close()
		return wire.Broken(err)
	})
}

// reset prepares the connection for the next mail after err, and reports whether
// it could.
func (mc *connection) reset(err error) bool {
	refused, ok := errors.AsType[*replyError](err)
	return errors.Is(err, errNotASCII) || ok && refused.code != 421 && mc.client.Reset() == nil
}

// errNotASCII is permanent, because no later attempt succeeds until somebody changes the address
// or the server.
var errNotASCII = notifier.Denied(errors.New("an address has letters beyond ASCII before its @, and the mail server does not support that"))

// transact sends the mail to the recipients that do not have it yet. If the
// server accepts some of them, those get it and the error is about the others.
// If the connection broke, retry reports whether the server certainly does not
// have the mail.
func (mc *connection) transact(e *envelope) (retry bool, err error) {
	international := !mail.IsASCII(e.from + strings.Join(e.to, ""))
	if ok, _ := mc.client.Extension("SMTPUTF8"); !ok && international {
		return false, errNotASCII
	}
	mc.client.SkipSMTPUTF8(!international)
	if err := mc.client.Mail("<" + e.from + ">"); err != nil {
		return true, stepError("MAIL", err)
	}
	var accepted []string
	var refused []error
	for i, address := range e.to {
		if e.steps.Sent(e.step(address)) {
			continue
		}
		err := mc.client.Rcpt("<" + address + ">")
		if err == nil {
			accepted = append(accepted, address)
			continue
		}
		err = stepError(stepRecipient, err)
		answer, ok := errors.AsType[*replyError](err)
		if !ok || answer.code == 421 {
			return true, err
		}
		refused = append(refused, fmt.Errorf("recipient %d of %d: %w", i+1, len(e.to), err))
	}
	if len(accepted) == 0 {
		return false, errors.Join(refused...)
	}
	w, err := mc.client.Data()
	if err != nil {
		return true, stepError("DATA", err)
	}
	// A mail that cannot be written completely must not be closed, because
	// closing w would complete it.
	buf := bufio.NewWriterSize(w, 32<<10)
	if err := e.mail.Write(buf); err != nil {
		return true, stepError("sending the mail", err)
	}
	if err := buf.Flush(); err != nil {
		return true, stepError("sending the mail", err)
	}
	if err := w.Close(); err != nil {
		return false, stepError(stepEnd, err)
	}
	for _, address := range accepted {
		e.steps.MarkSent(e.step(address))
	}
	return false, errors.Join(refused...)
}
