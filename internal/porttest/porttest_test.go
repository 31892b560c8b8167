package porttest

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestOnce checks that each port and host is returned once, also to another process.
func TestOnce(t *testing.T) {
	if os.Getenv("PORTTEST_RESERVED") != "" {
		for name := range strings.SplitSeq(os.Getenv("PORTTEST_RESERVED"), ",") {
			if reserve(name) {
				t.Errorf("%s is reserved by another process, and can be reserved again", name)
			}
		}
		return
	}
	seen := map[string]bool{}
	var names []string
	for range 200 {
		for _, name := range []string{Host(), Free()} {
			if seen[name] && name != "127.0.0.1" {
				t.Fatalf("%s twice", name)
			}
			seen[name] = true
			names = append(names, name)
		}
	}
	if !linux {
		t.Skip("only Linux has names that processes can reserve")
	}
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOnce$")
	other.Env = append(os.Environ(), "PORTTEST_RESERVED="+strings.Join(names, ","))
	if out, err := other.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestAddress checks that a server can listen at an address.
func TestAddress(t *testing.T) {
	l, err := net.Listen("tcp", Address())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
