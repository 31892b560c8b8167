// Package porttest chooses ports for servers that tests start later.
package porttest

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

// lastPort is the port that Free returned last. Each process starts at a different
// one, so that tests of several packages can run at once.
var lastPort = func() *atomic.Uint32 {
	n := new(atomic.Uint32)
	n.Store(uint32(os.Getpid()) * 100)
	return n
}()

// Free returns a TCP port of 127.0.0.1 without a listener, each only once. It is
// below the ephemeral ports of most systems, so that no connection gets it
// meanwhile.
func Free() string {
	const first, last = 12000, 32000
	for range last - first {
		port := strconv.Itoa(first + int(lastPort.Add(1)%(last-first)))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = l.Close()
			return port
		}
	}
	panic("no port is free")
}
