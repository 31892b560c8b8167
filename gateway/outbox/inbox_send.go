package outbox

import (
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// inboxRecord returns the record for a client whose message has no destination besides
// the inbox.
func (s *Submission) inboxRecord() notifier.Record {
	text := "Kept in the inbox of the key " + s.Key + " until " + time.Now().Add(s.Inbox).UTC().Format(time.RFC3339) + "."
	return notifier.Record{Time: time.Now(), Level: notifier.LevelInfo, Text: text}
}
