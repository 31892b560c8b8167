package caddyhttp

import (
	"sync"
	"time"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// recent remembers what became of the last messages, for the admin API.
// Nothing in it is of a message's text, unless a destination's refusal repeats
// that, and no text in it holds a secret.
type recent struct {
	mu       sync.Mutex
	messages []recentMessage // the oldest first
	results  int             // of all messages
}

// recentMessage is a message that was sent.
type recentMessage struct {
	Time    time.Time    `json:"time"`
	Source  string       `json:"source"`
	Key     *string      `json:"key"` // null for a message without one
	Outcome string       `json:"outcome"`
	Results []jsonResult `json:"results"`
	Omitted int          `json:"omitted,omitempty"` // results beyond what is remembered
}

const (
	maxRecentMessages = 100
	maxRecentResults  = 1000 // of all messages together
	maxRecentText     = 500  // bytes of one text
)

// add remembers a message and forgets what is too old for it.
func (r *recent) add(at time.Time, from origin, ok bool, results []notifier.Result) {
	m := recentMessage{Time: at, Source: from.source, Outcome: outcomeDelivered}
	if from.key != "" {
		m.Key = &from.key
	}
	if !ok {
		m.Outcome = outcomeFailed
	}
	if m.Omitted = max(len(results)-maxRecentResults, 0); m.Omitted > 0 {
		results = results[:maxRecentResults]
	}
	m.Results = make([]jsonResult, len(results))
	for i, result := range results {
		j := resultJSON(result)
		j.Destination = shortened(j.Destination)
		if j.Error != nil {
			*j.Error = shortened(*j.Error)
		}
		m.Results[i] = j
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages, r.results = append(r.messages, m), r.results+len(m.Results)
	drop := 0
	for len(r.messages)-drop > maxRecentMessages || r.results > maxRecentResults {
		r.results -= len(r.messages[drop].Results)
		r.messages[drop] = recentMessage{}
		drop++
	}
	r.messages = r.messages[drop:]
}

// list is what is remembered, the newest first.
func (r *recent) list() []recentMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]recentMessage, 0, len(r.messages))
	for i := len(r.messages) - 1; i >= 0; i-- {
		out = append(out, r.messages[i])
	}
	return out
}

// shortened is the beginning of a text, in memory of its own.
func shortened(s string) string {
	if len(s) <= maxRecentText {
		return s
	}
	n := maxRecentText
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return string([]byte(s[:n])) + "…"
}
