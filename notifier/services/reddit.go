package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/signin"
)

var _ = notifier.Register[reddit]()

// reddit submits a post to subreddits.
type reddit struct {
	user, password, id, secret string
	targets                    []string
	kind, flairID, flair       string
	nsfw, spoiler, resubmit    bool
	ad, replies                bool
	session                    signin.Session[string]
}

func (r *reddit) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Reddit", "https://www.reddit.com/dev/api/#POST_api_submit"
	s.Setup = "Create an app of the type script at reddit.com/prefs/apps: app_id is listed under personal use " +
		"script, app_secret beside secret, and user and password are those of the account that created the app."
	s.Groups(notifier.GroupSocial)
	s.Words("subreddit")
	s.URL("reddit://{user}:{password}@{app_id}/{app_secret}[/{targets...}]")
	s.Format = notifier.Markdown
	s.Limits = markup.Limits{Title: 300, Body: 6000}
	s.Foreign = &notifier.ForeignText{Markdown: true, Mentions: redditMentions}
	s.String(&r.user, "user", "", "user name").Example("alice")
	s.Secret(&r.password, "password", "password").Example("pa55word")
	s.Secret(&r.id, "app_id", "client ID of the app").Match(`^[a-z0-9_-]+$`).Example("AbCdEf01234567")
	s.Secret(&r.secret, "app_secret", "client secret of the app").Match(`^[a-z0-9_-]+$`).Example("AbCdEf0123456789GhIjKlMnOpQ")
	s.List(&r.targets, "targets", "subreddits").Example("alerts").Alias("to").
		Normalize(func(name string) (string, error) { return strings.TrimLeft(name, "#"), nil })
	s.Choice(&r.kind, "kind", "auto", []string{"auto", "self", "link"}, "kind of post; auto makes a body that is only a URL a link")
	s.String(&r.flairID, "flair_id", "", "ID of the flair template")
	s.String(&r.flair, "flair_text", "", "text of the flair")
	s.Bool(&r.nsfw, "nsfw", false, "mark the post as not safe for work")
	s.Bool(&r.spoiler, "spoiler", false, "mark the post as a spoiler")
	s.Bool(&r.resubmit, "resubmit", false, "submit a link that was submitted before")
	s.Bool(&r.ad, "ad", false, "submit the post as an advertisement")
	s.Bool(&r.replies, "replies", true, "send the replies to the account's inbox")
}

// signIn gets an access token (RFC 6749, section 4.3).
func (r *reddit) signIn(ctx context.Context, c *notifier.Client) (string, time.Duration, error) {
	answer := struct {
		redditAnswer
		Token string `json:"access_token"`
		Life  int    `json:"expires_in"`
	}{Life: 3600}
	err := c.DoJSON(ctx, &notifier.Request{
		URL:  "https://www.reddit.com/api/v1/access_token",
		User: r.id, Password: r.secret,
		Body: notifier.Form(notifier.Fields("grant_type", "password", "username", r.user, "password", r.password)),
	}, &answer)
	if err == nil {
		err = answer.err()
	}
	if err == nil && answer.Token == "" {
		err = errors.New("the service returned no access token")
	}
	if err != nil {
		return "", 0, fmt.Errorf("signing in: %w", err)
	}
	return answer.Token, time.Duration(answer.Life) * time.Second, nil
}

var redditUser = lazyregexp.New(`(?i)(^|[^\w/])(/?u/)(\w)`)

// redditMentions breaks u/name, which mentions a user.
func redditMentions(text string) string {
	return redditUser.ReplaceAllString(text, "$1$2"+chattext.Separator+"$3")
}

var redditLink = lazyregexp.New(`(?i)^https?://[^\s/]\S*$`)

func (r *reddit) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	title := m.Title
	if title == "" {
		title = m.Identity.Description
	}
	kind := r.kind
	if kind == "auto" {
		kind = "self"
		if redditLink.MatchString(m.Body) {
			kind = "link"
		}
	}
	signIn := func(ctx context.Context) (string, time.Duration, error) { return r.signIn(ctx, c) }
	return r.session.Do(ctx, c, signIn, func(token string) error {
		if len(r.targets) == 0 {
			return errors.New("the URL has no subreddit; write one after app_secret")
		}
		return c.Steps.Each(ctx, r.targets, func(ctx context.Context, target string) error {
			form := notifier.Fields("api_type", "json", "extension", "json", "sr", target, "title", title, "kind", kind,
				"ad", redditBool(r.ad), "sendreplies", redditBool(r.replies),
				"nsfw", redditBool(r.nsfw), "spoiler", redditBool(r.spoiler), "resubmit", redditBool(r.resubmit))
			if kind == "link" {
				form.Set("url", m.Body)
			} else {
				form.Set("text", m.Body)
			}
			if r.flairID != "" {
				form.Set("flair_id", r.flairID)
			}
			if r.flair != "" {
				form.Set("flair_text", r.flair)
			}
			var answer redditAnswer
			err := c.DoJSON(ctx, &notifier.Request{
				URL:    "https://oauth.reddit.com/api/submit",
				Header: map[string]string{"Authorization": "Bearer " + token},
				Body:   notifier.Form(form),
			}, &answer)
			if err != nil {
				return err
			}
			return answer.err()
		})
	})
}

func redditBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// redditAnswer is the part of an answer that reports errors.
type redditAnswer struct {
	JSON  struct{ Errors [][]any }
	Error any // of the sign-in, which has the status 200, too
}

// err returns the first error of the answer, or nil.
func (a *redditAnswer) err() error {
	switch {
	case a.Error != nil:
		err := fmt.Errorf("the service answered %v", a.Error)
		if slices.Contains([]any{"invalid_grant", "invalid_client", "unauthorized_client"}, a.Error) { // RFC 6749, section 5.2
			err = notifier.Denied(err)
		}
		return err
	case len(a.JSON.Errors) == 0:
		return nil
	}
	err := fmt.Errorf("the service refused the request: %v", a.JSON.Errors[0])
	if len(a.JSON.Errors[0]) > 0 && a.JSON.Errors[0][0] == "RATELIMIT" {
		return err
	}
	return notifier.Denied(err)
}
