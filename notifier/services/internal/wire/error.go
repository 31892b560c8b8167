package wire

import "errors"

// ErrBroken marks errors after which a connection cannot be used. An error
// without it is the server's answer to the message.
var ErrBroken = errors.New("the connection broke")

// Broken returns err, with the same text, as an error that is [ErrBroken].
func Broken(err error) error { return brokenError{err} }

type brokenError struct{ error }

func (e brokenError) Unwrap() []error { return []error{e.error, ErrBroken} }
