package services

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// sendTo sends one mail: to the target, and to those who get a copy of each.
func (m *mailto) sendTo(ctx context.Context, c *notifier.Client, msg *notifier.Message, target emailAddress, content mimePart) error {
	// A second try has the same number, so that a mailbox which has the mail
	// already can tell.
	sent, err := notifier.Kept(c, "mail "+target.address, func() (*mailtoProgress, error) { return newMailtoProgress(m.sender), nil })
	if err != nil {
		return err
	}
	l := letter{to: []emailAddress{target}}
	l.bcc = mailWithout(mailtoAddresses(m.bcc), l.to)
	l.cc = mailWithout(mailWithout(mailtoAddresses(m.cc), mailtoAddresses(m.bcc)), l.to)
	if content, err = m.protect(ctx, c, l, content); err != nil {
		return err
	}
	return m.deliver(ctx, c, &mailtoEnvelope{
		from: m.sender.address, to: mailAddresses(append(append(l.to, l.cc...), l.bcc...)),
		progress: sent, mail: m.mail(msg, l, sent.id, content),
	})
}

// mailtoEnvelope is a mail and who it goes to (RFC 5321, section 2.3.1).
type mailtoEnvelope struct {
	from     string
	to       []string
	mail     mimePart
	progress *mailtoProgress
}

// deliver hands the mail to the server.
func (m *mailto) deliver(ctx context.Context, c *notifier.Client, e *mailtoEnvelope) error {
	open := func(ctx context.Context) (*mailtoConn, error) { return m.dial(ctx, c) }
	var unknown error // the server may have the mail, so that it must not get it again
	return m.pool.with(ctx, open, func(ctx context.Context, mc *mailtoConn) error {
		if unknown != nil {
			return unknown
		}
		mc.wire.renew()
		defer during(ctx, mc.wire)()
		again, err := mc.transact(e)
		if err == nil || mc.reset(err) {
			return err
		}
		if !again {
			unknown = err
		}
		// At once, since a goodbye behind half a mail would end it properly.
		_ = mc.wire.Close()
		return broken(err)
	})
}

// reset makes the connection ready for the next mail after a failed one.
func (mc *mailtoConn) reset(err error) bool {
	var refused *mailtoRefusal
	return errors.Is(err, errNotASCII) || errors.As(err, &refused) && refused.code != 421 && mc.client.Reset() == nil
}

var errNotASCII = errors.New("an address has letters beyond ASCII before its @, which the mail server cannot take")

// transact sends the mail to those recipients that do not have it. If the
// server takes some of them, they get it and the error is about the others.
// again says, where the connection broke, that the server has no mail yet.
func (mc *mailtoConn) transact(e *mailtoEnvelope) (again bool, err error) {
	international := !isASCII(e.from + strings.Join(e.to, ""))
	if ok, _ := mc.client.Extension("SMTPUTF8"); !ok && international {
		return false, errNotASCII
	}
	mc.client.SkipSMTPUTF8(!international)
	if err := mc.client.Mail("<" + e.from + ">"); err != nil {
		return true, mailtoError("MAIL", err)
	}
	var taken []string
	var refused []error
	for i, address := range e.to {
		if e.progress.got[address] {
			continue
		}
		err := mc.client.Rcpt("<" + address + ">")
		if err == nil {
			taken = append(taken, address)
			continue
		}
		err = mailtoError("RCPT", err)
		var answer *mailtoRefusal
		if !errors.As(err, &answer) || answer.code == 421 {
			return true, err
		}
		refused = append(refused, fmt.Errorf("recipient %d of %d: %w", i+1, len(e.to), err))
	}
	if len(taken) == 0 {
		return false, errors.Join(refused...)
	}
	w, err := mc.client.Data()
	if err != nil {
		return true, mailtoError("DATA", err)
	}
	// Where the mail cannot be written to its end, the end is not marked:
	// half a mail would be one.
	buf := bufio.NewWriterSize(w, 32<<10)
	if err := e.mail.write(buf); err != nil {
		return true, mailtoError("sending the mail", err)
	}
	if err := buf.Flush(); err != nil {
		return true, mailtoError("sending the mail", err)
	}
	if err := w.Close(); err != nil {
		return false, mailtoError(mailtoEnd, err)
	}
	for _, address := range taken {
		e.progress.got[address] = true
	}
	return false, errors.Join(refused...)
}
