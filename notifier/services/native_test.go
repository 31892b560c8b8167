package services

import (
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestNatives reads the templates of all native addresses as URLs, which compiles
// their patterns. An invalid pattern panics.
func TestNatives(t *testing.T) {
	for _, s := range notifier.Services() {
		for _, text := range s.Natives {
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s: %s: %v", s.Name, text, p)
					}
				}()
				_, _ = notifier.Parse(text, nil)
			}()
		}
	}
}
