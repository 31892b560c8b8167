package notifier

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// An answer that is cut shows no part of a secret.
func TestExcerptHidesBeforeItCuts(t *testing.T) {
	const secret = "0123456789secret9876543210"
	masker := redact.NewMasker([]string{secret})
	c := &Client{redact: func(s string) string { return masker.Mask(s) }}
	for n := range 330 {
		if got := c.excerpt([]byte(strings.Repeat("x ", n/2) + secret)); strings.Contains(got, secret[:5]) {
			t.Fatalf("behind %d characters: %q", n, got)
		}
	}
}
