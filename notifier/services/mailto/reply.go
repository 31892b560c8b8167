package mailto

import (
	"errors"
	"fmt"
	"net/textproto"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// stepError adds the step of the SMTP session to an error. A reply of the server
// becomes a [replyError].
func stepError(step string, err error) error {
	reply, ok := errors.AsType[*textproto.Error](err)
	if !ok {
		return fmt.Errorf("talking to the mail server (%s): %w", step, err)
	}
	// The text is not cut here: it may hold a password, and half of one could
	// not be masked.
	text := strings.Join(strings.Fields(reply.Msg), " ")
	answer := &replyError{step: step, code: reply.Code, text: strings.ToValidUTF8(text, "")}
	if answer.denied() {
		return notifier.Denied(answer)
	}
	return answer
}

// The steps at which a server may refuse the sender or a recipient.
const (
	stepSignIn    = "signing in"
	stepRecipient = "RCPT"
)

// noMailbox matches the enhanced status code of an address that does not exist (RFC 3463).
var noMailbox = lazyregexp.New(`^5\.1\.(1|2|3|6|10)\b`)

// denied reports whether the server refuses the account or the address for good. Other
// permanent replies may be about a limit for a day or the reputation of an address.
func (e *replyError) denied() bool {
	return e.code/100 == 5 && (e.step == stepSignIn || e.step == stepRecipient && noMailbox.MatchString(e.text)) || e.code == 530
}

// stepEnd is the step at which a server accepts or refuses the whole mail.
const stepEnd = "end of the mail"

// replyError is a reply with which the server refuses a step.
type replyError struct {
	step string
	code int
	text string
}

// Is reports whether the error is [notifier.ErrRefused]: the server refused the
// mail because of its content or size (552), so that other content may help.
func (e *replyError) Is(err error) bool {
	return err == notifier.ErrRefused && (e.code == 552 || e.code/100 == 5 && e.step == stepEnd)
}

func (e *replyError) Error() string {
	return fmt.Sprintf("the mail server answered %d %s (%s)", e.code, e.text, e.step)
}
