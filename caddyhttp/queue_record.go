package caddyhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The queue stores these types, which the store encrypts, as their methods encode
// them. Fields may be added; an older version of the program ignores them. The
// JSON is that of earlier builds.

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

// encode is the inverse of decode.
func (t *queuedText) encode() []byte {
	b := make([]byte, 0, 96+len(t.Title)+len(t.Body)+len(t.Policy)+64*len(t.Files))
	b = appendText(b, 1, t.Title)
	b = appendText(b, 2, t.Body)
	b = appendText(b, 3, t.Type)
	b = appendText(b, 4, t.Format)
	if stamp, err := t.Time.MarshalBinary(); err == nil { // without it, the time is that of the delivery
		b = appendText(b, 5, stamp)
	}
	b = appendNumber(b, 6, t.Hops)
	for _, f := range t.Files {
		b = appendText(b, 7, mustJSON(f))
	}
	b = appendText(b, 8, t.Source)
	b = appendText(b, 9, t.Key)
	b = appendTrue(b, 10, t.Untrusted)
	b = appendNumber(b, 11, t.Targets)
	b = appendTrue(b, 12, t.Client)
	return appendText(b, 13, t.Policy)
}

// decode decodes the body of a message.
func (t *queuedText) decode(b []byte) error {
	if isJSON(b) {
		return decodeJSON(b, t)
	}
	return decodeFields(b, func(field protowire.Number, value []byte) error {
		switch field {
		case 1:
			t.Title = string(value)
		case 2:
			t.Body = string(value)
		case 3:
			t.Type = notifier.Type(value)
		case 4:
			t.Format = notifier.Format(value)
		case 5:
			return t.Time.UnmarshalBinary(value)
		case 7:
			var f queuedFile
			if err := json.Unmarshal(value, &f); err != nil {
				return err
			}
			t.Files = append(t.Files, f)
		case 8:
			t.Source = string(value)
		case 9:
			t.Key = string(value)
		case 13:
			t.Policy = string(value)
		}
		return nil
	}, func(field protowire.Number, value int) {
		switch field {
		case 6:
			t.Hops = value
		case 10:
			t.Untrusted = value != 0
		case 11:
			t.Targets = value
		case 12:
			t.Client = value != 0
		}
	})
}

// encode is the inverse of decode.
func (s *queuedState) encode() []byte {
	b := make([]byte, 0, 48+len(s.Key)+len(s.Source)+len(s.Hash)+len(s.URL)+32*len(s.Tags)+len(s.Progress))
	b = appendText(b, 1, s.Key)
	b = appendText(b, 2, s.Source)
	b = appendTrue(b, 3, s.Reported)
	b = appendText(b, 4, s.Hash)
	b = appendText(b, 5, s.URL)
	for _, tag := range s.Tags {
		b = appendText(b, 6, tag)
	}
	return appendText(b, 7, s.Progress)
}

// decode decodes the state of a job.
func (s *queuedState) decode(b []byte) error {
	if isJSON(b) {
		return decodeJSON(b, s)
	}
	return decodeFields(b, func(field protowire.Number, value []byte) error {
		switch field {
		case 1:
			s.Key = string(value)
		case 2:
			s.Source = string(value)
		case 4:
			s.Hash = string(value)
		case 5:
			s.URL = string(value)
		case 6:
			s.Tags = append(s.Tags, string(value))
		case 7:
			s.Progress = bytes.Clone(value)
		}
		return nil
	}, func(field protowire.Number, value int) {
		if field == 3 {
			s.Reported = value != 0
		}
	})
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
	r.Body = text.encode()
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

// with returns the encoded state with the progress p.
func (s queuedState) with(p *notifier.Progress) []byte {
	if p != nil {
		if b, err := p.MarshalJSON(); err == nil { // without progress, everything is sent again
			s.Progress = b
		}
	}
	return s.encode()
}

// resultOf returns the stored form of a result.
func resultOf(r notifier.Result) []byte { return appendResult(make([]byte, 0, roomForResult), r) }

// roomForResult is the number of bytes that most results need.
const roomForResult = 256

// appendResult appends the stored form of a result.
func appendResult(b []byte, r notifier.Result) []byte {
	result := api.NewResult(r)
	return result.AppendJSON(b)
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
