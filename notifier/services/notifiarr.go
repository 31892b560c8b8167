package services

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[notifiarr]()

// notifiarr has Notifiarr's bot post to channels of a Discord server.
type notifiarr struct {
	first, apikey, source string
	channels              []string
	event                 int
	image                 bool

	key string   // what Finish takes for the API key
	to  []string // and for the channels
}

func (n *notifiarr) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Notifiarr", "https://notifiarr.wiki/pages/integrations/passthrough/"
	s.URL("notifiarr://{token}[/{targets...}]")
	s.Secret(&n.first, "token", "API key, or a channel where apikey is given").Match(`\S`).Example("01234567-89ab-cdef-0123-456789abcdef")
	s.Secret(&n.apikey, "apikey", "API key, if it does not stand first").Alias("key")
	s.List(&n.channels, "targets", "numbers of the Discord channels, with or without a #").Alias("to").
		Normalize(notifiarrChannel).DropInvalid().Example("123456789")
	s.String(&n.source, "source", "", "name of the system that the message comes from").Alias("from")
	s.Int(&n.event, "event", 0, "number of the event to update instead of posting anew").Range(0, 1<<53)
	s.Bool(&n.image, "image", false, "show the picture for the message's type")
}

func notifiarrChannel(text string) (string, error) {
	text = strings.TrimPrefix(text, "#")
	if _, err := strconv.ParseUint(text, 10, 64); err != nil {
		return "", errors.New("is not the number of a channel")
	}
	return text, nil
}

// Finish finds out what stands first.
func (n *notifiarr) Finish(*notifier.Schema) error {
	n.key, n.to = n.first, n.channels
	if n.apikey != "" {
		n.key = n.apikey
		if channel, err := notifiarrChannel(n.first); err == nil && !slices.Contains(n.to, channel) {
			n.to = append([]string{channel}, n.to...)
		}
	}
	if len(n.to) == 0 {
		return errors.New("no channel to post to; write the number of one behind the API key, as in notifiarr://apikey/123456789")
	}
	return nil
}

func (n *notifiarr) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	content, user, role := notifiarrPing(m.Body)
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
			return errors.New("a channel is no number")
		}
		d := maps.Clone(discord)
		d["ids"] = map[string]uint64{"channel": id}
		return c.PostJSON(ctx, "https://notifiarr.com/api/v1/notification/apprise", map[string]any{
			"source": cmp.Or(n.source, m.Identity.Name), "type": string(m.Type), "notification": event, "discord": d,
		}, "X-Api-Key", n.key)
	})
}

// notifiarrMention finds <@123>, <@&123> and @here, but no e-mail address.
var notifiarrMention = regexp.MustCompile(`(?i)(?:^|\W)(?:<?@(&?)(\d+)>?|@([a-z0-9]+))`)

// notifiarrPing is a line with the mentions in a text, since those within the
// description alert nobody, and the first user and role among them; 0 stands
// for none.
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
