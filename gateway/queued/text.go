package queued

import (
	"fmt"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

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
	out := &notifier.Message{Title: t.Title, Body: t.Body, Type: t.Type, Format: t.Format, Time: t.Time, Hops: t.Hops, Incident: t.Incident, Foreign: t.Foreign, Dialect: t.Dialect, Thread: t.Thread}
	for i, f := range t.Files {
		out.Attachments = append(out.Attachments, notifier.NewAttachmentAt(f.Name, f.ContentType, m.Files[i].Size, nil, m.Files[i]))
	}
	return out, nil
}
