package services

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/signin"
)

var _ = notifier.Register[twist]()

// twist starts a thread in channels of Twist.
type twist struct {
	password, user, host string
	targets              []string
	session              signin.Session[*twistSession]
}

// twistSession has the access token and the IDs of the channels to post to.
type twistSession struct {
	token    string
	channels []string
}

func (t *twist) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Twist", "https://developer.twist.com/v3/"
	s.Setup = "User, host and password are the e-mail address and the password of a Twist account that has joined the channels."
	s.Groups(notifier.GroupChat)
	s.Words("doist")
	s.URL("twist://{password}:{user}@{host}[/{targets...}]", "twist://{user}@{host}/{password}[/{targets...}]")
	s.Way(2, "with the e-mail address first")
	s.Way(1, "with the password first")
	s.Format = notifier.Markdown
	s.Limits = markup.Limits{Title: 250, Body: 1000}
	// A mention is a link: [name](twist-mention://id).
	s.Foreign = &notifier.ForeignText{Markdown: true}
	s.Secret(&t.password, "password", "password of the account").Example("pa55word")
	s.String(&t.user, "user", "", "the account's e-mail address before the @").Example("alice")
	s.Host(&t.host, "host", "the account's e-mail address after the @")
	s.List(&t.targets, "targets", "channels by ID, name or workspace:name; default: general").Alias("to").
		Match(`^#?([\w-]+:)?[^\s:]{1,64}$`)
}

func (t *twist) Finish(*notifier.Schema) error {
	t.session.SignOut = func(ctx context.Context, c *notifier.Client, s *twistSession) error {
		return s.call(ctx, c, "users/logout", nil)
	}
	return nil
}

func (t *twist) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	signIn := func(ctx context.Context) (*twistSession, time.Duration, error) { return t.signIn(ctx, c) }
	return t.session.Do(ctx, c, signIn, func(s *twistSession) error {
		return c.Steps.Each(ctx, s.channels, func(ctx context.Context, id string) error {
			return s.call(ctx, c, "threads/add", nil, "channel_id", id, "title", m.Title, "content", m.Body)
		})
	})
}

// signIn gets an access token and looks up the channels.
func (t *twist) signIn(ctx context.Context, c *notifier.Client) (*twistSession, time.Duration, error) {
	s := new(twistSession)
	var account struct {
		Token     string
		Workspace int `json:"default_workspace"`
	}
	if err := s.call(ctx, c, "users/login", &account, "email", t.user+"@"+t.host, "password", t.password); err != nil {
		return nil, 0, fmt.Errorf("signing in: %w", err)
	}
	if account.Token == "" {
		return nil, 0, errors.New("signing in: the service returned no access token")
	}
	s.token = account.Token
	targets := t.targets
	if len(targets) == 0 {
		targets = []string{"general"}
	}
	for _, target := range targets {
		workspace, channel, found := strings.Cut(strings.TrimPrefix(target, "#"), ":")
		if !found {
			workspace, channel = strconv.Itoa(account.Workspace), workspace
		}
		if _, err := strconv.Atoi(channel); err == nil {
			s.channels = append(s.channels, channel)
			continue
		}
		if _, err := strconv.Atoi(workspace); err != nil {
			if workspace, err = s.find(ctx, c, "workspace", workspace); err != nil {
				return nil, 0, err
			}
		}
		id, err := s.find(ctx, c, "channel", channel, "workspace_id", workspace)
		if err != nil {
			return nil, 0, err
		}
		s.channels = append(s.channels, id)
	}
	return s, 0, nil
}

// find looks up the ID of a channel or workspace.
func (s *twistSession) find(ctx context.Context, c *notifier.Client, kind, name string, fields ...string) (string, error) {
	var list []struct {
		ID   int
		Name string
	}
	if err := s.call(ctx, c, kind+"s/get", &list, fields...); err != nil {
		return "", fmt.Errorf("looking up a %s: %w", kind, err)
	}
	for _, entry := range list {
		if strings.EqualFold(entry.Name, name) {
			return strconv.Itoa(entry.ID), nil
		}
	}
	return "", fmt.Errorf("the account belongs to no %s %q", kind, name)
}

func (s *twistSession) call(ctx context.Context, c *notifier.Client, method string, answer any, fields ...string) error {
	q := &notifier.Request{
		URL:  "https://api.twist.com/api/v3/" + method,
		Body: notifier.Form(notifier.Fields(fields...)),
	}
	if s.token != "" {
		q.Header = map[string]string{"Authorization": "Bearer " + s.token}
	}
	resp, err := c.Do(ctx, q)
	if err != nil {
		var refusal struct {
			Code int `json:"error_code"`
		}
		// 120 and 200 are an invalid and a missing token.
		if resp != nil && resp.JSON(&refusal) == nil && (refusal.Code == 120 || refusal.Code == 200) {
			return fmt.Errorf("%w: %w", signin.ErrExpired, err)
		}
		return err
	}
	if answer == nil {
		return nil
	}
	return resp.JSON(answer)
}
