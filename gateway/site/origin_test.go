package site

import (
	"strings"
	"testing"
)

// TestParseOrigin checks that origins are compared as browsers write them.
func TestParseOrigin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://example.com": "https://example.com", "HTTPS://Example.com": "https://example.com",
		"https://example.com:443": "https://example.com",
		"http://example.com:443":  "http://example.com:443", "http://example.com:080": "http://example.com",
		"https://[2001:DB8::1]:8443": "https://[2001:db8::1]:8443",
		"moz-extension://0A-f":       "moz-extension://0a-f", "https://example.com:": "https://example.com",
	} {
		if got, err := parseOrigin(text); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
}

func TestTrustedOriginsAreChecked(t *testing.T) {
	t.Parallel()
	for _, origin := range []string{
		"example.com", "https://", "https://:443", "https://example.com/path", "nonsense", "https://example.com/", "https://example.com?",
		"https://example.com#",
		"https://user:secretsecret@example.com", "https://*.example.com", "https://example.com:99999", "//example.com", "https://bücher.example",
		"* https://*.example.com",
	} {
		if _, err := New(Options{TrustedOrigins: strings.Fields(origin)}); err == nil || !strings.Contains(err.Error(), "https://example.com") ||
			strings.Contains(err.Error(), "secretsecret") {
			t.Errorf("%s: %v", origin, err)
		}
	}
}
