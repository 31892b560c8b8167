// Package errs returns the cause of a context as an error, errors with the name of a setting,
// and texts of errors without details of this machine.
package errs

import (
	"context"
	"errors"
	"fmt"
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

// Prefix returns err with the name of the setting that it is about.
func Prefix(name string, err error) error { return fmt.Errorf("%s: %w", name, err) }

// WithoutPath returns err without the path of the file that an operation failed
// on, because clients must not see paths of this machine.
func WithoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
