package caddyhttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestQueueCancelNeedsToken checks that the ID of a message is not enough to cancel it if
// its key has a token. Each device of the key knows the IDs of the messages that it gets.
func TestQueueCancelNeedsToken(t *testing.T) {
	p := newPager(t, http.StatusBadGateway)
	h := newQueueGateway(t, t.TempDir(), "", "key k {\nurl "+p.NotifyURL()+"\ntoken 0123456789abcdef\n}")
	r := httptest.NewRequest(http.MethodPost, "/notify/k?token=0123456789abcdef", strings.NewReader("body=b"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", typeJSON)
	id := do(t, h, r).queued(t).ID
	for _, query := range []string{"", "?token=0123456789abcdeg"} {
		if got := getMessage(t, h, http.MethodDelete, id+query, typeJSON); got.status != http.StatusUnauthorized {
			t.Errorf("%q: status %d %s", query, got.status, got.body)
		}
	}
	if s, _ := state(t, h, id); s != "queued" {
		t.Errorf("the state is %s", s)
	}
	if got := getMessage(t, h, http.MethodDelete, id+"?token=0123456789abcdef", typeJSON); got.status != http.StatusOK || got.queued(t).State != "cancelled" {
		t.Errorf("with the token: status %d %s", got.status, got.body)
	}
}
