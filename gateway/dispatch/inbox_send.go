package dispatch

import "github.com/caddy-notify/caddy-notify/gateway/site"

// Keeps reports whether the key keeps the message readable. It does not keep what repeats
// messages that it has: the digest of a rule and a further step of an escalation; and not
// what tests a destination.
func (d *Delivery) Keeps() bool {
	switch d.Source {
	case site.SourceDigest, site.SourceTest:
		return false
	case site.SourceEscalation:
		return d.Inbox > 0 && d.By != ""
	}
	return d.Inbox > 0
}
