package services

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[viber]()

// viber sends to subscribers of a Viber bot.
type viber struct {
	token, from, avatar string
	targets             []string
}

func (v *viber) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Viber", "https://developers.viber.com/docs/api/rest-bot-api/"
	s.Setup = "Create a bot in the Viber Admin Panel (partners.viber.com; since 2024 only on commercial " +
		"terms) and copy its token; your webhook gets the ID of a user who subscribes to the bot."
	s.Groups(notifier.GroupChat, notifier.GroupPhone)
	s.Words("rakuten")
	// With the token in the query, host and path are all targets.
	s.URL("viber://{token}/{targets...}", "viber://{targets}[/{targets...}]")
	s.Way(1, "with the token in the path")
	s.Way(2, "with the token in the query")
	s.Hints(
		notifier.Hint{Text: `(?<token>[0-9a-f]{16}-[0-9a-f]{16}-[0-9a-f]{16})`, Is: "the token of a bot"},
	)
	s.Limits = markup.Limits{Body: 30000}
	s.Secret(&v.token, "token", "authentication token of the bot").Required().Example("0123456789abcdef-0123456789abcdef-0123456789abcdef")
	s.List(&v.targets, "targets", "IDs of the subscribers").Alias("to").Example("01234567890A=")
	s.String(&v.from, "from", "", "name to send as, cut to 28 characters").Normalize(viberName)
	s.String(&v.avatar, "avatar", "", "URL of the sender's picture")
}

// viberName cuts a sender's name to the length that the service accepts.
func viberName(name string) (string, error) {
	r := []rune(name)
	return string(r[:min(len(r), 28)]), nil
}

func (v *viber) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	name := v.from
	if name == "" {
		name, _ = viberName(m.Identity.Description)
	}
	sender := map[string]string{"name": name}
	if v.avatar != "" {
		sender["avatar"] = v.avatar
	}
	return c.Steps.Each(ctx, v.targets, func(ctx context.Context, target string) error {
		resp, err := c.Do(ctx, &notifier.Request{
			URL:    "https://chatapi.viber.com/pa/send_message",
			Header: map[string]string{"X-Viber-Auth-Token": v.token},
			Body:   notifier.JSON(map[string]any{"receiver": target, "type": "text", "text": m.Body, "sender": sender}),
		})
		if err != nil {
			return err
		}
		var answer struct {
			Status  *int
			Message string `json:"status_message"`
		}
		if err := resp.JSON(&answer); err != nil {
			return err
		}
		switch {
		case answer.Status == nil:
			return errors.New("the service's answer has no status; the message may not have arrived")
		case *answer.Status != 0:
			err := fmt.Errorf("the service refused with status %d: %s", *answer.Status, answer.Message)
			if slices.Contains(viberDenied, *answer.Status) {
				err = notifier.Denied(err)
			}
			return err
		}
		return nil
	})
}

// viberDenied are the statuses about the token, the account and the receiver. See
// https://developers.viber.com/docs/api/rest-bot-api/#error-codes.
var viberDenied = []int{2, 5, 6, 7, 8, 9}
