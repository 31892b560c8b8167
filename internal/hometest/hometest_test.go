package hometest

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// TestCheck checks that each folder of the user is found.
func TestCheck(t *testing.T) {
	dir := os.Getenv("HOME")
	if err := check(dir); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, t.TempDir())
			if check(dir) == nil {
				t.Error("another folder is accepted")
			}
		})
	}
	for _, path := range []*string{&caddy.DefaultStorage.Path, &caddy.ConfigAutosavePath} {
		old := *path
		*path = dir + "-other/caddy"
		if check(dir) == nil {
			t.Error("another folder is accepted")
		}
		*path = old
	}
}

// TestNames checks that only names of the hosts file have an address.
func TestNames(t *testing.T) {
	if addresses, err := net.DefaultResolver.LookupHost(t.Context(), "localhost"); err != nil || len(addresses) == 0 {
		t.Errorf("localhost: %v, %v", addresses, err)
	}
	if addresses, err := net.DefaultResolver.LookupHost(t.Context(), "host.invalid"); err == nil ||
		!strings.Contains(err.Error(), "no name servers") {
		t.Errorf("host.invalid: %v, %v", addresses, err)
	}
}
