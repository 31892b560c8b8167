package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/charset"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/spool"
)

// Error says why the gateway does not carry out a request, for a client that can correct the
// request or send it again later.
type Error struct {
	// Status is the HTTP status of the response.
	Status int

	// Field is the name of the wrong field of the request; "" if no single field is wrong.
	Field string

	// Err says in one sentence what is wrong, where, and what to send instead.
	// It holds no secret.
	Err error

	// Fault is the fault of the gateway, for its log; nil if the client can
	// correct the request. It may contain paths.
	Fault error

	// RetryAfter is when the client should try again; 0 if that does not help.
	RetryAfter time.Duration

	// Results are the URLs of the request that could not be used, if they are the reason.
	Results []notifier.Result
}

// Error implements error. The text is for clients: it has no addresses of
// connections and no paths of files.
func (e *Error) Error() string { return errs.PublicText(e.Err) }

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Response returns the response for the client.
func (e *Error) Response() *Response {
	return &Response{Status: e.Status, Error: e.Error(), Field: e.Field, RetryAfter: e.RetryAfter, Results: e.Results}
}

// statuses are the statuses of the kinds of errors.
var statuses = [...]int{
	message.Invalid:      http.StatusBadRequest,
	message.Unidentified: http.StatusUnauthorized,
	message.Forbidden:    http.StatusForbidden,
	message.NotFound:     http.StatusNotFound,
	message.Conflict:     http.StatusConflict,
	message.TooLarge:     http.StatusRequestEntityTooLarge,
	message.Unsendable:   http.StatusFailedDependency,
	message.Full:         http.StatusTooManyRequests,
	message.Unavailable:  http.StatusServiceUnavailable,
}

// ErrorOf returns the Error in err, or the Error that stands for the [*message.Error] in it. ok is
// false if err has neither.
func ErrorOf(err error) (e *Error, ok bool) {
	if e, ok = errors.AsType[*Error](err); ok {
		return e, true
	}
	m, ok := errors.AsType[*message.Error](err)
	if !ok {
		return nil, false
	}
	return &Error{Status: statuses[m.Kind], Field: m.Field, Err: m, Fault: m.Fault, RetryAfter: m.RetryAfter}, true
}

// Outcome returns the outcome of a message that was answered with an error status and not sent.
func Outcome(status int) string {
	switch {
	case status == http.StatusServiceUnavailable:
		return site.OutcomeOverloaded
	case status >= 500 && status != http.StatusLoopDetected:
		return site.OutcomeError
	}
	return site.OutcomeRefused
}

// Errorf returns an Error with a status and a text formatted as by
// [fmt.Errorf].
func Errorf(status int, format string, args ...any) *Error {
	return &Error{Status: status, Err: fmt.Errorf(format, args...)}
}

func badRequest(format string, args ...any) *Error {
	return Errorf(http.StatusBadRequest, format, args...)
}

// badField returns the error for a field of the request, whose name may have an index, such
// as attach[1].
func badField(name, format string, args ...any) *Error {
	e := badRequest(format, args...)
	e.Field = name
	if i := strings.IndexAny(name, "[."); i > 0 {
		e.Field = name[:i]
	}
	return e
}

// Outcome returns the outcome of a message that was answered with an error status and not sent.
func storageError(what string, err *spool.StorageError) error {
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	}
	fault := fmt.Errorf("storing the attachment %s: %w", what, err.Err)
	switch {
	case is(syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG):
		e := Errorf(http.StatusInsufficientStorage,
			"the gateway has no disk space left for the attachment %s; send the message without it, or try again later", what)
		e.Fault = fault
		return e
	case is(syscall.EMFILE, syscall.ENFILE):
		e := Errorf(http.StatusServiceUnavailable, "the gateway has too many files open to store the attachment %s; try again in a second", what)
		e.Fault, e.RetryAfter = fault, time.Second
		return e
	}
	return fault
}

// errNoMemory returns the error for a text that does not fit into the memory left by other
// requests.
func errNoMemory(max int64) *Error {
	e := Errorf(http.StatusServiceUnavailable,
		"the gateway has no memory left for a text of this length (client_limits memory %s for all requests); try again in a second",
		formatSize(max))
	e.RetryAfter = time.Second
	return e
}

// LimitBody bounds the body of r. If Content-Length is above the limit, it returns a 413 at once.
func LimitBody(w http.ResponseWriter, r *http.Request, limit int64) error {
	if r.ContentLength > limit {
		return BodyError(&http.MaxBytesError{Limit: limit})
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	return nil
}

// DecodeBody reads up to limit bytes of a JSON or urlencoded body and replaces the body of r by the
// same text in UTF-8. Multipart forms stay as they are.
func DecodeBody(w http.ResponseWriter, r *http.Request, limit int64) error {
	if err := LimitBody(w, r, limit); err != nil {
		return err
	}
	contentType := r.Header.Get("Content-Type")
	media, _, _ := mime.ParseMediaType(contentType)
	if media == "multipart/form-data" {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return BodyError(err)
	}
	if declared := charset.OfType(contentType); media == "application/x-www-form-urlencoded" {
		pairs, _, _ := charset.ReadForm(body, declared, len(body)+1)
		body = []byte(charset.Values(pairs).Encode())
	} else {
		body, _ = charset.Decode(body, declared)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// BodyError returns the Error for a request body whose reading ended with err:
// 413 if err is an [*http.MaxBytesError], 408 if a deadline of the server
// passed, and otherwise 400.
func BodyError(err error) *Error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return Errorf(http.StatusRequestEntityTooLarge, "the request is larger than %s", formatSize(tooLarge.Limit))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return Errorf(http.StatusRequestTimeout, "the request took too long to arrive; send it again")
	}
	return badRequest("the request could not be read to its end; send it again")
}
