package message

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/errs"
)

// Error says why the gateway does not do what a client or user asks for. It is for whoever asks:
// they correct the request, or repeat it later.
type Error struct {
	// Kind says what the sender can do about it.
	Kind Kind

	// Field is the field of the request that is wrong; "" for none.
	Field string

	// Err says in one sentence what is wrong, where, and what to do instead. It holds no secret.
	Err error

	// Fault is the fault of the gateway, for its log; nil if the request can be corrected. It may
	// contain paths.
	Fault error

	// RetryAfter is when to repeat the request; 0 if that does not help.
	RetryAfter time.Duration
}

// Kind is a kind of [Error].
type Kind int

// The kinds of errors.
const (
	Invalid      Kind = iota // the request makes no sense
	Unidentified             // the sender has to authenticate
	Forbidden                // the sender may not do it
	NotFound                 // it does not exist
	Conflict                 // its state does not allow it
	TooLarge                 // the request is too large
	Unsendable               // no destination can be sent to
	Full                     // the sender has reached a limit
	Unavailable              // the gateway cannot do it at the moment
)

// Error implements error. The text is for whoever asks and contains no addresses of connections and
// no paths of files.
func (e *Error) Error() string { return errs.PublicText(e.Err) }

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error of a kind with a text formatted as by [fmt.Errorf].
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// IsUnavailable reports whether err is an Error of the kind Unavailable: the same request may
// succeed later.
func IsUnavailable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == Unavailable
}
