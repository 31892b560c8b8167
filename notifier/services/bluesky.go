package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/signin"
)

var _ = notifier.Register[bluesky]()

// bluesky posts on Bluesky or another server of the AT Protocol network.
type bluesky struct {
	user, password string
	session        signin.Session[blueskySession]
}

func (b *bluesky) Describe(s *notifier.Schema) {
	s.Name, s.Site = "BlueSky", "https://docs.bsky.app/docs/api/com-atproto-repo-create-record"
	s.Setup = "Create an app password in Bluesky under Settings, Privacy and security, " +
		"App passwords; user is your handle, for example alice.bsky.social."
	s.Groups(notifier.GroupSocial)
	s.Words("at protocol", "atproto")
	s.URL("bsky|bluesky://{user}@{password}")
	s.Hints(
		notifier.Hint{Text: `@?(?<user>[\w.-]+\.bsky\.social)`, Is: "a handle"},
		notifier.Hint{Text: `(?<password>[a-z0-9]{4}(?:-[a-z0-9]{4}){3})`, Is: "an app password", Guess: true},
		notifier.Hint{Text: `https://bsky\.app/profile/(?<user>[\w.-]+)`, Is: "the address of a profile"},
	)
	s.Limits = markup.Limits{Body: 280}
	s.Attachments = true
	s.String(&b.user, "user", "", "handle; .bsky.social is added if it has no dot").Match(`^[a-z0-9._-]+$`).Example("alice.bsky.social")
	s.Secret(&b.password, "password", "app password").Example("abcd-efgh-ijkl-mnop")
}

// Finish keeps the session over a restart, because an account can open 30 in 5
// minutes. See https://docs.bsky.app/docs/advanced-guides/rate-limits.
func (b *bluesky) Finish(*notifier.Schema) error {
	b.session.Saved = savedToken
	return nil
}

func (b *bluesky) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	signIn := func(ctx context.Context) (blueskySession, time.Duration, error) { return b.signIn(ctx, c) }
	return b.session.Do(ctx, c, signIn, func(s blueskySession) error {
		images, err := s.upload(ctx, c, m.Attachments)
		if err != nil {
			return err
		}
		// Each picture gets its own post. The first one has the text.
		for i := range max(len(images), 1) {
			record := map[string]any{
				"$type": "app.bsky.feed.post", "text": m.Body, "createdAt": m.Time.UTC().Format(time.RFC3339),
			}
			if i > 0 {
				record["text"] = fmt.Sprintf("%02d/%02d", i+1, len(images))
			}
			if len(images) > 0 {
				record["embed"] = map[string]any{"$type": "app.bsky.embed.images", "images": images[i : i+1]}
			}
			err := c.Steps.Once(fmt.Sprint("post ", i), func() error {
				return s.call(ctx, c, "repo.createRecord", notifier.JSON(map[string]any{
					"collection": "app.bsky.feed.post", "repo": s.DID, "record": record,
				}), nil)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// blueskyImage is a picture in a post.
type blueskyImage struct {
	Image json.RawMessage `json:"image"`
	Alt   string          `json:"alt"`
}

// upload uploads the pictures among files. A retry skips those that are uploaded.
func (s blueskySession) upload(ctx context.Context, c *notifier.Client, files []*notifier.Attachment) (images []blueskyImage, err error) {
	for i, a := range files {
		if a.MediaType() != "image" {
			c.Warn("Bluesky shows pictures only; file %d is left out", i+1)
			continue
		}
		blob, err := notifier.OnceValue(c.Steps, fmt.Sprint("file ", i), func() (json.RawMessage, error) {
			var answer struct{ Blob json.RawMessage }
			err := s.call(ctx, c, "repo.uploadBlob", notifier.File("", a), &answer)
			if err == nil && len(answer.Blob) == 0 {
				err = errors.New("the answer has no reference to the file")
			}
			return answer.Blob, err
		})
		if err != nil {
			return nil, fmt.Errorf("uploading file %d: %w", i+1, err)
		}
		images = append(images, blueskyImage{blob, a.Name})
	}
	return images, nil
}

// blueskySession is a session of an account at its server. Its JSON is kept over
// a restart.
type blueskySession struct {
	DID    string `json:"did"`
	Server string `json:"server"`
	Token  string `json:"token"`
}

// call calls a method in the namespace com.atproto with a POST request.
func (s blueskySession) call(ctx context.Context, c *notifier.Client, method string, body *notifier.Body, answer any) error {
	q := &notifier.Request{URL: s.Server + "/xrpc/com.atproto." + method, Body: body}
	if s.Token != "" {
		q.Header = map[string]string{"Authorization": "Bearer " + s.Token}
	}
	err := c.DoJSON(ctx, q, answer)
	if status, ok := errors.AsType[*notifier.StatusError](err); ok && strings.Contains(status.Body, `"ExpiredToken"`) {
		err = fmt.Errorf("%w: %w", signin.ErrExpired, err)
	}
	return err
}
