package smtpd

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/smtp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// newAnswer returns an answer with a reply code (RFC 5321), an enhanced status
// code (RFC 3463), and a text formatted as by [fmt.Errorf].
func newAnswer(code, class, subject, detail int, format string, args ...any) *smtp.SMTPError {
	return &smtp.SMTPError{
		Code: code, EnhancedCode: smtp.EnhancedCode{class, subject, detail},
		Message: oneLine(errs.PublicText(fmt.Errorf(format, args...))),
	}
}

var (
	errBusy     = newAnswer(421, 4, 3, 2, "too many connections; try again later")
	errEnded    = newAnswer(421, 4, 4, 2, "the connection ends, because a mail before did not arrive completely; send this one again")
	errAccount  = newAnswer(530, 5, 7, 0, "authentication is required; log in with an account over TLS")
	errPassword = newAnswer(535, 5, 7, 8, "the user name or the password is wrong")
	errChecks   = newAnswer(454, 4, 7, 0, "too many passwords from your address are being checked; try again later")
	errUnnamed  = newAnswer(550, 5, 7, 1,
		"there is no such key, or it has a token and takes mails only from an account that names it in auth")
	errIncomplete = newAnswer(451, 4, 4, 2, "the mail did not arrive completely; send it again")
	errLine       = newAnswer(554, 5, 6, 0, "a line of the mail is longer than %d KiB; encode it in base64 or quoted-printable", maxLine>>10)
	errInternal   = newAnswer(451, 4, 3, 0, "the gateway could not handle the mail; its log has the reason; try again later")
)

// maxAnswer is the maximum length of the text of an answer, in bytes. With its
// codes, an answer may have 512 bytes (RFC 5321, section 4.5.3.1.5).
const maxAnswer = 400

// oneLine returns text as one line of ASCII of at most maxAnswer bytes. Any other character becomes
// "?".
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f:
			return -1
		case r > 0x7f:
			return '?'
		}
		return r
	}, text)
	return markup.TruncateBytes(text, maxAnswer)
}

// answers maps the HTTP status of an [api.Error] to the codes of an answer.
var answers = map[int]struct {
	code int
	smtp.EnhancedCode
}{
	http.StatusBadRequest:            {554, smtp.EnhancedCode{5, 6, 0}},
	http.StatusForbidden:             {550, smtp.EnhancedCode{5, 7, 1}},
	http.StatusNotFound:              {550, smtp.EnhancedCode{5, 1, 1}},
	http.StatusRequestEntityTooLarge: {552, smtp.EnhancedCode{5, 3, 4}},
	http.StatusFailedDependency:      {550, smtp.EnhancedCode{5, 1, 1}},
	http.StatusServiceUnavailable:    {451, smtp.EnhancedCode{4, 3, 2}},
	http.StatusInsufficientStorage:   {452, smtp.EnhancedCode{4, 3, 1}},
	http.StatusLoopDetected:          {554, smtp.EnhancedCode{5, 4, 6}},
}

// answerOf returns the answer for e, or errInternal if answers does not have the status.
func answerOf(e *api.Error) *smtp.SMTPError {
	a, ok := answers[e.Status]
	if !ok {
		return errInternal
	}
	return &smtp.SMTPError{Code: a.code, EnhancedCode: a.EnhancedCode, Message: oneLine(e.Error())}
}

// Outcome is the outcome of a mail for all of its recipients. The zero value means that the mail
// has no destinations.
type Outcome struct {
	total, failed int    // numbers of destinations
	temporary     bool   // another attempt can succeed
	queued        string // ID of a queued message; "" for none
	reason        string // error of the first temporary failure, or else of the first failure
}

// Add adds the results of one recipient. id is the ID of the message in the queue,
// or "" without a queue.
func (o *Outcome) Add(results []notifier.Result, id string) {
	for _, result := range results {
		o.total++
		if result.Status == message.StatusQueued {
			o.queued = id
		}
		if !message.Failed(result) {
			continue
		}
		o.failed++
		if result.Temporary && !o.temporary || o.reason == "" {
			o.reason = failureOf(result)
		}
		o.temporary = o.temporary || result.Temporary
	}
}

// failureOf returns the service with the tags and the public error of a failed result. It leaves
// out the name of the destination, which may have an address that the sender of a mail must not
// see.
func failureOf(r notifier.Result) string {
	text := notifier.NameWithTags(r.Service, r.Tags)
	if shown := message.NewResult(r); shown.Error != nil {
		text += ": " + *shown.Error
	}
	return text
}

// Temporary reports whether another attempt can succeed for a destination without the mail.
func (o *Outcome) Temporary() bool { return o.temporary }

// IsTemporary reports whether the answer for e asks the client to send the mail
// again.
func IsTemporary(e *api.Error) bool { return answerOf(e).Temporary() }

// answer returns the answer to the mail: 250 if every required destination or the
// queue has the message, 451 if another attempt can succeed, and otherwise 554.
func (o *Outcome) answer() *smtp.SMTPError {
	switch {
	case o.failed == 0 && o.queued != "":
		return newAnswer(250, 2, 0, 0, "queued as %s", o.queued)
	case o.failed == 0:
		return newAnswer(250, 2, 0, 0, "delivered")
	case o.temporary:
		return newAnswer(451, 4, 4, 0, "%d of %d destinations do not have the message; send it again later; %s", o.failed, o.total, o.reason)
	}
	return newAnswer(554, 5, 4, 0, "%d of %d destinations do not have the message, and sending it again does not help; %s", o.failed,
		o.total, o.reason)
}
