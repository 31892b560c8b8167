package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// twitterImage is a picture that has been uploaded.
type twitterImage struct {
	id    string
	still bool // can share a tweet with others
}

// upload uploads a picture and returns its media ID.
func (t *twitter) upload(ctx context.Context, c *notifier.Client, a *notifier.Attachment) (string, error) {
	category := "dm_image"
	if t.public {
		category = "tweet_image"
	}
	var answer struct{ Data struct{ ID string } }
	err := t.call(ctx, c, "https://api.x.com/2/media/upload", nil, notifier.Multipart(
		notifier.FormPart{Name: "media_category", Value: category},
		notifier.FormPart{Name: "media", File: a, NoType: true},
	), &answer)
	return answer.Data.ID, err
}

type twitterAccount struct{ ID, Username string }

// recipientIDs looks up the IDs of the users to write to. It caches them, since they
// never change.
func (t *twitter) recipientIDs(ctx context.Context, c *notifier.Client) ([]string, error) {
	return t.recipients.Get(ctx, func(ctx context.Context) ([]string, time.Duration, error) {
		var names []string
		for _, name := range append([]string{t.user}, t.targets...) {
			if name = strings.TrimPrefix(name, "@"); name != "" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		accounts, err := t.accounts(ctx, c, slices.Compact(names))
		if err != nil {
			return nil, 0, fmt.Errorf("looking up users: %w", err)
		}
		var ids []string
		for _, a := range accounts {
			if a.ID != "" {
				ids = append(ids, a.ID)
			}
		}
		if len(ids) == 0 {
			return nil, 0, errors.New("looking up users: the service knows none of them")
		}
		if missing := len(names) - len(ids); missing > 0 {
			c.Warn("Twitter does not know %d of the %d users; they get no message", missing, len(names))
		}
		return ids, 0, nil
	})
}

// accounts looks up users by name, 100 in a request. Without names it returns the
// user of the access token.
func (t *twitter) accounts(ctx context.Context, c *notifier.Client, names []string) (all []twitterAccount, err error) {
	if len(names) == 0 {
		var answer struct{ Data twitterAccount }
		err := t.call(ctx, c, "https://api.twitter.com/2/users/me", nil, nil, &answer)
		return []twitterAccount{answer.Data}, err
	}
	for batch := range slices.Chunk(names, 100) {
		var answer struct{ Data []twitterAccount }
		query := url.Values{"usernames": {strings.Join(batch, ",")}}
		if err := t.call(ctx, c, "https://api.twitter.com/2/users/by", query, nil, &answer); err != nil {
			return nil, err
		}
		all = append(all, answer.Data...)
	}
	return all, nil
}

func (t *twitter) post(ctx context.Context, c *notifier.Client, path string, payload any) error {
	var answer struct {
		Data   json.RawMessage
		Errors []struct{ Title, Detail string }
	}
	err := t.call(ctx, c, "https://api.twitter.com/2/"+path, nil, notifier.JSON(payload), &answer)
	if err == nil && len(answer.Errors) > 0 && len(answer.Data) == 0 {
		err = textError("the service refused the message: " + answer.Errors[0].Title + ": " + answer.Errors[0].Detail)
	}
	return err
}

func (t *twitter) call(ctx context.Context, c *notifier.Client, address string, query url.Values, body *notifier.Body, answer any) error {
	method := "POST"
	if body == nil {
		method = "GET"
	}
	return c.DoJSON(ctx, &notifier.Request{
		Method: method, URL: address, Query: query, Body: body,
		Header: map[string]string{"Authorization": t.header(method, address, query)},
	}, answer)
}
