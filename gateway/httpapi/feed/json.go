package feed

import (
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// JSON is a message in the gateway's own format.
type JSON struct {
	Event string `json:"event,omitempty"` // message, open or keepalive in a stream; "" in a list

	ID        string          `json:"id,omitempty"`
	Message   string          `json:"message,omitempty"` // the ID for the results of its deliveries
	Time      *time.Time      `json:"time,omitempty"`
	Expires   *time.Time      `json:"expires,omitempty"`
	Type      notifier.Type   `json:"type,omitempty"`
	Title     string          `json:"title,omitempty"`
	Body      string          `json:"body,omitempty"`
	Format    notifier.Format `json:"format,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
	Incident  string          `json:"incident,omitempty"`
	Source    string          `json:"source,omitempty"`

	Attachments []FileJSON `json:"attachments,omitempty"`
}

// FileJSON is the name of an attachment.
type FileJSON struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
	Size int64  `json:"size"`
}

// NewJSON returns m in the gateway's own format. until is when the inbox drops it.
func NewJSON(m *inbox.Message, until time.Time) JSON {
	at, expires := m.Time.UTC(), until.UTC()
	out := JSON{
		ID: m.Cursor.String(), Message: m.ID, Time: &at, Expires: &expires, Type: m.Type, Title: m.Title, Body: m.Body, Format: m.Format,
		Truncated: m.Cut, Incident: m.Incident, Source: m.Source,
	}
	for _, f := range m.Files {
		out.Attachments = append(out.Attachments, FileJSON(f))
	}
	return out
}
