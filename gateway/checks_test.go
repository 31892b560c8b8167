package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway"
)

// TestChecks checks that a gateway answers its own tokens for a minute, and nothing to
// anybody else.
func TestChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var own, other gateway.Checks
		answerTo := func(c *gateway.Checks, token string) string {
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/notify/status", nil)
			if token != "" {
				r.Header.Set(gateway.CheckHeader, token)
			}
			c.Respond(w, r)
			return w.Header().Get(gateway.CheckHeader)
		}
		token, answer := own.New()
		if token == "" || answer == "" || token == answer || answerTo(&own, token) != answer {
			t.Error("the gateway does not answer its own token")
		}
		for name, got := range map[string]string{
			"another gateway": answerTo(&other, token), "no token": answerTo(&own, ""), "another token": answerTo(&own, answer),
		} {
			if got != "" {
				t.Errorf("%s gets %q", name, got)
			}
		}
		for range 200 {
			own.New()
		}
		if token, _ := own.New(); token != "" {
			t.Error("there is no limit of tokens")
		}
		time.Sleep(time.Minute + time.Second)
		if answerTo(&own, token) != "" {
			t.Error("the token is valid for longer than a minute")
		}
		if token, answer := own.New(); token == "" || answerTo(&own, token) != answer {
			t.Error("old tokens are not forgotten")
		}
	})
}
