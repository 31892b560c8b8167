package services

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[goalert]()

// goalert opens and closes alerts at a self-hosted GoAlert.
type goalert struct {
	notifier.Server
	segments, more []string // the path of the URL, and keys of its query
	action, dedup  string
	meta           map[string]string

	path, keys []string // from segments and more
}

const (
	goalertClose   = "close"
	goalertMap     = "map"
	goalertTrigger = "trigger"

	goalertSummary = 1024 // max characters of a summary

	goalertKeyForm = `(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`
)

var goalertKey = lazyregexp.New(goalertKeyForm)

func (g *goalert) Describe(s *notifier.Schema) {
	s.Name, s.Site = "GoAlert", "https://goalert.me/api/v2/generic/"
	s.Setup = "In GoAlert open the service, Integration Keys, create a Generic API key and copy the token in its address."
	s.Groups(notifier.GroupIncident)
	s.Words("self-hosted pager")
	s.URL("goalert[s]://{host}[:{port}][/{targets...}]")
	s.Hints(
		notifier.Hint{Text: `(?<address>)/api/v2/generic/incoming\?token=(?<targets>[0-9a-fA-F-]{36})`, Is: "the address of an integration key"},
	)
	s.Format, s.Limits = notifier.Markdown, markup.Limits{Title: goalertSummary, Body: 6144}
	s.Foreign = &notifier.ForeignText{Escape: chattext.AsIs} // Send escapes
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.Server(&g.Server)
	s.Param("host").Example("goalert.example.com")
	s.Path(&g.segments, "targets", "path of GoAlert on the server, if it has one, and integration keys").
		SecretPart(goalertMask).Normalize(goalertSegment).Example("3c1d2a54-8f0b-4a3e-9d6c-5b7e1f2a8c90")
	s.List(&g.more, "to", "more integration keys").Alias("token").Match(goalertKeyForm).SecretPart(goalertMask).
		Normalize(goalertSegment).DropInvalid().Example("9f8e7d6c-5b4a-4392-8170-6f5e4d3c2b1a")
	s.Choice(&g.action, "action", goalertMap, []string{goalertMap, goalertTrigger, goalertClose},
		"map: a success closes the alert and all else opens it")
	s.String(&g.dedup, "dedup", "", "name of the alert, by which it is closed; default: by the incident")
	s.Map(&g.meta, "+", "meta", "metadata of the alert").Example("env=prod")
}

// goalertSegment returns a key in lower case, as it is sent, so that errors mask it, and
// any other part of the path as it is.
func goalertSegment(segment string) (string, error) {
	if goalertKey.MatchString(segment) {
		return strings.ToLower(segment), nil
	}
	return segment, nil
}

// goalertMask returns a part of the path, or a key as a secret.
func goalertMask(segment string) (public, secret string) {
	if goalertKey.MatchString(segment) {
		return "", segment
	}
	return segment, ""
}

// Finish divides the path into the keys and the path of GoAlert.
func (g *goalert) Finish(s *notifier.Schema) error {
	for _, segment := range append(slices.Clone(g.segments), g.more...) {
		switch {
		case !goalertKey.MatchString(segment):
			g.path = append(g.path, segment)
		case !slices.Contains(g.keys, segment):
			g.keys = append(g.keys, segment)
		}
	}
	s.Recipients = len(g.keys)
	if len(g.keys) == 0 {
		return errors.New("the URL has no integration key; copy one from the integration keys of the service")
	}
	return nil
}

func (g *goalert) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	details := m.Body
	if m.Format == notifier.Markdown && m.Source == notifier.Text {
		details = goalertEscape(details)
	}
	payload := map[string]any{"summary": alertSummary(m, goalertSummary), "details": details}
	if dedup := cmp.Or(g.dedup, m.Incident.ID); dedup != "" {
		payload["dedup"] = dedup
	}
	if g.closes(m) {
		payload["action"] = goalertClose
	}
	if len(g.meta) > 0 {
		payload["meta"] = g.meta
	}
	address := g.URL(append(slices.Clone(g.path), "api", "v2", "generic", "incoming")...)
	return c.Steps.Each(ctx, g.keys, func(ctx context.Context, key string) error {
		_, err := c.Do(ctx, &notifier.Request{
			URL: address, Header: map[string]string{"Authorization": "Bearer " + key}, Body: notifier.JSON(payload),
			Accept: func(code int) bool {
				return code == http.StatusOK || code == http.StatusCreated || code == http.StatusAccepted || code == http.StatusNoContent
			},
		})
		return err
	})
}

var (
	goalertAddress = lazyregexp.New(`https?://[\w./:?#@!$&'()+,;=%~-]+`)
	goalertMarkup  = lazyregexp.New("[\\\\`*_{}\\[\\]()#+!|~>-]")
)

// goalertEscape returns a plain text as Markdown that shows it. Addresses stay as they
// are, so that they are links.
func goalertEscape(text string) string {
	var b strings.Builder
	last := 0
	for _, at := range goalertAddress.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(goalertMarkup.ReplaceAllString(text[last:at[0]], `\$0`) + text[at[0]:at[1]])
		last = at[1]
	}
	b.WriteString(goalertMarkup.ReplaceAllString(text[last:], `\$0`))
	return b.String()
}

// closes reports whether a message closes the alert.
func (g *goalert) closes(m *notifier.Message) bool {
	switch {
	case g.action != goalertMap:
		return g.action == goalertClose
	case m.Incident.ID != "":
		return m.Incident.State == notifier.Resolved
	}
	return m.Type == notifier.Success
}
