package api

import (
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
)

// TestAskStateText checks what a client sees of a question that wants plain text. An answer is
// data, and stays in its line.
func TestAskStateText(t *testing.T) {
	answer, typed := "wait", "two\nlines"
	for want, s := range map[string]message.AskState{
		"The question is open until ":           {State: "open", Until: time.Now()},
		"The question is cancelled":             {State: "cancelled"},
		"The question is expired: wait":         {State: "expired", Answer: &answer},
		"The question is answered: wait, by Jo": {State: "answered", Answer: &answer, By: "Jo"},
		"The question is answered: two":         {State: "answered", Answer: &typed, By: "Jo"},
	} {
		r := MessageResponse(&message.QueuedMessage{Ask: &s})
		text := string(r.text())
		if !strings.Contains(text, want) || strings.Count(strings.TrimSpace(text), "\n") != 0 {
			t.Errorf("%q, want %q in one line", text, want)
		}
	}
}
