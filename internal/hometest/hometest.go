// Package hometest keeps tests that run Caddy away from the home folder of the
// user who runs them, and from name servers.
package hometest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// Main runs the tests of a package with a temporary home folder, also for the
// processes that they start, and returns the exit code. It asks no name servers,
// which may be slow to answer: only names of the hosts file have an address. It
// is for TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(hometest.Main(m)) }
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "notify-home-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := move(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: noNameServer}
	code := m.Run()
	// A test may have set a variable without t.Setenv.
	if err := check(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// move makes dir the home folder of this process.
func move(dir string) error {
	for _, name := range []string{
		"HOME", "USERPROFILE", "AppData", "LocalAppData", "home",
		"XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
	} {
		if err := os.Setenv(name, dir); err != nil {
			return err
		}
	}
	// Caddy has computed these paths when the program started.
	caddy.DefaultStorage.Path = caddy.AppDataDir()
	caddy.ConfigAutosavePath = filepath.Join(caddy.AppConfigDir(), "autosave.json")
	return check(dir)
}

// check returns an error if Caddy would use a folder outside dir.
func check(dir string) error {
	for _, path := range []string{
		caddy.HomeDir(), caddy.AppDataDir(), caddy.AppConfigDir(),
		caddy.DefaultStorage.Path, caddy.ConfigAutosavePath,
	} {
		if path != dir && !strings.HasPrefix(path, dir+string(filepath.Separator)) {
			return fmt.Errorf("the tests would use %s, which is outside their folder %s", path, dir)
		}
	}
	return nil
}

// noNameServer is the Dial of a resolver without name servers.
func noNameServer(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("tests ask no name servers")
}
