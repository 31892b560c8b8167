package api

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Error is a request that the gateway does not carry out, for a reason that
// the client can act on.
type Error struct {
	// Status is the HTTP status of the response.
	Status int

	// Err says in one sentence what is wrong, where, and what to send instead.
	// It holds no secret.
	Err error

	// RetryAfter is when the client should try again; 0 if that does not help.
	RetryAfter time.Duration

	// Results are the URLs of the request that could not be used, if that is
	// the reason.
	Results []notifier.Result
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Response returns the response that tells the client about e.
func (e *Error) Response() *Response {
	return &Response{Status: e.Status, Error: e.Error(), RetryAfter: e.RetryAfter, Results: e.Results}
}

// Errorf returns an Error with a status and a text formatted as by
// [fmt.Errorf].
func Errorf(status int, format string, args ...any) *Error {
	return &Error{Status: status, Err: fmt.Errorf(format, args...)}
}

func badRequest(format string, args ...any) *Error {
	return Errorf(http.StatusBadRequest, format, args...)
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
