package wire

import "errors"

// ErrBroken marks the errors after which a connection is of no use. An error
// without it is what the destination says of the message.
var ErrBroken = errors.New("the connection broke")

// Broken marks err with [ErrBroken], without a word more in its text.
func Broken(err error) error { return brokenError{err} }

type brokenError struct{ error }

func (e brokenError) Unwrap() []error { return []error{e.error, ErrBroken} }
