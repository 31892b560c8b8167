package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[twitter]()

// twitter posts on X, or sends direct messages there.
type twitter struct {
	oauth1
	user, mode string
	targets    []string
	batch      bool
	public     bool // post a tweet, not a direct message
	recipients notifier.Cached[[]string]
}

// twitterImages is the maximum number of pictures in a tweet.
const twitterImages = 4

func (t *twitter) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Twitter", "https://docs.x.com/x-api/posts/create-post"
	s.Setup = "Create an app in the X developer portal with permission to write (and for dm direct messages), " +
		"and generate the consumer keys and the access token and secret under Keys and tokens."
	s.Groups(notifier.GroupSocial)
	s.Words("x.com", "tweets", "direct message")
	s.URL("x|twitter|tweet://[{user}@]{ckey}/{csecret}/{akey}/{asecret}[/{targets...}]")
	s.Attachments = true
	s.Foreign = &notifier.ForeignText{Mentions: chattext.BreakMentions}
	s.Secret(&t.key, "ckey", "consumer key of the app").Example("AbCdEf0123456789GhIjKlMnO")
	s.Secret(&t.secret, "csecret", "consumer secret of the app").Example("AbCdEf0123456789GhIjKlMnOpQrStUvWxYz")
	s.Secret(&t.token, "akey", "access token of the account").Example("12345678-AbCdEf0123456789GhIjKl")
	s.Secret(&t.tokenSecret, "asecret", "access token's secret").Example("LkJiHg9876543210fEdCbA")
	s.String(&t.user, "user", "", "user to write to").Match(twitterUser)
	s.List(&t.targets, "targets", "users to write to; default: the account itself").Alias("to").Match(twitterUser)
	s.Choice(&t.mode, "mode", "", []string{"dm", "tweet"}, "kind of message; default: tweet if the scheme is tweet, else dm")
	s.Bool(&t.batch, "batch", true, "put up to 4 pictures into one tweet")
	s.Ignore("cache", "IDs of users are always kept", "yes", "no")
}

const twitterUser = `^@?[a-z0-9_]+$`

// Finish sets the mode and its limit.
func (t *twitter) Finish(s *notifier.Schema) error {
	t.public = t.mode == "tweet" || t.mode == "" && s.Scheme == "tweet"
	s.Limits = markup.Limits{Body: 10000}
	if t.public {
		s.Limits.Body = 280
	}
	return nil
}

func (t *twitter) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	var images []twitterImage
	for i, a := range m.Attachments {
		if a.MediaType() != "image" {
			c.Warn("Twitter accepts pictures only; file %d is left out", i+1)
			continue
		}
		id, err := notifier.OnceValue(c.Steps, fmt.Sprint("file ", i), func() (string, error) { return t.upload(ctx, c, a) })
		if err != nil {
			return fmt.Errorf("uploading file %d: %w", i+1, err)
		}
		if id == "" {
			c.Warn("Twitter returned no ID for file %d; it is left out", i+1)
			continue
		}
		images = append(images, twitterImage{id, slices.Contains([]string{"image/png", "image/jpeg", "image/jpg"}, a.ContentType)})
	}
	if t.public {
		return t.tweet(ctx, c, m, images)
	}
	return t.write(ctx, c, m, images)
}

// tweet posts tweets: one without pictures, or one for each group of pictures.
func (t *twitter) tweet(ctx context.Context, c *notifier.Client, m *notifier.Message, images []twitterImage) error {
	limit := 1
	if t.batch {
		limit = twitterImages
	}
	var batches [][]string
	open := false // the last batch has room
	for _, i := range images {
		if n := len(batches) - 1; open && i.still && len(batches[n]) < limit {
			batches[n] = append(batches[n], i.id)
			continue
		}
		batches, open = append(batches, []string{i.id}), i.still
	}
	if len(batches) == 0 {
		return t.post(ctx, c, "tweets", map[string]any{"text": m.Body})
	}
	var errs []error
	for i, ids := range batches {
		payload := map[string]any{"text": twitterText(m.Body, i, len(batches)), "media": map[string]any{"media_ids": ids}}
		errs = append(errs, c.Steps.Once(fmt.Sprint("tweet ", i), func() error { return t.post(ctx, c, "tweets", payload) }))
	}
	return errors.Join(errs...)
}

// write sends direct messages, one for each picture.
func (t *twitter) write(ctx context.Context, c *notifier.Client, m *notifier.Message, images []twitterImage) error {
	ids, err := t.recipientIDs(ctx, c)
	if err != nil {
		return err
	}
	return c.Steps.Each(ctx, ids, func(ctx context.Context, id string) error {
		path := "dm_conversations/with/" + id + "/messages"
		if len(images) == 0 {
			return t.post(ctx, c, path, map[string]any{"text": m.Body})
		}
		for i, image := range images {
			payload := map[string]any{
				"text":        twitterText(m.Body, i, len(images)),
				"attachments": []map[string]string{{"media_id": image.id}},
			}
			if err := c.Steps.Once(fmt.Sprintf("message %d to %s", i, id), func() error { return t.post(ctx, c, path, payload) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// twitterText returns the text for the i-th of n tweets or messages with pictures.
func twitterText(body string, i, n int) string {
	if i == 0 && strings.TrimSpace(body) != "" {
		return body
	}
	return fmt.Sprintf("%02d/%02d", i+1, n)
}
