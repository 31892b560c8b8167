package console

import (
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/console/week"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// maxKeyIncidents is how many rows of open incidents the page of a key has.
const maxKeyIncidents = 5

// setOpen sets the open incidents of a key, and its silences. Only keys that can be silenced have
// them on their page.
func (h *keyPages) setOpen(r *http.Request, p *view.KeyPage, k *site.Key) {
	if p.Silence == "" {
		return
	}
	q, err := h.App.Open(nil)
	if err != nil || q == nil {
		return // the queue's part of the page says that it cannot be read
	}
	if !k.Rules.Empty() {
		p.Week = week.Of(r, h.Base, &alerting.IncidentQuery{Key: k.Name})
	}
	by := alerting.IncidentQuery{Key: k.Name, Stage: notifier.Open, Limit: maxKeyIncidents, Fold: true}
	rows, next, err := h.api.Incidents.SiteRows(r.Context(), &by)
	if err != nil {
		return
	}
	all := httpapi.AddressOf(r, httpapi.RouteConsoleIncidents)
	incidents := &incidentPages{h.shared}
	for i := range rows {
		p.Incidents = append(p.Incidents, incidents.incidentRows(r, &rows[i], time.Now(), all))
	}
	by.Limit = alerting.DefaultIncidents
	if p.AllIncidents = by.Address(all, alerting.IncidentCursor{}); next != (alerting.IncidentCursor{}) {
		p.MoreIncidents = true
	}
	silences, err := q.Alerts.Silences.List(r.Context(), k.Place(h.Site()).String(), k.SilenceWindows())
	if err != nil {
		return
	}
	now := q.Outbox.Queue.Now()
	for i := range silences {
		s := &silences[i]
		x := view.KeySilence{Of: silencedWords(s), Until: s.Until, Reason: s.Reason, Who: s.Who}
		if s.Planned(now) {
			x.From = s.From
		}
		p.Silences = append(p.Silences, x)
	}
	p.AllSilences = silencesPage(r)
}

// silencedWords says what a silence of a key matches.
func silencedWords(s *rules.Silence) string {
	var words []string
	if s.Window != (uuid.UUID{}) {
		words = append(words, "in the configuration")
	}
	switch {
	case strings.EqualFold(s.Tag, rules.AllTags):
		words = append(words, "all destinations")
	case s.Tag != "":
		words = append(words, "destinations with the tag "+s.Tag)
	}
	if s.Title != "" {
		words = append(words, "titles like “"+s.Title+"”")
	}
	if s.Incident != "" {
		words = append(words, "the incident “"+s.Incident+"”")
	}
	return strings.Join(words, ", ")
}
