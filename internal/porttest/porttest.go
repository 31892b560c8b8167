// Package porttest chooses addresses for servers that tests start later.
//
// Caddy opens its sockets with SO_REUSEPORT, so that two of them can listen at one address
// without an error, and each gets some of the requests of both. So an address belongs to one
// server of one process: the process reserves it until it ends.
package porttest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"sync"
)

const linux = runtime.GOOS == "linux"

// Address returns an address of 127.0.0.0/8 with a port that nothing else uses.
func Address() string { return net.JoinHostPort(Host(), Free()) }

// Host returns an address of 127.0.0.0/8 that no other test uses. Linux answers at each
// of them; elsewhere, it is 127.0.0.1.
func Host() string {
	if !linux {
		return "127.0.0.1"
	}
	for {
		// Tests and configurations name lower ones.
		host := fmt.Sprintf("127.%d.%d.%d", 64+rand.N(128), rand.N(256), 1+rand.N(254)) //nolint:gosec // no secret
		if reserve(host) {
			return host
		}
	}
}

// Free returns a TCP port of 127.0.0.1 without a listener, each only once. It is
// below the ephemeral ports of most systems, so that no connection gets it
// meanwhile.
func Free() string {
	const first, last = 12000, 32000
	for range 10 * (last - first) {
		port := strconv.Itoa(first + rand.N(last-first)) //nolint:gosec // no secret
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = l.Close()
			if reserve(port) {
				return port
			}
		}
	}
	panic("no port is free")
}

// reserve reports whether nobody else has reserved a name. A socket in Linux's abstract
// namespace holds the reservation, and ends with the process. Elsewhere, nothing is
// reserved.
func reserve(name string) bool {
	if !linux {
		return true
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@caddy-notify-test-" + name, Net: "unix"})
	if err != nil {
		return false
	}
	open.Lock()
	defer open.Unlock()
	open.sockets = append(open.sockets, l)
	return true
}

// open has the sockets of reservations. The garbage collector closes a socket that nobody
// refers to.
var open struct {
	sync.Mutex
	sockets []*net.UnixListener
}
