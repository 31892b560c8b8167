package message

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/errs"
)

// Error is why the gateway does not do what somebody asks for, in words for whoever asks: they
// correct what they ask for, or ask again later.
type Error struct {
	// Kind says what can be done about it.
	Kind Kind

	// Field is the name of the field that is wrong; "" if it is none, or not one alone.
	Field string

	// Err says in one sentence what is wrong, where, and what to do instead. It holds no secret.
	Err error

	// Fault is the fault of the gateway, for its log; nil if whoever asks can correct it. It
	// may contain paths.
	Fault error

	// RetryAfter is when to ask again; 0 if that does not help.
	RetryAfter time.Duration
}

// Kind is a kind of [Error].
type Kind int

// The kinds of errors.
const (
	Invalid      Kind = iota // what is asked for makes no sense
	Unidentified             // whoever asks has to say who they are
	Forbidden                // they may not ask for it
	NotFound                 // there is no such thing
	Conflict                 // it is not in a state in which it can be done
	TooLarge                 // it is too much at once
	Unsendable               // there is no destination that it can be sent to
	Full                     // they have as much as they may have
	Unavailable              // the gateway cannot do it at the moment
)

// Error implements error. The text is for whoever asks: it has no addresses of connections and no
// paths of files.
func (e *Error) Error() string { return errs.PublicText(e.Err) }

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error of a kind with a text formatted as by [fmt.Errorf].
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// IsUnavailable reports whether err is an Error of the kind Unavailable: what is asked for may
// exist, and succeed later.
func IsUnavailable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == Unavailable
}
