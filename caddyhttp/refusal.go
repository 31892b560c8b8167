package caddyhttp

import (
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// refusal is an error that is the client's to mend: a status, and a sentence
// that says how.
type refusal struct {
	status  int
	err     error
	results []notifier.Result
}

func (e *refusal) Error() string { return e.err.Error() }
func (e *refusal) Unwrap() error { return e.err }

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, err: fmt.Errorf(format, args...)}
}

func badRequest(format string, args ...any) *refusal {
	return refuse(http.StatusBadRequest, format, args...)
}

func asRefusal(err error) (e *refusal, ok bool) {
	ok = errors.As(err, &e)
	return e, ok
}

func (e *refusal) answer() *answer {
	return &answer{status: e.status, err: e.Error(), results: e.results}
}

// readError is the refusal for a request that could not be read to its end.
// It is too large, for this handler or for a request_body before it, took
// longer than the server's read_body lets it, or else the client has not sent
// it as it should.
func readError(err error) *refusal {
	var limit *http.MaxBytesError
	var upstream caddyhttp.HandlerError
	switch {
	case errors.As(err, &limit):
		return refuse(http.StatusRequestEntityTooLarge, "the request is larger than %s", size(limit.Limit))
	case errors.As(err, &upstream) && upstream.StatusCode == http.StatusRequestEntityTooLarge:
		return refuse(http.StatusRequestEntityTooLarge, "the request is too large")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the request took too long to arrive")
	}
	return badRequest("the request could not be read to its end")
}
