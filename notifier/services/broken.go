package services

import (
	"context"
	"errors"
)

// errBroken marks the errors after which a connection is of no use. An error
// without it is what the destination says of the message.
var errBroken = errors.New("the connection broke")

// broken marks err with [errBroken], without a word more in its text.
func broken(err error) error { return brokenError{err} }

type brokenError struct{ error }

func (e brokenError) Unwrap() []error { return []error{e.error, errBroken} }

// because prefers the reason for which the time ended to what came of it.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
