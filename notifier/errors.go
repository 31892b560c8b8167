package notifier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// StatusError is returned when the status code of an answer means that the
// destination did not take the message.
type StatusError struct {
	Code       int
	Body       string        // the beginning of the answer, with secrets masked
	RetryAfter time.Duration // how long the answer asks to wait; 0 if it does not
	Header     http.Header
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("the service answered %d", e.Code)
	status := http.StatusText(e.Code)
	if status != "" {
		text += " " + status
	}
	if why := reason(e.Body, status); why != "" {
		text += ": " + why
	}
	return text
}

// Statuses returns the status errors that err contains. If a message has
// several targets, there can be one for each.
func Statuses(err error) (out []*StatusError) {
	switch e := err.(type) {
	case *StatusError:
		return []*StatusError{e}
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			out = append(out, Statuses(err)...)
		}
	case interface{ Unwrap() error }:
		return Statuses(e.Unwrap())
	}
	return out
}

// ErrRefused is found by [errors.Is] in an error that is returned when the
// destination refuses the message because of its content, not because of its
// sender or recipient. Answers with the status 400, 413, 414, 415 or 422 count
// as refusals by themselves. Services wrap ErrRefused if the destination
// refuses a message in another way.
var ErrRefused = errors.New("the message was refused")

// Refused returns err marked with [ErrRefused]. The text stays the same.
func Refused(err error) error { return refusedError{err} }

type refusedError struct{ error }

func (e refusedError) Unwrap() []error { return []error{e.error, ErrRefused} }

// Denied returns err as the error of a destination that refuses the sender or the
// recipient, such as a wrong password: no later attempt can succeed until somebody
// changes the URL or the destination. Answers with the status 401, 403, 404 or 410
// count as such by themselves. The text stays the same.
func Denied(err error) error { return deniedError{err} }

type deniedError struct{ error }

func (e deniedError) Unwrap() error { return e.error }

// refused reports whether the destination refused the content of a message.
func refused(err error) bool {
	return errors.Is(err, ErrRefused) || slices.ContainsFunc(Statuses(err), func(s *StatusError) bool { return refusal(s.Code) })
}

func refusal(code int) bool {
	switch code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

var (
	// errLongAnswer is permanent, because the destination may have accepted
	// the message.
	errLongAnswer = errors.New("the answer is longer than 1 MiB")

	errUnusableAddress = errors.New("the parameters do not make a usable address")
)

// temporary reports whether a later attempt can succeed, for at least one of
// several targets.
func temporary(err error) bool {
	if e, ok := err.(interface{ Is(error) bool }); ok && e.Is(ErrRefused) {
		return false
	}
	switch e := err.(type) {
	case *StatusError:
		switch e.Code {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
			return false
		}
		return !refusal(e.Code)
	case *egress.BlockedError, *URLError, *LimitError, refusedError, deniedError, unusableError:
		return false
	case interface{ Unwrap() []error }:
		errs := e.Unwrap()
		return !slices.Contains(errs, ErrRefused) && slices.ContainsFunc(errs, temporary)
	case interface{ Unwrap() error }:
		return temporary(e.Unwrap())
	}
	switch err {
	case ErrRefused, errLongAnswer, errUnusableAddress:
		return false
	}
	return true
}

// unclear reports whether the destination may have the message although the delivery
// has failed: it did not answer, or the connection was lost.
func unclear(err error) bool {
	switch e := err.(type) {
	case *StatusError, *egress.BlockedError:
		return false
	case *net.OpError:
		return e.Op != "dial"
	case *timeoutError, *PanicError:
		return true
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), unclear)
	case interface{ Unwrap() error }:
		return unclear(e.Unwrap())
	}
	return err == io.EOF || err == io.ErrUnexpectedEOF || err == context.DeadlineExceeded
}

// mayRetry reports whether another attempt within the same delivery can
// succeed, for at least one of several targets. It accepts more than
// [temporary], because the parameter retry asks for attempts after any status.
func mayRetry(err error) bool {
	switch e := err.(type) {
	case *egress.BlockedError, *LimitError, *PanicError:
		return false
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), mayRetry)
	case interface{ Unwrap() error }:
		return mayRetry(e.Unwrap())
	}
	return err != errLongAnswer
}

// askedToWait returns the longest time that one of the answers asks to wait, or
// 0 if none does.
func askedToWait(err error) (longest time.Duration) {
	for _, s := range Statuses(err) {
		if s.Code == http.StatusTooManyRequests || s.Code == http.StatusServiceUnavailable {
			longest = max(longest, s.RetryAfter)
		}
	}
	return longest
}

// TargetError returns err with the number of the target in front. Targets can be
// secret, so errors do not name them. i is the index of the target and n the
// number of targets; if n is 1, TargetError returns err. If err is nil, it
// returns nil.
func TargetError(i, n int, err error) error {
	if err == nil || n == 1 {
		return err
	}
	return fmt.Errorf("target %d of %d: %w", i+1, n, err)
}

// severalErrors is like the error of [errors.Join], but its text contains only a
// few of the errors, because a client decides how many there are.
type severalErrors []error

const maxErrorsShown = 10

// join returns the errors that are not nil as one, or nil if there are none.
func join(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return severalErrors(errs)
}

func (e severalErrors) Unwrap() []error { return e }

func (e severalErrors) Error() string {
	var b strings.Builder
	for i, err := range e {
		if i == maxErrorsShown {
			fmt.Fprintf(&b, "\nand %d more", len(e)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(err.Error())
	}
	return b.String()
}

// PanicError is returned when a service panics. Its text has no details.
type PanicError struct {
	Stack string // for the log of the operator, never for a client
	Value string // like Stack
}

func (e *PanicError) Error() string { return "the service failed with an internal error" }

// protect calls f and turns a panic into a [*PanicError].
func protect(f func() error) (err error) {
	defer recovered(&err)
	return f()
}

// recovered, if deferred, sets err to a [*PanicError] if the function panics.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: fmt.Sprint(v), Stack: string(debug.Stack())}
	}
}

// reasonFields are the names of the fields in which services say why they refuse a message,
// the most telling first.
var reasonFields = [...]string{
	"error_description", "errorDescription", "description",
	"message", "detail", "error", "errors", "response", "reason",
}

// maxReasonDepth is how deep in an answer its reason is looked for.
const maxReasonDepth = 3

// reason returns the sentence of an answer in JSON that says why a message was not taken, such as
// Unknown Webhook in {"code": 10015, "message": "Unknown Webhook"}. It returns "" if the answer
// says no more than status, which is the text of its status code, and the answer as it is if it
// has no such sentence.
func reason(body, status string) string {
	var answer any
	if strings.HasPrefix(body, "{") && json.Unmarshal([]byte(body), &answer) == nil { // it may be cut
		if text, found := reasonIn(answer, status, maxReasonDepth); found {
			return text
		}
	}
	text, _ := reasonIn(body, status, 0)
	return text
}

// reasonIn returns the first reason in a value of an answer that says more than status, and
// whether there is any reason.
func reasonIn(v any, status string, depth int) (text string, found bool) {
	switch v := v.(type) {
	case string:
		text = strings.TrimPrefix(strings.TrimSuffix(strings.TrimSpace(v), "."), status+": ")
		if strings.EqualFold(text, status) {
			text = ""
		}
		return text, v != ""
	case []any:
		if len(v) == 1 { // several reasons are shown as they are
			return reasonIn(v[0], status, depth)
		}
	case map[string]any:
		for _, name := range reasonFields {
			if depth == 0 || text != "" {
				break
			}
			var ok bool
			text, ok = reasonIn(v[name], status, depth-1)
			found = found || ok
		}
	}
	return text, found
}
