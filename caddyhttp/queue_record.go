package caddyhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// What the queue stores is JSON, which the store encrypts. A field may be added;
// an older version of the program ignores it.

// queuedText is the body of a message: what a delivery needs.
type queuedText struct {
	Title  string          `json:"title,omitempty"`
	Body   string          `json:"body,omitempty"`
	Type   notifier.Type   `json:"type,omitempty"`
	Format notifier.Format `json:"format,omitempty"`
	Time   time.Time       `json:"time"`
	Hops   int             `json:"hops,omitempty"`
	Files  []queuedFile    `json:"files,omitempty"`

	Source string `json:"source"`
	Key    string `json:"key,omitempty"`

	// Of a message that clients decide where it goes.
	Untrusted bool `json:"untrusted,omitempty"`
	Targets   int  `json:"targets,omitempty"`

	// Of a message with URLs of a client.
	Client bool   `json:"client,omitempty"`
	Policy string `json:"policy,omitempty"` // key of the egress policy
}

// queuedFile is a file of a message, without its content.
type queuedFile struct {
	Name        string `json:"name"`
	ContentType string `json:"content_type"`
}

// queuedState is what the next attempt of one delivery needs.
type queuedState struct {
	// Key and Source are those of the message.
	Key    string `json:"key,omitempty"`
	Source string `json:"source,omitempty"`
	// Told means that a failure is part of the message's outcome, in events and
	// the history.
	Told bool `json:"told,omitempty"`
	// Hash names the destination among those of the configuration.
	Hash string `json:"hash,omitempty"`
	// URL is a client's.
	URL      string          `json:"url,omitempty"`
	Tags     []string        `json:"tags,omitempty"`
	Progress json.RawMessage `json:"progress,omitempty"`
}

// mustJSON returns v as JSON. The types of this file always marshal.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// record returns the message of d without jobs.
func (d *delivery) record() *queue.Message {
	m := d.message
	text := queuedText{
		Title: m.Title, Body: m.Body, Type: m.Type, Format: m.Format, Time: m.Time, Hops: m.Hops,
		Source: d.source, Key: d.key,
	}
	if d.to.Transient {
		text.Client, text.Policy = true, d.settings.limits.Egress.Key()
	}
	if d.to.Limits != nil {
		text.Untrusted, text.Targets = true, len(d.to.Targets)
	}
	r := &queue.Message{ID: d.id, Created: m.Time, Summary: d.chains()}
	for _, a := range m.Attachments {
		text.Files = append(text.Files, queuedFile{a.Name, a.ContentType})
		r.Files = append(r.Files, queue.File{Size: a.Size, ReaderAt: a.ReaderAt()})
	}
	r.Body = mustJSON(text)
	return r
}

// message returns the stored message. Its files are those of m.
func (t *queuedText) message(m *queue.Message) (*notifier.Message, error) {
	if len(t.Files) != len(m.Files) {
		return nil, fmt.Errorf("the message has %d files, but %d are stored", len(t.Files), len(m.Files))
	}
	out := &notifier.Message{Title: t.Title, Body: t.Body, Type: t.Type, Format: t.Format, Time: t.Time, Hops: t.Hops}
	for i, f := range t.Files {
		out.Attachments = append(out.Attachments, notifier.NewAttachmentAt(f.Name, f.ContentType, m.Files[i].Size, m.Files[i]))
	}
	return out, nil
}

// state returns the state of a delivery to t that has not begun.
func (d *delivery) state(t notifier.Target) queuedState {
	s := queuedState{Key: d.key, Source: d.source, Tags: t.Tags}
	if d.to.Transient {
		s.URL = t.URL()
	} else {
		s.Hash = t.Hash()
	}
	return s
}

// with returns the state with what the destination has of the message.
func (s queuedState) with(p *notifier.Progress) []byte {
	if p != nil {
		if b, err := p.MarshalJSON(); err == nil { // without it, all is sent again
			s.Progress = b
		}
	}
	return mustJSON(s)
}

// resultOf returns the stored form of a result.
func resultOf(r notifier.Result) []byte {
	result := api.NewResult(r)
	return result.AppendJSON(make([]byte, 0, 256))
}

// queuedNotYet returns the result of a delivery to t that is not known.
func queuedNotYet(t notifier.Target) notifier.Result {
	return notifier.Result{Service: t.Service(), Destination: t.String(), Tags: t.Tags, Status: api.StatusQueued, Optional: t.Optional()}
}

// queuedMessage returns what clients see of a stored message.
func queuedMessage(e *queue.Entry) *api.QueuedMessage {
	m := &api.QueuedMessage{ID: e.Message.ID.String(), Created: e.Message.Created, Results: make([]api.QueuedResult, len(e.Jobs))}
	for i := range e.Jobs {
		m.Results[i] = jobResult(&e.Jobs[i])
	}
	chains := readChains(e)
	chains.excuse(e.Jobs, m.Results)
	m.SetState()
	return m
}

// jobResult returns what clients see of a job.
func jobResult(j *queue.Job) (r api.QueuedResult) {
	if err := json.Unmarshal(j.Result, &r.Result); err != nil {
		r.Result = api.Result{Tags: []string{}} // the record is damaged; the status remains
	}
	switch j.Status {
	case queue.Queued, queue.Sending:
		r.Status, r.NextAttempt = api.StatusQueued, &j.Due
	case queue.Delivered, queue.Failed:
	case queue.Cancelled:
		r.Status = api.StatusCancelled
	default:
		r.Status = notifier.Failed
		if r.Error == nil || j.Status == queue.Lost {
			r.Error = &j.Reason
		}
	}
	return r
}

// storedResults returns the results of a stored message in the form that the
// response to its request has.
func storedResults(m *api.QueuedMessage) []notifier.Result {
	out := make([]notifier.Result, len(m.Results))
	for i, r := range m.Results {
		out[i] = notifier.Result{
			Service: r.Service, Destination: r.Destination, Tags: r.Tags, Status: r.Status, Optional: r.Optional,
			Attempts: r.Attempts, Elapsed: time.Duration(r.ElapsedMS) * time.Millisecond,
		}
		if r.Error != nil {
			out[i].Err = errors.New(*r.Error)
		}
	}
	return out
}
