package console

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// maxNowFailures is how many failures that no success has followed the page lists.
const maxNowFailures = 10

// setFailures sets the failures that no success has followed.
func (h *nowPage) setFailures(r *http.Request, p *view.NowPage, s *situation) {
	p.MoreFailures = max(len(s.failures)-maxNowFailures, 0)
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	for _, x := range s.failures[:len(s.failures)-p.MoreFailures] {
		m := view.ListedMessage{Time: x.Failed, Key: x.Key, Source: x.Source, Incident: x.Incident, Type: string(notifier.Failure)}
		if x.ID != (uuid.UUID{}) {
			m.ID, m.Address = x.ID.String(), httpapi.AddressOf(r, httpapi.RouteConsoleMessages)+"/"+x.ID.String()
		}
		if x.Key != "" {
			m.KeyAddress = httpapi.ConsoleKey(r, x.Key)
		}
		p.Failures = append(p.Failures, m)
	}
	if h.messages.titles(r).set(ctx, p.Failures) != nil {
		p.Problem = httpapi.ErrQueueUnread
	}
}
