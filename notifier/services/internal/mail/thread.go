package mail

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// ThreadFields are the header fields by which mail programs show the mails of an
// incident as one thread.
var ThreadFields = []string{"In-Reply-To", "References"}

// Thread returns the value of the [ThreadFields] for the mails from sender about
// the incident of m, or "" if it has none. It is the Message-ID of no mail: the
// mails are siblings, because which of them is the first to arrive is unknown
// (RFC 5322, section 3.6.4).
func Thread(m *notifier.Message, sender string) string {
	if m.Incident.ID == "" {
		return ""
	}
	_, domain, _ := strings.Cut(sender, "@")
	return "<" + m.Incident.ID + "@" + domain + ">"
}
