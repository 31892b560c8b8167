package services

import (
	"context"
	"errors"
	"fmt"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[groupme]()

// groupme posts to a GroupMe group as a bot.
type groupme struct {
	bot, token string
}

func (g *groupme) Describe(s *notifier.Schema) {
	s.Name, s.Site = "GroupMe", "https://dev.groupme.com/docs/v3#bots_post"
	s.Setup = "Create a bot for the group at dev.groupme.com/bots and copy its Bot ID; " +
		"for pictures, also copy the Access Token that the same site shows."
	s.Groups(notifier.GroupChat)
	s.URL("groupme://{bot_id}[/{token}]")
	s.Attachments = true
	s.Limits = markup.Limits{Body: 1000}
	s.Secret(&g.bot, "bot_id", "ID of the bot").Match(`^[a-z0-9]+$`).Example("68ca900a7d17f9b9891a73af2a")
	s.Secret(&g.token, "token", "access token; needed to send pictures")
}

func (g *groupme) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	payload := map[string]any{"bot_id": g.bot, "text": m.Body}
	var pictures []map[string]string
	for _, a := range m.Attachments {
		if g.token == "" {
			c.Warn("GroupMe accepts pictures only with an access token, as in groupme://{bot_id}/{token}")
			break
		}
		if a.MediaType() != "image" {
			c.Warn("GroupMe accepts only pictures; a file was left out")
			continue
		}
		address, err := g.upload(ctx, c, a)
		if err != nil {
			return fmt.Errorf("uploading a picture: %w", err)
		}
		pictures = append(pictures, map[string]string{"type": "image", "url": address})
	}
	if pictures != nil {
		payload["attachments"] = pictures
	}
	return c.PostJSON(ctx, "https://api.groupme.com/v3/bots/post", payload)
}

// upload stores a picture and returns its address.
func (g *groupme) upload(ctx context.Context, c *notifier.Client, a *notifier.Attachment) (string, error) {
	var stored struct{ Payload struct{ URL string } }
	header := map[string]string{"X-Access-Token": g.token}
	err := c.DoJSON(ctx, &notifier.Request{URL: "https://image.groupme.com/pictures", Header: header, Body: notifier.File("", a)}, &stored)
	if err == nil && stored.Payload.URL == "" {
		err = errors.New("the answer has no address of the picture")
	}
	return stored.Payload.URL, err
}
