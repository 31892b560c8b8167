package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// address puts the readers of a direct status before the text, because only
// mentioned accounts see it. If the URL has no targets, the reader is the
// account itself.
func (t *mastodon) address(ctx context.Context, c *notifier.Client, text string) (string, error) {
	readers := t.targets
	if len(readers) == 0 {
		me, err := t.me.Get(ctx, func(ctx context.Context) (string, time.Duration, error) {
			var account struct{ Username string }
			// Existing clients send null.
			err := t.call(ctx, c, "GET", notifier.JSON(nil), &account, "accounts", "verify_credentials")
			if err == nil && account.Username == "" {
				err = errors.New("the service's answer has no username")
			}
			return "@" + account.Username, 0, err
		})
		if err != nil {
			return "", fmt.Errorf("looking up the account: %w", err)
		}
		readers = []string{me}
	}
	there := mastodonMentions.FindAllString(text, -1)
	var words []string
	for _, r := range readers {
		if !slices.Contains(there, r) {
			words = append(words, r)
		}
	}
	return strings.Join(append(words, text), " "), nil
}

// upload uploads the files and returns their IDs, grouped by status. It returns
// at least one group, which may be empty.
func (t *mastodon) upload(ctx context.Context, c *notifier.Client, files []*notifier.Attachment) (batches [][]string, err error) {
	room := 1
	if t.batch {
		room = mastodonImages
	}
	var batch []string
	for i, a := range files {
		if media := a.MediaType(); media != "image" && media != "video" && media != "audio" {
			c.Warn("Mastodon accepts only pictures, videos and sounds; file %d is left out", i+1)
			continue
		}
		id, err := notifier.OnceValue(c.Steps, fmt.Sprint("file ", i), func() (string, error) {
			var media struct{ ID string }
			err := t.call(ctx, c, "POST", notifier.Multipart(
				notifier.FormPart{Name: "description", Value: a.Name},
				notifier.FormPart{Name: "file", File: a, ContentType: "application/octet-stream"},
			), &media, "media")
			return media.ID, err
		})
		if err != nil {
			return nil, fmt.Errorf("uploading file %d: %w", i+1, err)
		}
		if id == "" {
			c.Warn("Mastodon returned no ID for file %d; it is left out", i+1)
			continue
		}
		still := a.ContentType == "image/png" || a.ContentType == "image/jpeg" || a.ContentType == "image/jpg"
		if !still && len(batch) > 0 {
			// A status has several pictures, or one file of another kind.
			batches, batch = append(batches, batch), nil
		}
		batch = append(batch, id)
		if !still || len(batch) >= room {
			batches, batch = append(batches, batch), nil
		}
	}
	if len(batch) > 0 || len(batches) == 0 {
		batches = append(batches, batch)
	}
	return batches, nil
}

func (t *mastodon) call(ctx context.Context, c *notifier.Client, method string, body *notifier.Body, answer any, path ...string) error {
	return c.DoJSON(ctx, t.request(method, body, path...), answer)
}

func (t *mastodon) request(method string, body *notifier.Body, path ...string) *notifier.Request {
	return &notifier.Request{
		Method: method,
		URL:    t.URL(append([]string{"api", "v1"}, path...)...),
		Header: map[string]string{"Authorization": "Bearer " + t.token},
		Body:   body,
	}
}
