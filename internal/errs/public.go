package errs

import (
	"crypto/x509"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
)

// PublicText returns the text of err for a client. It leaves out what errors of
// the standard library tell about this machine and its network: the addresses
// of connections, the names and addresses of resolvers, URLs of requests and
// proxies, and the paths of files. This includes errors that err wraps, if the
// text of err contains theirs unchanged. All other text stays, for example the
// answer of a server.
func PublicText(err error) string {
	if text, ok := publicText(err); ok {
		return text
	}
	text := err.Error()
	for _, e := range unwrap(err) {
		if private := e.Error(); private != "" {
			text = strings.ReplaceAll(text, private, PublicText(e))
		}
	}
	return text
}

// publicText returns the text for clients of an error of the standard library
// that has private details. It reports whether err is such an error.
func publicText(err error) (string, bool) {
	switch e := err.(type) {
	case *net.OpError:
		switch e.Op {
		case "dial":
			return "connecting failed: " + inner(e.Err), true
		case "read":
			return "reading failed: " + inner(e.Err), true
		case "write":
			return "writing failed: " + inner(e.Err), true
		case "proxyconnect":
			return "the proxy: " + inner(e.Err), true
		}
		return e.Op + ": " + inner(e.Err), true // for example an alert of TLS
	case *net.DNSError:
		switch {
		case e.IsNotFound:
			return "the host name has no address", true
		case e.IsTimeout:
			return "looking up the host name took too long", true
		}
		return "looking up the host name failed", true
	case *net.AddrError:
		return e.Err, true
	case *os.SyscallError:
		return inner(e.Err), true
	case *fs.PathError:
		return inner(e.Err), true
	case *os.LinkError:
		return inner(e.Err), true
	case *url.Error:
		return inner(e.Err), true
	case x509.SystemRootsError:
		return "the gateway has no root certificates", true
	}
	return "", false
}

// inner is PublicText for a wrapped error, which may be nil.
func inner(err error) string {
	if err == nil {
		return "unknown error"
	}
	return PublicText(err)
}

// unwrap returns the errors that err wraps directly.
func unwrap(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	case interface{ Unwrap() error }:
		if e := e.Unwrap(); e != nil {
			return []error{e}
		}
	}
	return nil
}

// Private returns the text, for the operator, of the first error in err that
// [PublicText] changes, or "" if there is none.
func Private(err error) string {
	if text, ok := publicText(err); ok && text != err.Error() {
		return err.Error()
	}
	for _, e := range unwrap(err) {
		if text := Private(e); text != "" {
			return text
		}
	}
	return ""
}

// Public returns an error of a connection with the text of [PublicText]. It
// wraps err. Errors without details of this machine, such as [io.EOF], are
// returned unchanged. It is for errors that a library may turn into text.
func Public(err error) error {
	if e, ok := err.(*net.OpError); ok {
		return &publicError{e}
	}
	return err
}

// publicError implements [net.Error], which callers of connections rely on.
type publicError struct{ err *net.OpError }

func (e *publicError) Error() string   { return PublicText(e.err) }
func (e *publicError) Unwrap() error   { return e.err }
func (e *publicError) Timeout() bool   { return e.err.Timeout() }
func (e *publicError) Temporary() bool { return e.err.Temporary() }

var _ net.Error = (*publicError)(nil)
