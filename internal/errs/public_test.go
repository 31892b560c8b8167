package errs_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/errs"
)

func opError(op, network string, err error) error {
	return &net.OpError{
		Op: op, Net: network, Err: err,
		Source: &net.TCPAddr{IP: net.ParseIP("10.0.0.5"), Port: 44734},
		Addr:   &net.TCPAddr{IP: net.ParseIP("fd00::9"), Port: 443, Zone: "eth0"},
	}
}

func TestPublicText(t *testing.T) {
	t.Parallel()
	reset := opError("read", "tcp", os.NewSyscallError("read", syscall.ECONNRESET))
	noHost := &net.DNSError{Err: "no such host", Name: "db.internal", Server: "10.255.255.53:53", IsNotFound: true}
	path := &fs.PathError{Op: "open", Path: "/tmp/notify-1", Err: syscall.EACCES}
	tests := []struct {
		err             error
		public, private string
	}{
		{
			opError("dial", "tcp", os.NewSyscallError("connect", syscall.ECONNREFUSED)),
			"connecting failed: connection refused",
			"dial tcp 10.0.0.5:44734->[fd00::9%eth0]:443: connect: connection refused",
		},
		{reset, "reading failed: connection reset by peer", "read tcp 10.0.0.5:44734->[fd00::9%eth0]:443: read: connection reset by peer"},
		{
			opError("write", "udp", os.NewSyscallError("write", syscall.EPIPE)),
			"writing failed: broken pipe", "write udp 10.0.0.5:44734->[fd00::9%eth0]:443: write: broken pipe",
		},
		{
			opError("read", "tcp", os.ErrDeadlineExceeded), "reading failed: i/o timeout",
			"read tcp 10.0.0.5:44734->[fd00::9%eth0]:443: i/o timeout",
		},
		{
			&net.OpError{
				Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: "/run/x.sock", Net: "unix"},
				Err: os.NewSyscallError("connect", syscall.ENOENT),
			},
			"connecting failed: no such file or directory",
			"dial unix /run/x.sock: connect: no such file or directory",
		},
		{
			&net.OpError{Op: "dial", Net: "tcp", Err: noHost}, "connecting failed: the host name has no address",
			"dial tcp: lookup db.internal on 10.255.255.53:53: no such host",
		},
		{
			&net.DNSError{Err: "i/o timeout", Name: "x", Server: "10.0.0.53:53", IsTimeout: true},
			"looking up the host name took too long", "lookup x on 10.0.0.53:53: i/o timeout",
		},
		{
			&net.DNSError{Err: "read udp 10.0.0.5:3->10.0.0.53:53: connection refused", Name: "x", Server: "10.0.0.53:53"},
			"looking up the host name failed",
			"lookup x on 10.0.0.53:53: read udp 10.0.0.5:3->10.0.0.53:53: connection refused",
		},
		{
			&net.OpError{Op: "proxyconnect", Net: "tcp", Err: opError("dial", "tcp", syscall.ECONNREFUSED)},
			"the proxy: connecting failed: connection refused",
			"proxyconnect tcp: dial tcp 10.0.0.5:44734->[fd00::9%eth0]:443: connection refused",
		},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")}, "remote error: tls: handshake failure", ""},
		{
			&net.AddrError{Err: "missing port in address", Addr: "10.0.0.5"},
			"missing port in address", "address 10.0.0.5: missing port in address",
		},
		{path, "permission denied", "open /tmp/notify-1: permission denied"},
		{
			&os.LinkError{Op: "rename", Old: "/a", New: "/b", Err: syscall.EXDEV},
			"invalid cross-device link", "rename /a /b: invalid cross-device link",
		},
		{&url.Error{Op: "Get", URL: "http://user:pw@proxy.internal:3128", Err: io.EOF}, "EOF", `Get "http://user:pw@proxy.internal:3128": EOF`},
		{
			x509.SystemRootsError{Err: path},
			"the gateway has no root certificates",
			"x509: failed to load system roots and no roots provided; open /tmp/notify-1: permission denied",
		},
		{
			fmt.Errorf("getting a token: %w", fmt.Errorf("reading the answer: %w", reset)),
			"getting a token: reading the answer: reading failed: connection reset by peer", reset.Error(),
		},
		{
			errors.Join(errors.New("first"), fmt.Errorf("second: %w (and again %w)", path, reset)),
			"first\nsecond: permission denied (and again reading failed: connection reset by peer)", path.Error(),
		},
		{
			errors.New("the service answered 400: your address 10.0.0.5 is not allowed"),
			"the service answered 400: your address 10.0.0.5 is not allowed", "",
		},
		{errs.Public(reset), "reading failed: connection reset by peer", reset.Error()},
		{fmt.Errorf("%w", context.DeadlineExceeded), "context deadline exceeded", ""},
	}
	for _, tt := range tests {
		if got := errs.PublicText(tt.err); got != tt.public {
			t.Errorf("PublicText(%q) = %q, want %q", tt.err, got, tt.public)
		}
		if got := errs.Private(tt.err); got != tt.private {
			t.Errorf("Private(%q) = %q, want %q", tt.err, got, tt.private)
		}
	}
}

// TestPublic checks that callers of a connection recognize its errors.
func TestPublic(t *testing.T) {
	t.Parallel()
	err := errs.Public(opError("read", "tcp", os.ErrDeadlineExceeded))
	if text := fmt.Sprintf("flattened: %v", err); text != "flattened: reading failed: i/o timeout" {
		t.Error(text)
	}
	if e, ok := err.(net.Error); !ok || !e.Timeout() || !os.IsTimeout(err) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v is not a timeout", err)
	}
	if !errors.Is(errs.Public(opError("close", "tcp", net.ErrClosed)), net.ErrClosed) {
		t.Error("net.ErrClosed is hidden")
	}
	for _, err := range []error{nil, io.EOF} {
		if got := errs.Public(err); got != err { //nolint:errorlint // callers compare io.EOF
			t.Errorf("Public(%v) = %v", err, got)
		}
	}
}
