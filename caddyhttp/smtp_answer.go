package caddyhttp

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/emersion/go-smtp"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// mailError returns an answer with a reply code (RFC 5321), an enhanced status
// code (RFC 3463), and a text formatted as by [fmt.Errorf].
func mailError(code, class, subject, detail int, format string, args ...any) *smtp.SMTPError {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{class, subject, detail}, Message: mailText(errs.PublicText(fmt.Errorf(format, args...)))}
}

var (
	errMailBusy       = mailError(421, 4, 3, 2, "too many connections; try again later")
	errMailAccount    = mailError(530, 5, 7, 0, "authentication is required; log in with an account over TLS")
	errMailPassword   = mailError(535, 5, 7, 8, "the user name or the password is wrong")
	errMailForbidden  = mailError(550, 5, 7, 1, "the account may not send to this key")
	errMailIncomplete = mailError(451, 4, 4, 2, "the mail did not arrive completely; send it again")
	errMailLine       = mailError(554, 5, 6, 0, "a line of the mail is longer than %d KiB; encode it in base64 or quoted-printable", maxMailLine>>10)
	errMailInternal   = mailError(451, 4, 3, 0, "the gateway could not handle the mail; its log has the reason; try again later")
)

// maxMailAnswer is the maximum length of the text of an answer, in bytes. With its
// codes, an answer may have 512 bytes (RFC 5321, section 4.5.3.1.5).
const maxMailAnswer = 400

// mailText returns text as one line of ASCII of at most maxMailAnswer bytes. A "?"
// replaces any other character.
func mailText(text string) string {
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
	return markup.TruncateBytes(text, maxMailAnswer)
}

// mailAnswers maps the HTTP status of an [api.Error] to the codes of an answer.
var mailAnswers = map[int]struct {
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

// answerOf returns the answer for e. It is errMailInternal for a status without
// codes in mailAnswers.
func answerOf(e *api.Error) *smtp.SMTPError {
	a, ok := mailAnswers[e.Status]
	if !ok {
		return errMailInternal
	}
	return &smtp.SMTPError{Code: a.code, EnhancedCode: a.EnhancedCode, Message: mailText(e.Error())}
}

// mailOutcome is the outcome of a mail for all of its recipients.
type mailOutcome struct {
	total, failed int    // number of destinations
	temporary     bool   // another attempt can succeed
	queued        string // ID of a queued message; "" for none
	reason        string // error of the first temporary failure, or else of the first failure
}

// add adds the results of one recipient.
func (o *mailOutcome) add(r *mailReport) {
	for _, result := range r.report.Results {
		o.total++
		if result.Status == api.StatusQueued {
			o.queued = r.id
		}
		if !api.Failed(result) {
			continue
		}
		o.failed++
		if result.Temporary && !o.temporary || o.reason == "" {
			o.reason = failureOf(result)
		}
		o.temporary = o.temporary || result.Temporary
	}
}

// failureOf returns the service and the public error of a failed result.
func failureOf(r notifier.Result) string {
	text := r.Service
	if shown := api.NewResult(r); shown.Error != nil {
		text += ": " + *shown.Error
	}
	return text
}

// answer returns the answer to the mail: 250 if every required destination or the
// queue has the message, 451 if another attempt can succeed, and otherwise 554.
func (o *mailOutcome) answer() *smtp.SMTPError {
	switch {
	case o.failed == 0 && o.queued != "":
		return mailError(250, 2, 0, 0, "queued as %s", o.queued)
	case o.failed == 0:
		return mailError(250, 2, 0, 0, "delivered")
	case o.temporary:
		return mailError(451, 4, 4, 0, "%d of %d destinations do not have the message; send it again later; %s", o.failed, o.total, o.reason)
	}
	return mailError(554, 5, 4, 0, "%d of %d destinations do not have the message, and sending it again does not help; %s", o.failed, o.total, o.reason)
}
