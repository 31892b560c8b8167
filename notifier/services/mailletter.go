package services

import (
	"context"
	"maps"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// letter is a message to some of the targets.
type letter struct{ to, cc, bcc []emailAddress }

// each calls send for so many targets at a time. Nobody gets one letter twice.
func (m *mailAPI) each(ctx context.Context, c *notifier.Client, atOnce int, send func(context.Context, letter) error) error {
	batches, keys := map[string][]string{}, []string{}
	for batch := range slices.Chunk(m.to, atOnce) {
		batches[batch[0]] = batch
		keys = append(keys, batch[0])
	}
	return c.Each(ctx, keys, func(ctx context.Context, key string) error {
		l := letter{to: mailboxes(batches[key])}
		l.bcc = mailWithout(mailboxes(m.bcc), l.to)
		l.cc = mailWithout(mailWithout(mailboxes(m.cc), mailboxes(m.bcc)), l.to)
		return send(ctx, l)
	})
}

// mailWithout is list without those that are among others, and without doubles.
func mailWithout(list, others []emailAddress) (out []emailAddress) {
	for _, b := range list {
		same := func(o emailAddress) bool { return o.address == b.address }
		if !slices.ContainsFunc(others, same) && !slices.ContainsFunc(out, same) {
			out = append(out, b)
		}
	}
	return out
}

// mailAddresses are the mailboxes without their names.
func mailAddresses(list []emailAddress) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = b.address
	}
	return out
}

// mailHeaders are the mailboxes as header fields want them.
func mailHeaders(list []emailAddress) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = b.header()
	}
	return out
}

// mailEmails are the mailboxes as most providers want them in JSON, without names.
func mailEmails(list []emailAddress) []map[string]string {
	out := make([]map[string]string, len(list))
	for i, b := range list {
		out[i] = map[string]string{"email": b.address}
	}
	return out
}

// emails is the payload with the recipients added to it under the names that
// the provider has for them, each as an object with an address.
func (l letter) emails(payload map[string]any, to, cc, bcc string) map[string]any {
	out := maps.Clone(payload)
	for name, list := range map[string][]emailAddress{to: l.to, cc: l.cc, bcc: l.bcc} {
		if len(list) > 0 {
			out[name] = mailEmails(list)
		}
	}
	return out
}
