// Package errs has small helpers for errors.
package errs

import (
	"context"
	"errors"
	"io/fs"
)

// ContextError returns the cause of the end of ctx, or err if ctx has not ended. It
// is for the error of an operation that fails because its context ends.
func ContextError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// WithoutPath returns err without the path of the file that an operation failed
// for. Paths tell others more about the machine than they need.
func WithoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
