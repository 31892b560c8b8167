package api

import "github.com/caddy-notify/caddy-notify/notifier"

// urls returns the notification URLs of the request. l may be nil.
func (c *content) urls(l *notifier.Limits) ([]string, error) {
	items, err := c.fields[fieldURLs].items(fieldURLs, false)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, i := range items {
		out = append(out, notifier.SplitURLs(i.text)...)
		// A URL is at least one delivery.
		if l != nil && len(out) > l.Deliveries {
			return nil, badField(fieldURLs, "the field urls has more than %d URLs (client_limits deliveries)", l.Deliveries)
		}
	}
	return out, nil
}

// HasURLs reports whether the request has notification URLs.
func (q *Request) HasURLs() (bool, error) {
	urls, err := q.content.urls(q.limits.Client)
	return len(urls) > 0, err
}
