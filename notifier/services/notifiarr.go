package services

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[notifiarr]()

// notifiarr posts to channels of a Discord server through Notifiarr's bot.
type notifiarr struct {
	first, apikey, source string
	channels              []string
	event                 int
	image                 bool

	key string   // API key, set by Finish
	to  []string // IDs of channels, set by Finish
}

func (n *notifiarr) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Notifiarr", "https://notifiarr.wiki/pages/integrations/passthrough/"
	s.Setup = "Copy the global API key of your account at notifiarr.com, not the key of an integration; " +
		"with developer mode on, Discord's menu of a channel has Copy Channel ID."
	s.Groups(notifier.GroupMedia, notifier.GroupChat)
	s.Words("sonarr", "radarr", "lidarr", "plex", "servarr", "starr")
	s.URL("notifiarr://{token}[/{targets...}]")
	// The text is an embed at Discord, in which nobody is mentioned.
	s.Foreign = &notifier.ForeignText{Markdown: true, Title: true}
	s.Secret(&n.first, "token", "API key, or a channel if apikey is set").Match(`\S`).Example("01234567-89ab-cdef-0123-456789abcdef")
	s.Secret(&n.apikey, "apikey", "API key, if the URL begins with a channel").Alias("key")
	s.List(&n.channels, "targets", "IDs of Discord channels, with or without a #").Alias("to").
		Normalize(notifiarrChannel).DropInvalid().Example("123456789")
	s.String(&n.source, "source", "", "name of the system that the message comes from").Alias("from")
	s.Int(&n.event, "event", 0, "ID of the event to update; 0: post a new one").Range(0, 1<<53)
	s.Bool(&n.image, "image", false, "show the icon of the message's type")
}

func notifiarrChannel(text string) (string, error) {
	text = strings.TrimPrefix(text, "#")
	if _, err := strconv.ParseUint(text, 10, 64); err != nil {
		return "", errors.New("is not the ID of a channel")
	}
	return text, nil
}

// Finish decides whether the URL begins with the API key or with a channel.
func (n *notifiarr) Finish(*notifier.Schema) error {
	n.key, n.to = n.first, n.channels
	if n.apikey != "" {
		n.key = n.apikey
		if channel, err := notifiarrChannel(n.first); err == nil && !slices.Contains(n.to, channel) {
			n.to = append([]string{channel}, n.to...)
		}
	}
	if len(n.to) == 0 {
		return errors.New("the URL has no channel; add the ID of one to the path, as in notifiarr://apikey/123456789")
	}
	return nil
}

func (n *notifiarr) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	mentions := m.Body
	if m.Foreign {
		mentions = ""
	}
	content, user, role := notifiarrPing(mentions)
	text := map[string]string{"title": m.Title, "description": m.Body, "content": content, "footer": m.Identity.Description}
	discord := map[string]any{
		"color": m.Type.Color(), "text": text, "ping": map[string]any{"pingUser": user, "pingRole": role},
	}
	if icon := m.Icon(256); n.image && icon != "" {
		text["icon"] = icon
		discord["images"] = map[string]string{"thumbnail": icon}
	}
	event := map[string]any{"name": m.Identity.Name, "update": n.event != 0, "event": ""}
	if n.event != 0 {
		event["event"] = strconv.Itoa(n.event)
	}
	return c.Steps.Each(ctx, n.to, func(ctx context.Context, channel string) error {
		id, err := strconv.ParseUint(channel, 10, 64)
		if err != nil {
			return errors.New("the ID of a channel must be a number")
		}
		d := maps.Clone(discord)
		d["ids"] = map[string]uint64{"channel": id}
		return c.PostJSON(ctx, "https://notifiarr.com/api/v1/notification/apprise", map[string]any{
			"source": cmp.Or(n.source, m.Identity.Name), "type": string(m.Type), "notification": event, "discord": d,
		}, "X-Api-Key", n.key)
	})
}

// notifiarrMention matches <@123>, <@&123> and @here, but not e-mail addresses.
var notifiarrMention = lazyregexp.New(`(?i)(?:^|\W)(?:<?@(&?)(\d+)>?|@([a-z0-9]+))`)

// notifiarrPing returns a line with the mentions in text, and the first user and
// the first role among them, or 0. The line is sent in addition to the text, because
// Discord ignores mentions in the description of an embed.
func notifiarrPing(text string) (line string, user, role any) {
	user, role = 0, 0
	for _, m := range notifiarrMention.FindAllStringSubmatch(text, -1) {
		switch {
		case m[3] != "":
			line += " @" + m[3]
		case m[1] != "":
			line += " <@&" + m[2] + ">"
			if role == 0 {
				role = m[2]
			}
		default:
			line += " <@" + m[2] + ">"
			if user == 0 {
				user = m[2]
			}
		}
	}
	if line != "" {
		line = "👉" + line
	}
	return line, user, role
}
