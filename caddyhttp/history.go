package caddyhttp

import (
	"slices"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// history holds the outcomes of the last messages for the admin API. It holds
// no text of a message, unless the error of a destination repeats it, and no
// secret.
type history struct {
	mu       sync.Mutex
	messages []historyEntry // the oldest first
	results  int            // of all messages
}

// historyEntry is a message that was sent.
type historyEntry struct {
	Time    time.Time    `json:"time"`
	Source  string       `json:"source"`
	Key     *string      `json:"key"` // null for a message without one
	Outcome string       `json:"outcome"`
	Results []api.Result `json:"results"`
	Omitted int          `json:"omitted,omitempty"` // results that are not kept
}

// Limits of the history.
const (
	maxHistoryMessages = 100
	maxHistoryResults  = 1000 // of all messages together
	maxHistoryText     = 500  // of each text, in bytes
)

// add records a message and drops the oldest ones beyond the limits.
func (h *history) add(d delivery, ok bool, results []notifier.Result) {
	e := historyEntry{Time: d.message.Time, Source: d.source, Outcome: outcomeDelivered}
	if key := d.key; key != "" {
		e.Key = &key // &d.key would keep the message in memory
	}
	if !ok {
		e.Outcome = outcomeFailed
	}
	if e.Omitted = max(len(results)-maxHistoryResults, 0); e.Omitted > 0 {
		results = results[:maxHistoryResults]
	}
	e.Results = make([]api.Result, len(results))
	for i, result := range results {
		r := api.NewResult(result)
		r.Destination = markup.TruncateBytes(r.Destination, maxHistoryText)
		if r.Error != nil {
			*r.Error = markup.TruncateBytes(*r.Error, maxHistoryText)
		}
		e.Results[i] = r
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.messages, h.results = append(h.messages, e), h.results+len(e.Results)
	drop := 0
	for len(h.messages)-drop > maxHistoryMessages || h.results > maxHistoryResults {
		h.results -= len(h.messages[drop].Results)
		h.messages[drop] = historyEntry{}
		drop++
	}
	h.messages = h.messages[drop:]
}

// list returns the messages, the newest first.
func (h *history) list() []historyEntry {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := append([]historyEntry{}, h.messages...) // never nil, which would be null in JSON
	slices.Reverse(out)
	return out
}
