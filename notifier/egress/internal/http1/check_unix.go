//go:build unix

package http1

import (
	"errors"
	"syscall"
)

// canCheck reports whether the system can tell if an idle connection is still
// open.
const canCheck = true

// readNothing sets c.quiet to whether a read from the connection would have to
// wait. It does not wait.
func (c *conn) readNothing(fd uintptr) bool {
	var b [1]byte
	_, err := syscall.Read(int(fd), b[:]) //nolint:gosec // a file descriptor is an int
	c.quiet = errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EWOULDBLOCK)
	return true
}
