package safety

import (
	"net/http"
	"testing"
)

// TestDotSegments checks that segments with dots in the address of a source do not bypass
// the password that a path matcher requires for all addresses of the gateway: the matcher
// compares what remains without them.
func TestDotSegments(t *testing.T) {
	s := serveHTTP(t, "127.0.0.1", func(http.ResponseWriter, *http.Request) { t.Error("a message was sent without a password") })
	g := start(t, "order basic_auth before notify", `
		key secret {
			url json://`+authority(s)+`
		}
	}
	basic_auth /notify* {
		# The hash of "hiccup".
		ops $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG
	`)
	for _, path := range []string{
		"/notify/secret/slack/../../..", "/notify/secret/slack/%2e%2e/%2E%2E/..",
		"/notify/secret/slack/..%2F..%2F..", "/notify/secret/slack/./../../..",
		"/notify/secret/ntfy/../../../x", "/notify/secret/opsgenie/../../../close", "/notify/secret/discord/../../..",
	} {
		if r := g.post(path, message{"text": "x", "content": "x", "message": "x"}); r.Status != http.StatusUnauthorized && r.Body != "" {
			t.Errorf("%s: status %d: %s", path, r.Status, r.Body)
		}
	}
}

// TestEncodedSlash checks that a slash written as %2F does not bypass the
// password that an exact path matcher requires for /notify/secret. (A plain
// slash at the end is a different path for Caddy's matcher too; such a
// configuration loads with a warning.)
func TestEncodedSlash(t *testing.T) {
	s := serveHTTP(t, "127.0.0.1", func(http.ResponseWriter, *http.Request) { t.Error("a message was sent without a password") })
	g := start(t, "order basic_auth before notify", `
		key secret {
			url json://`+authority(s)+`
		}
	}
	basic_auth /notify/secret {
		# The hash of "hiccup".
		ops $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG
	`)
	// Caddy answers requests that no handler answers with an empty 200.
	for path, want := range map[string]int{
		"/notify/secret":        http.StatusUnauthorized,
		"/NOTIFY/secret":        http.StatusUnauthorized,
		"/notify/secret%2f":     http.StatusOK,
		"/notify/secret%2F":     http.StatusOK,
		"/notify%2Fsecret":      http.StatusOK,
		"/notify/%2Fsecret":     http.StatusOK,
		"/notify/secret%2F%2F":  http.StatusOK,
		"/notify/x%2F../secret": http.StatusOK,
		"/notify/secret%252F":   http.StatusNotFound, // an unknown key
		"/notify//secret":       http.StatusUnauthorized,
		"/notify/./secret":      http.StatusUnauthorized,
		"/notify/%73ecret":      http.StatusUnauthorized,
		"/notify/x/../secret":   http.StatusUnauthorized,
	} {
		r := g.post(path, message{"body": "x"})
		if r.Status != want && r.Status != http.StatusUnauthorized {
			t.Errorf("%s: status %d, want %d or 401", path, r.Status, want)
		}
		if r.Status == http.StatusOK && r.Body != "" {
			t.Errorf("%s: the gateway answered %s", path, r.Body)
		}
	}
}
