package queued

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Message returns a stored message as clients see it.
func Message(e *queue.Entry) *message.QueuedMessage {
	m := &message.QueuedMessage{ID: e.Message.ID.String(), Created: e.Message.Created, Results: make([]message.QueuedResult, len(e.Jobs))}
	for i := range e.Jobs {
		m.Results[i] = JobResult(&e.Jobs[i])
	}
	var s Summary
	if s.Decode(e.Message.Summary) == nil {
		m.Incident = s.Incident
	}
	chains := chainsOf(e)
	chains.setOptional(e.Jobs, m.Results)
	ignoreDevices(m.Results)
	m.SetState()
	return m
}

// Results returns the results of a stored message, as in the response to its request.
func Results(m *message.QueuedMessage) []notifier.Result {
	out := make([]notifier.Result, len(m.Results))
	for i, r := range m.Results {
		out[i] = notifier.Result{
			Service: r.Service, Destination: r.Destination, Tags: r.Tags, Status: r.Status, Optional: r.Optional, Rule: r.Rule, By: r.By,
			Attempts: r.Attempts, Elapsed: time.Duration(r.ElapsedMS) * time.Millisecond,
		}
		if r.Until != nil {
			out[i].Until = *r.Until
		} else if r.Next != nil {
			out[i].Until, out[i].Step = *r.Next, r.Step
		}
		if r.Error != nil {
			out[i].Err = errors.New(*r.Error)
		}
	}
	return out
}

// Text is the stored body of a message, with everything that a delivery needs.
type Text struct {
	Title  string
	Body   string
	Type   notifier.Type
	Format notifier.Format
	Time   time.Time
	Hops   int
	Files  []File

	Incident notifier.Incident

	// Foreign and Dialect are fields of the message.
	Foreign bool
	Dialect markup.Dialect

	Source string
	Key    string
	Site   string // the ID of the message's site

	// Untrusted is set if a client decides the destinations.
	Untrusted bool
	Targets   int

	// Client is set if the message has a client's URLs.
	Client bool

	// Policy is the key of the egress policy under which the message was accepted; "" for
	// destinations of the operator, which may go anywhere.
	Policy string

	// Trace is empty unless the request was traced.
	Trace Trace

	// DevicePolicy is the key of the egress policy for the key's devices, which are not the
	// operator's; "" for none.
	DevicePolicy string

	// Asks means that the message is a question. The rest is in the question's record.
	Asks bool

	Thread string // see [notifier.Message]

	Later Later // of a planned message

	// OpensAlert means that the message opens an alert of an incident tool.
	OpensAlert bool
}

// File is a file of a message, without its content.
type File struct {
	Name        string
	ContentType string
}

// Trace is the span of a request: the headers of W3C Trace Context. It is empty if the
// span is not recorded.
type Trace struct{ Parent, State string }

func (t *Text) fields(c *wire.Codec) {
	wire.Text(c, 1, &t.Title)
	wire.Text(c, 2, &t.Body)
	wire.Text(c, 3, &t.Type)
	wire.Text(c, 4, &t.Format)
	wire.Binary(c, 5, &t.Time) // with its zone
	wire.Number(c, 6, &t.Hops)
	wire.Records(c, 7, &t.Files, (*File).fields)
	wire.Text(c, 8, &t.Source)
	wire.Text(c, 9, &t.Key)
	wire.True(c, 10, &t.Untrusted)
	wire.Number(c, 11, &t.Targets)
	wire.True(c, 12, &t.Client)
	wire.Text(c, 13, &t.Policy)
	wire.Text(c, 24, &t.DevicePolicy)
	wire.Text(c, 14, &t.Site)
	wire.Text(c, 15, &t.Incident.Name)
	wire.Text(c, 16, &t.Incident.ID)
	wire.Text(c, 17, &t.Incident.State)
	wire.True(c, 18, &t.Foreign)
	wire.Text(c, 19, &t.Dialect)
	wire.Time(c, 20, &t.Incident.Ended)
	wire.Text(c, 21, &t.Incident.Alerts)
	wire.Text(c, 22, &t.Trace.Parent)
	wire.Text(c, 23, &t.Trace.State)
	wire.True(c, 30, &t.Asks)
	wire.Text(c, 31, &t.Thread)
	wire.Record(c, 32, &t.Later, (*Later).fields)
	wire.Number(c, 34, &t.Incident.OpenFor) // for incidents that no rule keeps
	wire.True(c, 35, &t.OpensAlert)
}

func (f *File) fields(c *wire.Codec) {
	wire.Text(c, 1, &f.Name)
	wire.Text(c, 2, &f.ContentType)
}

// Encode is the inverse of Decode.
func (t *Text) Encode() []byte {
	return wire.Append(make([]byte, 0, 112+len(t.Title)+len(t.Body)+len(t.Policy)+64*len(t.Files)), t, (*Text).fields)
}

// Decode decodes the body of a message.
func (t *Text) Decode(b []byte) error { return wire.Decode(b, t, (*Text).fields) }

// Message returns the stored message with the files of m.
func (t *Text) Message(m *queue.Message) (*notifier.Message, error) {
	if len(t.Files) != len(m.Files) {
		return nil, fmt.Errorf("the message has %d files, but %d are stored", len(t.Files), len(m.Files))
	}
	out := &notifier.Message{
		Title: t.Title, Body: t.Body, Type: t.Type, Format: t.Format, Time: t.Time, Hops: t.Hops, Incident: t.Incident,
		Foreign: t.Foreign, Dialect: t.Dialect, Thread: t.Thread,
	}
	for i, f := range t.Files {
		out.Attachments = append(out.Attachments, notifier.NewAttachmentAt(f.Name, f.ContentType, m.Files[i].Size, nil, m.Files[i]))
	}
	return out, nil
}

// Summary is the summary of a message, stored with the message and with its results.
type Summary struct {
	Site     string // the ID of the message's site
	Incident string // the name of the incident; "" for none
	Key      string
	Source   string
	Type     notifier.Type

	// Known is the name of the incident's record; "" for a message to a key without rules.
	Known string

	Asks bool // the message is a question

	// At is the place of the key, for finding the receipts of its devices, and whose Title is; zero
	// without both.
	At site.Place

	// Title is the title of a message to a key, where the site keeps titles.
	Title string

	Chains Chains // none for a final message
}

func (s *Summary) fields(c *wire.Codec) {
	wire.Records(c, 1, &s.Chains.All, chainFields)
	wire.Numbers(c, 2, &s.Chains.Optional)
	wire.Text(c, 3, &s.Site)
	wire.Text(c, 4, &s.Incident)
	wire.Text(c, 5, &s.Key)
	wire.Text(c, 6, &s.Source)
	wire.Text(c, 7, &s.Type)
	wire.Text(c, 8, &s.Known)
	wire.True(c, 20, &s.Asks)
	wire.Text(c, 21, &s.At.Home)
	wire.Text(c, 22, &s.At.Key)
	wire.Text(c, 23, &s.Title)
}

func chainFields(chain *[][]int, c *wire.Codec) { wire.Records(c, 1, chain, numberFields) }

func numberFields(jobs *[]int, c *wire.Codec) { wire.Numbers(c, 1, jobs) }

// Encode is the inverse of Decode.
func (s *Summary) Encode() []byte { return wire.Append(nil, s, (*Summary).fields) }

// Decode decodes the summary of a message.
func (s *Summary) Decode(b []byte) error { return wire.Decode(b, s, (*Summary).fields) }

// MaxTitle is the maximum length of the title in a summary, in bytes.
const MaxTitle = 200

// PlainTitle returns the title of a message as one line of plain text of at most max bytes.
func PlainTitle(m *notifier.Message, max int) string {
	title := m.Title
	switch {
	case m.Format == "" || m.Format == notifier.Text || m.Dialect != "": // it is plain
	case m.Foreign:
		title = markup.ConvertForeign(title, m.Format, notifier.Text, false)
	default:
		title = markup.Convert(title, m.Format, notifier.Text)
	}
	return markup.TruncateBytes(markup.OneLine(title), max)
}

// SiteID returns the ID of a stored message's site, or "" if the message is damaged.
func SiteID(m *queue.Message) string {
	var s Summary
	if s.Decode(m.Summary) != nil {
		return ""
	}
	return s.Site
}

// Later says when, and to whom, a planned message is sent. The zero value means now.
type Later struct {
	At    time.Time     // when it is due
	Delay time.Duration // time from planning until then; 0 if the client has named the time

	// Home and First are the place of its key: where it is defined, and its first name.
	Home, First string

	// Tags is the tag expression of the request. Preferred are tags that select only if a
	// destination has one of them.
	Tags      string
	Preferred []string

	Values   []string // values for the variables in URLs: a name, then its value
	Format   string   // the source with the message's format; "" for the gateway's own
	Sequence string   // the name by which a program cancels the message; "" for none

	// Published is the part for ntfy's clients, if the message comes from one.
	Published     message.Published
	FromPublisher bool
}

func (l *Later) fields(c *wire.Codec) {
	wire.Time(c, 1, &l.At)
	wire.Text(c, 2, &l.Tags)
	wire.Texts(c, 3, &l.Preferred)
	wire.Texts(c, 4, &l.Values)
	wire.Text(c, 5, &l.Format)
	wire.Text(c, 6, &l.Sequence)
	wire.True(c, 7, &l.FromPublisher)
	wire.Record(c, 8, &l.Published, publishedFields)
	wire.Text(c, 9, &l.Home)
	wire.Text(c, 10, &l.First)
	wire.Number(c, 11, &l.Delay)
}

func publishedFields(p *message.Published, c *wire.Codec) {
	wire.Texts(c, 1, &p.Tags)
	wire.Number(c, 2, &p.Priority)
	wire.Text(c, 3, &p.Click)
	wire.Text(c, 4, &p.Actions)
	wire.Text(c, 5, &p.Prefix)
	wire.Text(c, 6, &p.Suffix)
}
