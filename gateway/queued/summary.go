package queued

import (
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

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

	// At is the place of the key, for finding the receipts of its devices; zero without devices.
	At site.Place

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
}

func chainFields(chain *[][]int, c *wire.Codec) { wire.Records(c, 1, chain, numberFields) }

func numberFields(jobs *[]int, c *wire.Codec) { wire.Numbers(c, 1, jobs) }

// Encode is the inverse of Decode.
func (s *Summary) Encode() []byte { return wire.Append(nil, s, (*Summary).fields) }

// Decode decodes the summary of a message.
func (s *Summary) Decode(b []byte) error { return wire.Decode(b, s, (*Summary).fields) }

// SiteID returns the ID of a stored message's site, or "" if the message is damaged.
func SiteID(m *queue.Message) string {
	var s Summary
	if s.Decode(m.Summary) != nil {
		return ""
	}
	return s.Site
}
