package notifier_test

import (
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

// TestHost checks the server that deliveries are counted for.
func TestHost(t *testing.T) {
	for url, want := range map[string]string{
		"json://Push.Example.org:8443/path":            "push.example.org:8443",
		"json://push.example.org":                      "push.example.org",
		"json://[::1]:8080":                            "[::1]:8080",
		"mailto://user:pw@example.org?smtp=mx.Example": "mx.example",
		"mailto://user:pw@example.org":                 "example.org",
		"discord://123456789012345678/token-token":     "Discord",
	} {
		d, err := notifier.Parse(url, nil)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if got := d.Host(); got != want {
			t.Errorf("%s: host %q, want %q", url, got, want)
		}
	}
}
