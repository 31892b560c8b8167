package services

import (
	"context"
	"errors"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[line]()

// line sends to users, groups and rooms of LINE as a bot.
type line struct {
	token   string
	targets []string
	image   bool
}

func (l *line) Describe(s *notifier.Schema) {
	s.Name, s.Site = "LINE", "https://developers.line.biz/en/reference/messaging-api/#send-push-message"
	s.Setup = "Enable the Messaging API for a LINE Official Account; the LINE Developers Console then " +
		"issues a channel access token under Messaging API and shows Your user ID under Basic settings."
	s.Groups(notifier.GroupChat, notifier.GroupPhone, notifier.GroupRegional)
	s.Words("line messenger", "line notify", "japan", "taiwan", "thailand")
	s.URL("line://{token}/{targets...}")
	s.Hints(
		notifier.Hint{Text: `(?<token>[A-Za-z0-9+/]{150,}=)`, Is: "a channel access token", Guess: true},
	)
	s.Limits = markup.Limits{Body: 5000}
	s.Secret(&l.token, "token", "channel access token").Example("AbCdEf0123456789GhIjKlMnOpQrStUv")
	// A token may contain slashes, so the path may begin with parts of the
	// token. A list would drop a part that occurs twice.
	s.Path(&l.targets, "targets", "IDs of users, groups and rooms").Alias("to").Example("U0123456789abcdef0123456789abcdef")
	s.Bool(&l.image, "image", true, "show the icon of the message's type")
}

// Finish moves the first segments of the path to the token, up to one that ends
// in an equals sign.
func (l *line) Finish(s *notifier.Schema) error {
	if !strings.HasSuffix(l.token, "=") {
		for i, segment := range l.targets {
			if strings.HasSuffix(segment, "=") {
				l.token += "/" + strings.Join(l.targets[:i+1], "/")
				l.targets = l.targets[i+1:]
				break
			}
		}
	}
	l.targets = strings.FieldsFunc(strings.Join(l.targets, ","), func(r rune) bool { return strings.ContainsRune(", \t\r\n#/\\", r) })
	if s.Recipients = len(l.targets); s.Recipients == 0 {
		return errors.New("the URL has no targets; add the ID of a user, group or room to the path")
	}
	return nil
}

func (l *line) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	sender := map[string]string{"name": m.Identity.Name}
	if icon := m.Icon(128); icon != "" && l.image {
		sender["iconUrl"] = icon
	}
	messages := []any{map[string]any{"type": "text", "text": m.Body, "sender": sender}}
	return c.Steps.Each(ctx, l.targets, func(ctx context.Context, target string) error {
		return c.PostJSON(ctx, "https://api.line.me/v2/bot/message/push",
			map[string]any{"to": target, "messages": messages}, "Authorization", "Bearer "+l.token)
	})
}
