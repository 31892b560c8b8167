package services

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[homeAssistant]()

// homeAssistant calls services of Home Assistant, or shows the message on its
// dashboard.
type homeAssistant struct {
	notifier.Server
	token, id, prefix string
	batch             bool
	targets           []string
	services          []hassService
}

// hassBatch is the maximum number of targets in one request.
const hassBatch = 10

func (h *homeAssistant) Describe(s *notifier.Schema) {
	s.Name, s.Site = "HomeAssistant", "https://developers.home-assistant.io/docs/api/rest/"
	s.Setup = "Create a long-lived access token on the Security tab of your profile in Home Assistant; " +
		"targets are names of its notify services, for example mobile_app_phone."
	s.Groups(notifier.GroupHome, notifier.GroupPhone)
	s.Words("home", "hass", "hassio app", "nabu casa", "smart home")
	s.URL("hassio[s]://[{user}[:{password}]@]{host}[:{port}]/{accesstoken}[/{targets...}]")
	s.Hints(
		notifier.Hint{Text: `(?<accesstoken>eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+)`, Is: "a long-lived access token", Guess: true},
		notifier.Hint{Text: `(?<address>(?i:https?)://[^/?#\s]+:8123)(?:/\S*)?`, Is: "the address of a server"},
		notifier.Hint{
			Text: `(?<address>(?i:https?)://(?i:homeassistant|hass|hassio|home-assistant)\.[^/?#\s]+)(?:/\S*)?`,
			Is:   "the address of a server",
		},
		notifier.Hint{Text: `(?<address>https://[^/?#\s]+\.ui\.nabu\.casa)(?:/\S*)?`, Is: "the address of a server at Nabu Casa"},
		notifier.Hint{Text: `(?<targets>mobile_app_\w+)`, Is: "the name of a phone"},
	)
	s.Server(&h.Server)
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	// The dashboard shows Markdown, the other services mostly plain text.
	s.Foreign = &notifier.ForeignText{Escape: chattext.AsIs, Mentions: chattext.BreakMarkup}
	s.Secret(&h.token, "accesstoken", "long-lived access token").Alias("token").
		Match(`^[^\s/]+$`).Example("eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJub3RpZnkifQ.c2lnbmF0dXJl")
	s.List(&h.targets, "targets", "[domain.]service[:target,…]; default: the dashboard").Alias("to").Split(notifier.Unsplit).
		Normalize(hassTarget).Example("mobile_app_phone")
	s.String(&h.id, "nid", "", "ID of the message on the dashboard; it replaces one with the same ID").Match(`^[a-z0-9_-]+$`)
	s.Bool(&h.batch, "batch", false, "notify up to 10 targets of a service in one request")
	s.String(&h.prefix, "prefix", "", "path of Home Assistant on the server")
	s.Param("host").Example("homeassistant.local")
}

// Finish finds the token among the targets, for URLs with services before the token.
func (h *homeAssistant) Finish(s *notifier.Schema) error {
	if !hassToken.MatchString(h.token) {
		if i := slices.IndexFunc(h.targets, hassToken.MatchString); i >= 0 {
			h.token, h.targets[i] = h.targets[i], h.token
		}
	}
	phones := len(h.targets) > 0
	for _, text := range h.targets {
		services := hassServices(text)
		if services == nil {
			return errors.New("there must be one access token, and each target must be written [domain.]service[:target]")
		}
		h.services = append(h.services, services...)
	}
	for _, x := range h.services {
		phones = phones && strings.HasPrefix(x.domain+"/"+x.name, hassApp)
	}
	if phones {
		s.Acknowledge = notifier.AcknowledgeByButton
	}
	if h.Port == 0 && !h.Secure {
		h.Port = 8123
	}
	return nil
}

// hassApp is the beginning of the names of the services for phones.
const hassApp = "notify/mobile_app_"

// hassActions is how many actions the apps show on every phone.
const hassActions = 3

// hassData returns the data for the app of a phone.
func hassData(m *notifier.Message) map[string]any {
	data := map[string]any{}
	if id := m.NotificationID(); id != "" {
		data["tag"] = id // the app replaces the notification with this tag
	}
	if m.Link.URL != "" {
		// See https://companion.home-assistant.io/docs/notifications/actionable-notifications.
		var actions []map[string]string
		for _, l := range m.Buttons(hassActions) {
			actions = append(actions, map[string]string{"action": "URI", "title": l.Label, "uri": l.URL})
		}
		data["actions"] = actions
	}
	return data
}

func (h *homeAssistant) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	payload := map[string]any{"title": m.Title, "message": m.Body}
	if len(h.services) == 0 {
		payload["notification_id"] = cmp.Or(h.id, m.NotificationID())
		if payload["notification_id"] == "" {
			// A retry uses the same ID, so that it does not add a second message.
			payload["notification_id"], _ = notifier.OnceValue(c.Steps, "id", func() (string, error) { return uuid.NewString(), nil })
		}
		return h.call(ctx, c, payload, "persistent_notification/create")
	}
	size := 1
	if h.batch {
		size = hassBatch
	}
	var calls []string
	for _, s := range h.services {
		path := s.domain + "/" + s.name
		if len(s.targets) == 0 {
			calls = append(calls, path)
		}
		for batch := range slices.Chunk(s.targets, size) {
			calls = append(calls, path+":"+strings.Join(batch, ","))
		}
	}
	return c.Steps.Each(ctx, calls, func(ctx context.Context, call string) error {
		p := maps.Clone(payload)
		path, targets, found := strings.Cut(call, ":")
		if strings.HasPrefix(path, hassApp) {
			if data := hassData(m); len(data) > 0 {
				p["data"] = data
			}
		}
		if found {
			p["target"] = strings.Split(targets, ",")
		}
		return h.call(ctx, c, p, path)
	})
}

// call calls a service, which is written domain/name.
func (h *homeAssistant) call(ctx context.Context, c *notifier.Client, payload any, service string) error {
	q := &notifier.Request{
		URL:   h.URL() + notifier.Path(strings.Split(h.prefix, "/")...) + "/api/services/" + service,
		Login: &h.Server,
		Body:  notifier.JSON(payload),
	}
	if h.User == "" {
		q.Header = map[string]string{"Authorization": "Bearer " + h.token}
	}
	_, err := c.Do(ctx, q)
	return err
}
