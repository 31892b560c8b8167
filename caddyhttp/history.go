package caddyhttp

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// history holds the outcomes of the last messages and the last refusals, for the
// admin API and the pages. It holds no secret, and no text of a message unless
// the error of a destination repeats it. Refusals do not displace messages,
// because clients that are refused may send any number of requests.
type history struct {
	mu       sync.Mutex
	messages []historyEntry // the oldest first
	results  int            // of all messages
	refusals []recentRefusal
	last     map[site.KeyID]lastOutcome
}

// lastOutcome is when a key has last delivered a message, and when it has last
// failed to. A zero time stands for never.
type lastOutcome struct{ delivered, failed time.Time }

// recentRefusal stands for all recent refusals with the same metrics.RefusalID.
type recentRefusal struct {
	last  refusal
	count int
}

// historyEntry is a message that was sent, or refusals of one kind.
type historyEntry struct {
	Time    time.Time `json:"time"`
	Source  string    `json:"source"`
	Key     *string   `json:"key"` // null for a message without one
	site    string    // the ID of the site that the message came to
	kind    notifier.Type
	Outcome string `json:"outcome"`

	// Incident is the name of what the message is about.
	Incident string `json:"incident,omitempty"`

	// IncidentID is the ID of the incident, if the gateway keeps it: for keys with rules.
	IncidentID string `json:"incident_id,omitempty"`

	Results []api.Result `json:"results"`
	Omitted int          `json:"omitted,omitempty"` // results that are not kept

	// Of refusals only. Time, status and error are those of the last one.
	Reason string `json:"reason,omitempty"`
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
	Server string `json:"server,omitempty"` // the HTTP server
	Client string `json:"client_ip,omitempty"`
	Count  int    `json:"count,omitempty"`
}

// Limits of the history.
const (
	maxHistoryMessages = 100
	maxHistoryResults  = 1000 // of all messages together
	maxHistoryText     = 500  // of each text, in bytes
	maxHistoryRefusals = 100  // of different server, key or reason
	maxHistoryKeys     = 20_000
)

// add records a message with its results, and drops the oldest ones beyond the limits.
func (h *history) add(e historyEntry, results []notifier.Result) {
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
	h.setLast(&e)
	h.messages, h.results = append(h.messages, e), h.results+len(e.Results)
	drop := 0
	for len(h.messages)-drop > maxHistoryMessages || h.results > maxHistoryResults {
		h.results -= len(h.messages[drop].Results)
		h.messages[drop] = historyEntry{}
		drop++
	}
	h.messages = h.messages[drop:]
}

// setLast records when the key of a message has delivered or failed. The caller
// holds the lock.
func (h *history) setLast(e *historyEntry) {
	if e.Key == nil || e.Outcome != site.OutcomeDelivered && e.Outcome != site.OutcomeFailed {
		return
	}
	if h.last == nil {
		h.last = map[site.KeyID]lastOutcome{}
	}
	id := site.KeyID{Site: e.site, Key: *e.Key}
	o, ok := h.last[id]
	if !ok && len(h.last) >= maxHistoryKeys {
		for k := range h.last { // any other
			delete(h.last, k)
			break
		}
	}
	if e.Outcome == site.OutcomeDelivered {
		o.delivered = e.Time
	} else {
		o.failed = e.Time
	}
	id.Key = strings.Clone(id.Key)
	h.last[id] = o
}

// lastOf returns when a key has delivered and failed since the process started.
func (h *history) lastOf(key site.KeyID) lastOutcome {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last[key]
}

// ofKey returns at most n messages and refusals of a key, the newest first.
func (h *history) ofKey(key site.KeyID, n int) []historyEntry {
	var out []historyEntry
	for _, e := range h.list() {
		if e.Key != nil && *e.Key == key.Key && e.site == key.Site && len(out) < n {
			out = append(out, e)
		}
	}
	return out
}

// addRefusal records a refusal. Those of one kind are one entry.
func (h *history) addRefusal(f refusal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := recentRefusal{f, 1}
	if i := slices.IndexFunc(h.refusals, func(r recentRefusal) bool { return r.last.RefusalID == f.RefusalID }); i >= 0 {
		r.count += h.refusals[i].count
		h.refusals = slices.Delete(h.refusals, i, i+1)
	} else if len(h.refusals) == maxHistoryRefusals {
		h.refusals = slices.Delete(h.refusals, 0, 1)
	}
	h.refusals = append(h.refusals, r)
}

func (r recentRefusal) entry() historyEntry {
	e := historyEntry{
		Time: r.last.time, Source: r.last.Source, site: r.last.Site, Outcome: site.OutcomeRefused, Results: []api.Result{},
		Reason: r.last.Reason, Status: r.last.status, Error: r.last.text, Server: r.last.Server, Client: r.last.client, Count: r.count,
	}
	if r.last.Key != "" {
		e.Key = &r.last.Key
	}
	return e
}

// list returns the messages and refusals, the newest first.
func (h *history) list() []historyEntry {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []historyEntry{} // never nil, which would be null in JSON
	refusals := h.refusals
	for _, m := range slices.Backward(h.messages) {
		for len(refusals) > 0 && refusals[len(refusals)-1].last.time.After(m.Time) {
			out = append(out, refusals[len(refusals)-1].entry())
			refusals = refusals[:len(refusals)-1]
		}
		out = append(out, m)
	}
	for _, r := range slices.Backward(refusals) {
		out = append(out, r.entry())
	}
	return out
}
