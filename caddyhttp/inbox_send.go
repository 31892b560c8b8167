package caddyhttp

import (
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// keeps reports whether the key keeps the message readable. It does not keep what repeats
// messages that it has: the digest of a rule and a further step of an escalation; and not
// what tests a destination.
func (d *delivery) keeps() bool {
	switch d.source {
	case site.SourceDigest, site.SourceTest:
		return false
	case site.SourceEscalation:
		return d.inbox > 0 && d.by != ""
	}
	return d.inbox > 0
}

// inboxRecord returns the record for a client whose message has no destination besides
// the inbox.
func (s *queuedSend) inboxRecord() notifier.Record {
	text := "Kept in the inbox of the key " + s.key + " until " + time.Now().Add(s.inbox).UTC().Format(time.RFC3339) + "."
	return notifier.Record{Time: time.Now(), Level: notifier.LevelInfo, Text: text}
}
