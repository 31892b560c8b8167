// Package shown lets a chat show each incident in one message that changes.
package shown

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/kept"
)

// Reserve is the room in characters that a service leaves for the history below a
// text. See [notifier.Schema.Limits].
const Reserve = 400

const maxHistory = 10 // lines

// ErrTemplate is returned for a URL with both update=yes and a template.
var ErrTemplate = errors.New("update=yes has no effect on a template; leave one of them out")

// ErrGone is returned by [Chat.Edit] if the message cannot be changed, for example
// because somebody has deleted it.
var ErrGone = errors.New("the message no longer exists")

// Ref identifies a message in a chat.
type Ref struct {
	Channel string `json:",omitempty"` // if the chat does not follow from the target
	ID      string

	// Button means that the message has a button to acknowledge the incident. Tell sets
	// it.
	Button bool `json:",omitempty"`
}

// Chat is one chat of a destination.
type Chat struct {
	// Place is the target of the chat, which distinguishes it from others of the destination.
	Place string

	// Post posts a message.
	Post func(ctx context.Context, m *notifier.Message) (Ref, error)

	// Edit replaces the text of a message.
	Edit func(ctx context.Context, r Ref, m *notifier.Message) error

	// Reply answers a message with a short one, so that phones ring.
	Reply func(ctx context.Context, r Ref, m *notifier.Message) error
}

// Messages are the messages in which a destination shows incidents. They survive a restart.
type Messages struct {
	kept kept.Values[message] // by incident and place
}

// message is the stored state of a message.
type message struct {
	Ref
	History []string
	Type    notifier.Type // of the last state that was not an addition
	Over    bool
	Alerts  string `json:",omitempty"`

	// AcknowledgeURL is the address of the button, which an addition does not change.
	AcknowledgeURL string `json:",omitempty"`
}

// Use reports whether [Messages.Tell] shows m: it has an incident or a thread, and is not a further
// part of a divided message.
func Use(m *notifier.Message) bool { return (m.Incident.ID != "" || m.Thread != "") && m.Part == 0 }

// stateOf returns the state of m's incident. A question is open until its outcome.
func stateOf(m *notifier.Message) notifier.IncidentState {
	switch {
	case m.Incident.ID != "":
		return m.Incident.State
	case m.Asks():
		return notifier.Open
	}
	return notifier.Resolved
}

// Tell shows m in the chat. If a message there shows the incident, it is changed: it gets the text
// of m and a line for each earlier state. If the incident gets worse, for example because an alert
// joins it, or is resolved, a short reply follows. Otherwise m is posted.
func (s *Messages) Tell(ctx context.Context, c *notifier.Client, m *notifier.Message, chat Chat) (Ref, error) {
	state := stateOf(m)
	key := cmp.Or(m.Incident.ID, m.Thread) + " " + chat.Place
	before, known := s.kept.Get(ctx, c, key)
	now := before
	if known && state == notifier.Updated && m.Link.URL == "" {
		c := *m
		c.Link = notifier.Link{Label: notifier.AcknowledgeLabel, URL: before.AcknowledgeURL}
		m = &c
	}
	now.AcknowledgeURL = m.Link.URL
	now.History = history(before.History, m)
	if state == notifier.Open || state == notifier.Resolved {
		now.Type, now.Over, now.Alerts = m.Type, state == notifier.Resolved, m.Incident.Alerts
	}
	if known && !(before.Over && state == notifier.Open) {
		err := c.Steps.Once("change "+chat.Place, func() error { return chat.Edit(ctx, before.Ref, withHistory(m, now.History)) })
		if reply := short(m); err == nil && rings(before, now, m) && reply.Body != "" {
			err = c.Steps.Once("reply "+chat.Place, func() error { return chat.Reply(ctx, before.Ref, reply) })
		}
		if err == nil {
			now.Button = m.Link.URL != ""
			s.kept.Set(ctx, c, key, now)
		}
		if !errors.Is(err, ErrGone) {
			return before.Ref, err
		}
	}
	err := c.Steps.Once("text "+chat.Place, func() (err error) {
		now.Ref, err = chat.Post(ctx, m)
		return err
	})
	if err != nil {
		return Ref{}, err
	}
	// A retry does not post again and gets the message from here.
	if now.Ref, err = notifier.OnceValue(c.Steps, "message in "+chat.Place, func() (Ref, error) { return now.Ref, nil }); err != nil {
		return Ref{}, err
	}
	now.History = history(nil, m)
	now.Button = m.Link.URL != ""
	if now.ID != "" {
		s.kept.Set(ctx, c, key, now)
	}
	return now.Ref, nil
}

// rings reports whether people should notice the change that m reports.
func rings(before, now message, m *notifier.Message) bool {
	return now.Over && !before.Over || now.Type == notifier.Failure && before.Type != notifier.Failure ||
		m.Incident.Joined(before.Alerts)
}

// history returns the lines of the history with one for the state of m.
func history(lines []string, m *notifier.Message) []string {
	word := string(m.Incident.State)
	switch {
	case m.Asks():
		word = "asked"
	case m.Incident.ID == "":
		word = "decided"
	case m.Incident.State == notifier.Open:
		word = string(m.Type)
	}
	lines = append(slices.Clone(lines), m.Time.Format("2 Jan 15:04 ")+word)
	if len(lines) > maxHistory {
		lines = slices.Concat(lines[:1], []string{"…"}, lines[len(lines)-maxHistory+2:])
	}
	return lines
}

// withHistory returns m with lines below its text.
func withHistory(m *notifier.Message, lines []string) *notifier.Message {
	out := *m
	gap, end := "\n\n", "\n"
	switch m.Format {
	case notifier.Markdown:
		end = "  \n"
	case notifier.HTML:
		gap, end = "<br><br>", "<br>"
	}
	out.Body += gap + strings.Join(lines, end)
	return &out
}

// short returns the title of m, or the first line of its text if it has none. For the outcome of
// a question it returns the outcome, because the title is the question's.
func short(m *notifier.Message) *notifier.Message {
	out := *m
	out.Attachments = nil
	if m.Incident.ID == "" {
		out.Title = ""
		return &out
	}
	out.Title, out.Body, out.Source = "", m.Title, notifier.Text // a title is plain
	if out.Body == "" {
		out.Source = m.Source
		out.Body, _, _ = strings.Cut(strings.TrimLeft(m.Body, "\r\n"), "\n")
		out.Body, _, _ = strings.Cut(out.Body, "<br")
		out.Body = strings.TrimSpace(out.Body)
	}
	return &out
}
