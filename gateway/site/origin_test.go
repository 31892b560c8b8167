package site

import "testing"

// TestParseOrigin checks that origins are compared as browsers write them.
func TestParseOrigin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://example.com": "https://example.com", "HTTPS://Example.com": "https://example.com", "https://example.com:443": "https://example.com",
		"http://example.com:443": "http://example.com:443", "http://example.com:080": "http://example.com", "https://[2001:DB8::1]:8443": "https://[2001:db8::1]:8443",
		"moz-extension://0A-f": "moz-extension://0a-f", "https://example.com:": "https://example.com",
	} {
		if got, err := parseOrigin(text); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
}
