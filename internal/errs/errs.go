// Package errs returns the cause of a context as an error, and texts of errors
// without details of this machine.
package errs

import (
	"context"
	"errors"
	"io/fs"
)

// ContextError returns [context.Cause] of ctx if ctx has ended, or else err.
// Use it for the error of an operation that fails when its context ends.
func ContextError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// WithoutPath returns err without the path of the file that an operation failed
// on, because clients must not see paths of this machine.
func WithoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
