package services

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[fluxer]()

// fluxer posts to a channel of fluxer.app or of a self-hosted Fluxer server. Its webhooks are
// similar to Discord's.
type fluxer struct {
	notifier.Server
	discordHook
	mode       string
	threadName string
}

func (f *fluxer) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Fluxer", "https://docs.fluxer.app/resources/webhooks"
	s.Setup = "Create a webhook for the channel in Fluxer and copy its URL, whose last two parts are webhook_id and webhook_token."
	s.Groups(notifier.GroupChat)
	s.Words("discord alternative")
	s.URL(
		"fluxer[s]://[{botname}@]{host}[:{port}]/{webhook_id}/{webhook_token}",
		"fluxer[s]://[{botname}@]{webhook_id}/{webhook_token}",
	)
	s.Way(2, "with a webhook of fluxer.app")
	s.Way(1, "with a webhook of a server of your own")
	s.Native(
		"https://api.fluxer.app/webhooks/{webhook_id}/{webhook_token}",
		"https://api.fluxer.app/v1/webhooks/{webhook_id}/{webhook_token}",
	)
	s.Server(&f.Server)
	f.describe(s)
	s.Choice(&f.mode, "mode", "", []string{"cloud", "private"}, "post to fluxer.app or to the host; default: to the host if there is one")
	s.String(&f.threadName, "thread_name", "", "name of a thread to create with the message")
	s.Param("host").Example("fluxer.example.com")
}

func (f *fluxer) Finish(s *notifier.Schema) error {
	if strings.Contains(strings.ToLower(f.Host), "fluxer.app") {
		f.mode = "cloud"
	}
	if cmp.Or(f.mode, "cloud") == "private" && f.Host == "" {
		return errors.New("mode private needs a host, as in fluxers://fluxer.example.com/0000000000/token")
	}
	if err := f.discordHook.Finish(s); err != nil {
		return err
	}
	if f.href != "" {
		s.Format = notifier.Markdown // only embeds have a link
	}
	return nil
}

func (f *fluxer) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	address := "https://api.fluxer.app"
	if f.Host != "" && f.mode != "cloud" {
		address = f.URL()
	}
	address += notifier.Path("webhooks", f.id, f.token)
	for i, payload := range f.textPayloads(m) {
		f.adapt(payload)
		if err := f.post(ctx, c, fmt.Sprint("text ", i), address, f.query(payload), notifier.JSON(payload)); err != nil {
			return err
		}
	}
	for i, file := range m.Attachments {
		name, _ := json.Marshal(file.Name)
		payload := f.payload(m, false)
		payload["wait"], payload["content"] = false, file.Name
		if m.Foreign {
			payload["content"] = markup.EscapeMarkdown(file.Name)
		}
		payload["attachments"] = json.RawMessage(`[{"id": 0, "filename": ` + string(name) + `}]`)
		f.adapt(payload)
		if err := f.post(ctx, c, fmt.Sprint("file ", i), address, f.query(payload),
			discordFilesBody(payload, []*notifier.Attachment{file})); err != nil {
			return err
		}
	}
	return nil
}

// adapt adapts a message for Discord to Fluxer: it adds the name of the thread and
// removes empty titles of embeds.
func (f *fluxer) adapt(payload map[string]any) {
	if f.threadName != "" {
		payload["thread_name"] = f.threadName
	}
	embeds, _ := payload["embeds"].([]any)
	for _, e := range embeds {
		if embed := e.(map[string]any); embed["title"] == "" {
			delete(embed, "title")
		}
	}
}
