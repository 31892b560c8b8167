package queued

import (
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/internal/wire"
)

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
