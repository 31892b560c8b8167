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

// The queue stores these types as JSON, which the store encrypts. Fields may be
// added; an older version of the program ignores them.

// queuedText is the stored body of a message. It has what a delivery needs.
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

	// Set for a message whose destinations a client decides.
	Untrusted bool `json:"untrusted,omitempty"`
	Targets   int  `json:"targets,omitempty"`

	// Set for a message with URLs of a client.
	Client bool   `json:"client,omitempty"`
	Policy string `json:"policy,omitempty"` // key of the egress policy
}

// queuedFile is a file of a message, without its content.
type queuedFile struct {
	Name        string `json:"name"`
	ContentType string `json:"content_type"`
}

// queuedState has what the next attempt of one delivery needs.
type queuedState struct {
	// Key and Source are those of the message.
	Key    string `json:"key,omitempty"`
	Source string `json:"source,omitempty"`
	// Reported means that events and the history report a failure as part of the
	// outcome of the message.
	Reported bool `json:"told,omitempty"`
	// Hash identifies the destination in the configuration.
	Hash string `json:"hash,omitempty"`
	// URL is the URL of a client, if the destination is not in the configuration.
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

// record returns the message of d for the queue, without jobs.
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

// message returns the stored message with the files of m.
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

// state returns the state of a delivery to t before its first attempt.
func (d *delivery) state(t notifier.Target) queuedState {
	s := queuedState{Key: d.key, Source: d.source, Tags: t.Tags}
	if d.to.Transient {
		s.URL = t.URL()
	} else {
		s.Hash = t.Hash()
	}
	return s
}

// with returns the state as JSON, with the progress p.
func (s queuedState) with(p *notifier.Progress) []byte {
	if p != nil {
		if b, err := p.MarshalJSON(); err == nil { // without progress, everything is sent again
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

// queuedNotYet returns the result of a delivery to t whose outcome is not known
// yet.
func queuedNotYet(t notifier.Target) notifier.Result {
	return notifier.Result{Service: t.Service(), Destination: t.String(), Tags: t.Tags, Status: api.StatusQueued, Optional: t.Optional()}
}

// queuedMessage returns a stored message as clients see it.
func queuedMessage(e *queue.Entry) *api.QueuedMessage {
	m := &api.QueuedMessage{ID: e.Message.ID.String(), Created: e.Message.Created, Results: make([]api.QueuedResult, len(e.Jobs))}
	for i := range e.Jobs {
		m.Results[i] = jobResult(&e.Jobs[i])
	}
	chains := readChains(e)
	chains.setOptional(e.Jobs, m.Results)
	m.SetState()
	return m
}

// jobResult returns the result of a job as clients see it.
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

// storedResults returns the results of a stored message in the form of the
// response to its request.
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
