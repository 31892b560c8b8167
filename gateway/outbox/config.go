package outbox

import (
	"crypto/sha256"
	"time"
)

// Settings are the settings of a queue, with placeholders replaced and
// defaults set.
type Settings struct {
	Name    string // identifies the queue in the process
	Path    string // "" for Postgres
	DSN     string
	Secret  string // "" for the key file
	MaxAge  time.Duration
	MaxSize int64
	Wait    time.Duration
	Keep    time.Duration

	Watchdog *Watchdog // nil for none
	Punctual bool      // there are devices, whose receipts are waited for
	NoSync   bool      // as in [bolt.Options], for tests
}

// LogName returns the name of the queue for logs, without a password.
func (s *Settings) LogName() string {
	if s.DSN != "" {
		return "postgres"
	}
	return s.Path
}

// SecretHash returns a hash of the secret, for the comparison of settings.
func (s *Settings) SecretHash() [sha256.Size]byte { return sha256.Sum256([]byte(s.Secret)) }
