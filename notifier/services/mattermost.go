package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[mattermost]()

// mattermost posts to a Mattermost server through an incoming webhook or as a
// bot. A bot can also send files.
type mattermost struct {
	notifier.Server
	path    []string
	botname string
	token   string
	targets []string
	team    string
	mode    string
	image   bool
	icon    string

	channels []string // the targets that can be reached
}

func (t *mattermost) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Mattermost", "https://developers.mattermost.com/integrate/webhooks/incoming/"
	s.Setup = "Open Integrations, Incoming Webhooks in Mattermost, add a webhook and copy the " +
		"last part of its URL, or add a bot under Integrations, Bot Accounts, and copy its token."
	s.Groups(notifier.GroupChat)
	s.Words("mostlymatter", "framateam", "slack alternative")
	s.URL("mmost[s]://[{botname}@]{host}[:{port}][/{path...}]/{token}")
	s.Native(
		"https://mattermost.{host...}/hooks/{token}",
		"http://mattermost.{host...}/hooks/{token}",
	)
	s.Hints(
		notifier.Hint{Text: `(?<address>)(?<path>/\S+?)?/hooks/(?<token>[a-z0-9]{26})`, Is: "the address of a webhook"},
		notifier.Hint{Text: `(?<token>[a-z0-9]{26})`, Is: "the token of a bot or of a webhook", Guess: true},
	)
	s.Attachments = true
	s.Limits = markup.Limits{Body: 4000}
	// Webhooks also read Slack's <!channel> and <address|text>.
	s.Foreign = &notifier.ForeignText{Markdown: true, Mentions: chattext.BreakAll}
	s.Server(&t.Server)
	s.String(&t.botname, "botname", "", "name to post under; for a bot, the team of its #channels")
	s.Path(&t.path, "path", "path of Mattermost on the server")
	s.Secret(&t.token, "token", "token of the webhook or of the bot").Example("abcdefghijklmnopqrstuvwxyz")
	s.List(&t.targets, "targets", "channels; for a bot, #channels and IDs of channels").Alias("to", "channel", "channels").
		Match(`^[#+]?[a-z0-9_-]+$`).DropInvalid()
	s.String(&t.team, "team", "", "team of a bot's #channels; implies mode=bot")
	s.Choice(&t.mode, "mode", "", []string{"webhook", "bot"}, "what the token belongs to; default: bot with team, else webhook")
	s.Bool(&t.image, "image", true, "show the icon of the message's type")
	s.String(&t.icon, "icon_url", "", "address of a picture to show instead of that icon")
	s.Param("host").Example("mattermost.example.com")
}

func (t *mattermost) Finish(s *notifier.Schema) error {
	t.channels = t.targets
	if t.team != "" {
		t.mode = cmp.Or(t.mode, "bot")
	}
	s.Attachments = t.mode == "bot"
	if t.mode != "bot" {
		return nil
	}
	t.team = cmp.Or(t.team, t.botname)
	if len(t.targets) == 0 {
		return errors.New("a bot needs a channel; add the ID of one, as in mmosts://mattermost.example.com/token?mode=bot&to=channelid")
	}
	if t.team != "" {
		return nil
	}
	t.channels = slices.DeleteFunc(slices.Clone(t.targets), func(target string) bool { return target[0] == '#' })
	if len(t.channels) == 0 {
		return errors.New("a bot needs the team of a #channel; add it to the URL, as in team=myteam")
	}
	return nil
}

// Warning implements notifier.Warner.
func (t *mattermost) Warning() string {
	if len(t.channels) < len(t.targets) {
		return "a #channel is left out, because a bot needs its team; add it to the URL, as in team=myteam"
	}
	return ""
}

func (t *mattermost) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	targets := t.channels
	if len(targets) == 0 {
		targets = []string{""} // the default channel of the webhook
	}
	return c.Steps.Each(ctx, targets, func(ctx context.Context, target string) error {
		if t.mode == "bot" {
			return t.post(ctx, c, m, target)
		}
		payload := map[string]string{"text": m.Body, "username": cmp.Or(t.botname, m.Identity.Name)}
		if icon := m.Icon(72); t.image && icon != "" {
			payload["icon_url"] = icon
		}
		if t.icon != "" {
			payload["icon_url"] = t.icon
		}
		if target != "" {
			payload["channel"] = strings.TrimLeft(target, "#+")
		}
		return c.PostJSON(ctx, t.address("hooks", t.token), payload)
	})
}

func (t *mattermost) address(segments ...string) string {
	return t.URL(append(append([]string{}, t.path...), segments...)...)
}

// post posts a message as a bot.
// See https://api.mattermost.com/#tag/posts/operation/CreatePost.
func (t *mattermost) post(ctx context.Context, c *notifier.Client, m *notifier.Message, target string) error {
	header := map[string]string{"Authorization": "Bearer " + t.token}
	channel := strings.TrimPrefix(target, "+")
	if name, ok := strings.CutPrefix(target, "#"); ok {
		var err error
		channel, err = notifier.OnceValue(c.Steps, "channel "+name, func() (string, error) {
			var answer struct {
				ID string `json:"id"`
			}
			address := t.address("api", "v4", "teams", "name", t.team, "channels", "name", name)
			err := c.DoJSON(ctx, &notifier.Request{URL: address, Header: header}, &answer)
			if err == nil && answer.ID == "" {
				err = errors.New("Mattermost's answer has no ID of the channel")
			}
			return answer.ID, err
		})
		if err != nil {
			return fmt.Errorf("looking up the channel: %w", err)
		}
	}
	payload := map[string]any{"channel_id": channel, "message": m.Body}
	var files []string
	for i, f := range m.Attachments {
		id, err := notifier.OnceValue(c.Steps, fmt.Sprint("file ", i, " ", channel), func() (string, error) {
			var answer struct {
				Infos []struct {
					ID string `json:"id"`
				} `json:"file_infos"`
			}
			body := notifier.Multipart(notifier.FormPart{Name: "channel_id", Value: channel}, notifier.FormPart{Name: "files", File: f})
			err := c.DoJSON(ctx, &notifier.Request{URL: t.address("api", "v4", "files"), Header: header, Body: body}, &answer)
			if err == nil && (len(answer.Infos) == 0 || answer.Infos[0].ID == "") {
				err = errors.New("Mattermost's answer has no ID of the file")
			}
			if err != nil {
				return "", err
			}
			return answer.Infos[0].ID, nil
		})
		if err != nil {
			return fmt.Errorf("uploading file %d of %d: %w", i+1, len(m.Attachments), err)
		}
		files = append(files, id)
	}
	if len(files) > 0 {
		payload["file_ids"] = files
	}
	_, err := c.Do(ctx, &notifier.Request{URL: t.address("api", "v4", "posts"), Header: header, Body: notifier.JSON(payload)})
	return err
}
