package queued

import (
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// State is what the next attempt of a delivery needs.
type State struct {
	// Key, Source and Site belong to the message. Incident is the name of its incident.
	Key      string
	Source   string
	Site     string
	Incident string
	// Reported means that events and the history report a failure as part of the message's outcome.
	Reported bool
	// Hash identifies the destination in the configuration.
	Hash string
	// URL is a client's URL, if the destination is not in the configuration.
	URL      string
	Tags     []string
	Progress []byte // see [notifier.Progress]
	// Values are the message's values for the variables in the configured URL (see
	// [notifier.Target]).
	Values []string
	// Text identifies the text of a message to a key, so that an unchanged repeat of a dead message
	// replaces the one before.
	Text []byte
}

func (s *State) fields(c *wire.Codec) {
	wire.Text(c, 1, &s.Key)
	wire.Text(c, 2, &s.Source)
	wire.True(c, 3, &s.Reported)
	wire.Text(c, 4, &s.Hash)
	wire.Text(c, 5, &s.URL)
	wire.Texts(c, 6, &s.Tags)
	wire.Bytes(c, 7, &s.Progress)
	wire.Text(c, 8, &s.Site)
	wire.Text(c, 9, &s.Incident)
	wire.Bytes(c, 10, &s.Text)
	wire.Texts(c, 11, &s.Values)
}

// Planned reports whether the job belongs to a planned message, which has no destination yet.
func (s *State) Planned() bool { return s.Hash == "" && s.URL == "" }

// Encode is the inverse of Decode.
func (s *State) Encode() []byte {
	return wire.Append(make([]byte, 0, 64+len(s.Key)+len(s.Source)+len(s.Hash)+len(s.URL)+32*len(s.Tags)+len(s.Progress)), s, (*State).fields)
}

// Decode decodes the state of a job.
func (s *State) Decode(b []byte) error { return wire.Decode(b, s, (*State).fields) }

// With returns the encoded state with the progress p.
func (s State) With(p *notifier.Progress) []byte {
	if p != nil {
		if b, err := p.MarshalJSON(); err == nil { // without progress, everything is sent again
			s.Progress = b
		}
	}
	return s.Encode()
}
