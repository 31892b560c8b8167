package history

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// History holds the outcomes of the latest messages and refusals, for the admin API and the pages.
// It holds no secret, and no text of a message unless the error of a destination repeats it.
// Refusals do not displace messages, because refused clients may send any number of requests.
type History struct {
	mu       sync.Mutex
	messages [MaxHistoryMessages]Entry
	first    int // index of the oldest message; the others follow it, and go on at the index 0
	count    int // of messages
	results  int // of all messages
	refusals []recentRefusal
	last     map[site.KeyID]*LastOutcome
}

// LastOutcome is when a key last delivered a message and when it last failed to. A zero time means
// never.
type LastOutcome struct{ Delivered, Failed time.Time }

// recentRefusal counts the recent refusals with one metrics.RefusalID.
type recentRefusal struct {
	last  Refusal
	count int
}

// KeyName is the name of a key; "", which is null in JSON, for none.
type KeyName string

// MarshalJSON implements [json.Marshaler].
func (k KeyName) MarshalJSON() ([]byte, error) {
	if k == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(k))
}

// Entry is a message that was sent, or refusals of one kind.
type Entry struct {
	ID      string        `json:"id,omitempty"` // of the message; "" without a queue, and for refusals
	Time    time.Time     `json:"time"`
	Source  string        `json:"source"`
	Key     KeyName       `json:"key"` // null for a message without one
	Site    string        `json:"-"`   // the ID of the message's site
	Type    notifier.Type `json:"-"`
	Outcome string        `json:"outcome"`

	// Incident is the name of the message's incident.
	Incident string `json:"incident,omitempty"`

	// IncidentID is the ID of the incident, if the gateway stores it. It does so for keys with
	// rules.
	IncidentID string `json:"incident_id,omitempty"`

	Results []message.Result `json:"results"`
	Omitted int              `json:"omitted,omitempty"` // number of results left out

	// For refusals only. Time, status and error belong to the last one.
	Reason string `json:"reason,omitempty"`
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
	Server string `json:"server,omitempty"` // the HTTP server
	Client string `json:"client_ip,omitempty"`
	Count  int    `json:"count,omitempty"`
}

// Limits of the history.
const (
	MaxHistoryMessages = 100
	MaxHistoryResults  = 1000 // results of all messages together
	MaxHistoryText     = 500  // size of each text, in bytes
	MaxHistoryRefusals = 100  // refusals that differ in server, key or reason
	maxHistoryKeys     = 20_000
)

// Add records a message with its results, and drops the oldest ones beyond the limits.
func (h *History) Add(e Entry, results []notifier.Result) {
	if e.Omitted = max(len(results)-MaxHistoryResults, 0); e.Omitted > 0 {
		results = results[:MaxHistoryResults]
	}
	e.Results = make([]message.Result, len(results))
	for i, result := range results {
		r := message.NewResult(result)
		r.Destination = markup.TruncateBytes(r.Destination, MaxHistoryText)
		if r.Error != nil {
			*r.Error = markup.TruncateBytes(*r.Error, MaxHistoryText)
		}
		e.Results[i] = r
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.setLast(&e)
	h.results += len(e.Results)
	for h.count == MaxHistoryMessages || h.results > MaxHistoryResults {
		h.results -= len(h.messages[h.first].Results)
		h.messages[h.first] = Entry{}
		h.first = (h.first + 1) % MaxHistoryMessages
		h.count--
	}
	h.messages[(h.first+h.count)%MaxHistoryMessages] = e
	h.count++
}

// setLast records when the key of a message has delivered or failed. The caller
// holds the lock.
func (h *History) setLast(e *Entry) {
	if e.Key == "" || e.Outcome != site.OutcomeDelivered && e.Outcome != site.OutcomeFailed {
		return
	}
	if h.last == nil {
		h.last = map[site.KeyID]*LastOutcome{}
	}
	id := site.KeyID{Site: e.Site, Key: string(e.Key)}
	o := h.last[id]
	if o == nil {
		if len(h.last) >= maxHistoryKeys {
			for k := range h.last { // any other
				delete(h.last, k)
				break
			}
		}
		o, id.Key = new(LastOutcome), strings.Clone(id.Key)
		h.last[id] = o
	}
	if e.Outcome == site.OutcomeDelivered {
		o.Delivered = e.Time
	} else {
		o.Failed = e.Time
	}
}

// LastOf returns when a key has delivered and failed since the process started.
func (h *History) LastOf(key site.KeyID) LastOutcome {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o := h.last[key]; o != nil {
		return *o
	}
	return LastOutcome{}
}

// AddRefusal records a refusal. Refusals with the same ID share an entry.
func (h *History) AddRefusal(f Refusal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := recentRefusal{f, 1}
	if i := slices.IndexFunc(h.refusals, func(r recentRefusal) bool { return r.last.RefusalID == f.RefusalID }); i >= 0 {
		r.count += h.refusals[i].count
		h.refusals = slices.Delete(h.refusals, i, i+1)
	} else if len(h.refusals) == MaxHistoryRefusals {
		h.refusals = slices.Delete(h.refusals, 0, 1)
	}
	h.refusals = append(h.refusals, r)
}

func (r recentRefusal) entry() Entry {
	return Entry{
		Key: KeyName(r.last.Key), Time: r.last.Time, Source: r.last.Source, Site: r.last.Site, Outcome: site.OutcomeRefused,
		Results: []message.Result{},
		Reason:  r.last.Reason, Status: r.last.Status, Error: r.last.Text, Server: r.last.Server, Client: r.last.Client, Count: r.count,
	}
}

// List returns the messages and refusals, the newest first.
func (h *History) List() []Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []Entry{} // never nil, which would be null in JSON
	refusals := h.refusals
	for i := h.count - 1; i >= 0; i-- {
		m := h.messages[(h.first+i)%MaxHistoryMessages]
		for len(refusals) > 0 && refusals[len(refusals)-1].last.Time.After(m.Time) {
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

// Refusal is a refused request, or a refused command of a mail client.
type Refusal struct {
	metrics.RefusalID
	Time   time.Time
	Status int    // HTTP status or SMTP code
	Text   string // the error that the client got
	Cause  string // an error of the network or of a file that the client did not get; "" if there is none
	Client string // its address; "" if unknown
}
