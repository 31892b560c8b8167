package console

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/silence"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// maxReachedIncidents bounds how many incidents in each stage are compared with a silence.
const maxReachedIncidents = 1000

// offer returns what the page offers to silence, with what that matches now, or nil if the form names
// nothing.
func (h *silencePages) offer(r *http.Request, f *view.SilenceForm, q *gateway.Rooms) *view.SilenceOffer {
	if f.Key == "" || !f.Given() {
		return nil
	}
	refused := func(err error) *view.SilenceOffer {
		e, _ := api.ErrorOf(httpapi.Answer(h.Advise(r, err)))
		return &view.SilenceOffer{Problem: upperFirst(e.Error())}
	}
	k, silences, err := h.api.Silences.Of(r.Context(), f.Key)
	if err != nil {
		return refused(err)
	}
	request := silence.Request{For: "1h", Incident: f.Incident, Tag: f.Tag, Title: f.Title}
	s, err := request.Silence(environment.User(r), silences.Now(), h.ParseDuration)
	if err == nil {
		err = silences.Check(k, &s)
	}
	if err != nil {
		return refused(err)
	}
	f.Title, f.Tag = s.Title, s.Tag
	o := &view.SilenceOffer{Ends: silenceEnds(silences.Now(), s.Incident)}
	if s.Tag != "" && !strings.EqualFold(s.Tag, rules.AllTags) {
		for _, t := range taggedTargets(k, s.Tag) {
			o.Reach = append(o.Reach, t.Name())
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), outbox.AdminTimeout)
	defer cancel()
	if o.Matches, err = h.matches(ctx, r, k, &s, q); err != nil {
		return refused(err)
	}
	return o
}

// silenceEnds returns when a silence can end with one click: in an hour, at eight in the morning or,
// for an incident, when it is resolved.
func silenceEnds(now time.Time, incident string) []view.Choice {
	morning := view.Choice{Value: "08:00", Label: "Until 8:00"}
	if now.Local().Hour() >= 8 { //nolint:gosmopolitan // its users live in the server's zone
		morning.Label += " tomorrow"
	}
	ends := []view.Choice{{Value: "1h", Label: "1 hour"}, morning}
	if incident != "" {
		ends = append(ends, view.Choice{Value: silence.UntilResolved, Label: "Until it is resolved"})
	}
	return ends
}

// matches returns in words what a silence of a key would match now.
func (h *silencePages) matches(ctx context.Context, r *http.Request, k *site.Key, s *rules.Silence, q *gateway.Rooms) (string, error) {
	var parts []string
	incidents := 0
	if !k.Rules.Empty() {
		var err error
		if incidents, err = q.Alerts.Incidents.Reached(ctx, k, h.Site(), s, maxReachedIncidents); err != nil {
			return "", err
		}
		parts = append(parts, view.Count(incidents, "open incident", "open incidents"))
	}
	c := messageCount{since: q.Outbox.Queue.Now().Add(-24 * time.Hour), silence: s}
	if err := c.count(ctx, h, r, k, q); err != nil {
		return "", err
	}
	messages := view.Count(c.matched, "message", "messages") + " of the last day"
	if c.cut {
		messages = "at least " + messages
	}
	if incidents+c.matched+c.untitled == 0 {
		return "nothing now", nil
	}
	if parts = append(parts, messages); c.untitled > 0 {
		parts = append(parts, "and maybe some of "+view.Count(c.untitled, "message whose title is", "messages whose titles are")+" not kept")
	}
	return strings.Join(parts, ", "), nil
}

// messageCount counts the messages of a key that a silence would match.
type messageCount struct {
	since   time.Time
	silence *rules.Silence

	matched  int
	untitled int  // they may match, but nothing keeps their titles
	cut      bool // older messages were not searched
}

// count counts the messages in the queue.
func (c *messageCount) count(ctx context.Context, h *silencePages, r *http.Request, k *site.Key, q *gateway.Rooms) error {
	titles, before := h.messages.titles(r), uuid.UUID{}
	for n := 0; ; n += messagesPerRead {
		if c.cut = n >= maxMessageScan; c.cut {
			return nil
		}
		entries, next, err := q.Outbox.Messages().Page(ctx, before, messagesPerRead)
		if err != nil {
			return err
		}
		var fitting []view.ListedMessage
		for _, e := range entries {
			if e.Message.Created.Before(c.since) {
				next = uuid.UUID{}
			} else if m, ok := c.fits(e, h.Site(), k.Name); ok {
				fitting = append(fitting, m)
			}
		}
		if c.silence.Title != "" {
			if err := titles.set(ctx, fitting); err != nil {
				return err
			}
		}
		for i := range fitting {
			switch m := &fitting[i]; {
			case c.silence.Title != "" && m.Title == "" && !m.Kept:
				c.untitled++
			case c.silence.Matches(notifier.Incident{Name: m.Incident}, m.Title, []string{c.silence.Tag}):
				c.matched++
			}
		}
		if before = next; next == (uuid.UUID{}) {
			return nil
		}
	}
}

// fits returns a message of the queue if it came to the key, and the silence would match it apart from
// its title.
func (c *messageCount) fits(e *queue.Entry, siteID, key string) (m view.ListedMessage, ok bool) {
	var s queued.Summary
	if s.Decode(e.Message.Summary) != nil || s.Site != siteID || s.Key != key || s.Source == site.SourceTest || outbox.IsPlanned(e) {
		return m, false
	}
	if c.silence.Incident != "" && c.silence.Incident != s.Incident {
		return m, false
	}
	stored := queued.Message(e)
	if c.silence.Tag != "" {
		ok := slices.ContainsFunc(stored.Results, func(r message.QueuedResult) bool { return c.silence.Concerns(r.Tags) })
		if !ok {
			return m, false
		}
	}
	return view.ListedMessage{ID: stored.ID, Key: s.Key, Time: stored.Created, Incident: s.Incident}, true
}
