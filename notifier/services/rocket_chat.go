package services

import (
	"context"
	"errors"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[rocketChat]()

// rocketChat posts to a Rocket.Chat server through an incoming webhook, or as a
// user with a password or an access token.
type rocketChat struct {
	notifier.Server
	webhook  string
	rooms    []string
	channels []string
	users    []string
	mode     string
	avatar   int
}

func (r *rocketChat) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Rocket.Chat", "https://developer.rocket.chat/apidocs/post-message"
	s.Setup = "Create an incoming webhook under Integrations in the administration and copy the two parts after " +
		"/hooks/ of its URL, or create a personal access token, which comes with the user ID, in your profile."
	s.Groups(notifier.GroupChat)
	s.Words("slack alternative")
	s.URL("rocket[s]://[{user}[:{password}]@]{host}[:{port}][/{targets...}]")
	s.Hints(
		notifier.Hint{Text: `(?<address>)/hooks/(?<webhook>[A-Za-z0-9]+/[A-Za-z0-9]+)`, Is: "the address of a webhook"},
	)
	s.Format = notifier.Markdown
	s.Limits = markup.Limits{Body: 1000}
	s.Foreign = &notifier.ForeignText{Markdown: true, Mentions: chattext.BreakAll}
	s.Server(&r.Server)
	s.Param("user").Example("alerts")
	s.Param("password").Example("pa55word")
	s.Secret(&r.webhook, "webhook", "end of the webhook's URL, after /hooks/; may also stand as user").
		Match(`^[a-z0-9]+/[a-z0-9]+$`).Example("abc/def")
	s.List(&r.rooms, "targets", "#channels, @users and IDs of rooms",
		notifier.Prefixed{Prefix: "#", Items: &r.channels, Doc: "channel"},
		notifier.Prefixed{Prefix: "@", Items: &r.users, Doc: "user"}).Alias("to").
		Match(`^[#@]?[a-z0-9_.-]+$`).DropInvalid().Example("#general")
	s.Choice(&r.mode, "mode", "", []string{"webhook", "token", "basic"}, "how to sign in; default: by the form of user and password")
	s.Enum(&r.avatar, "avatar", "", notifier.YesNo(1, 2), "show the icon of the message's type; default: yes, except in mode basic").Lenient()
	s.Param("host").Example("chat.example.com")
}

var (
	rocketSlash   = lazyregexp.New(`(?i)^(\s*[^:]+://(?:[^:/@]+:)?[a-z0-9]+)/([a-z0-9]+@)`)
	rocketWebhook = lazyregexp.New(`(?i)^[a-z0-9]+/[a-z0-9]+$`)
)

// Rewrite escapes the slash of a webhook that stands as user: URLs in use have it
// unescaped.
func (r *rocketChat) Rewrite(url string) string { return rocketSlash.ReplaceAllString(url, "$1%2F$2") }

func (r *rocketChat) Finish(*notifier.Schema) error {
	hook := r.mode == "" || r.mode == "webhook"
	for _, part := range []*string{&r.Password, &r.User} {
		if hook && r.webhook == "" && rocketWebhook.MatchString(*part) {
			r.webhook, *part = *part, ""
		}
	}
	if r.mode == "" {
		switch {
		case r.webhook != "":
			r.mode = "webhook"
		case len(r.Password) > 32:
			r.mode = "token"
		default:
			r.mode = "basic"
		}
	}
	switch {
	case r.mode == "webhook" && r.webhook == "":
		return errors.New("the webhook is missing; write it as in rockets://abc/def@chat.example.com/#general")
	case r.mode == "webhook":
	case r.User == "" || r.Password == "":
		return errors.New("the URL needs a user and a password, or a user ID and a token, " +
			"as in rockets://user:password@chat.example.com/#general")
	case len(r.targets()) == 0:
		return errors.New("the URL has no #channel, @user or room to post to; add one to the path")
	}
	if r.avatar == 0 && r.mode != "basic" {
		r.avatar = 1
	}
	return nil
}

// targets returns all recipients in the form that Rocket.Chat uses.
func (r *rocketChat) targets() (out []string) {
	for _, u := range r.users {
		out = append(out, "@"+u)
	}
	for _, c := range r.channels {
		out = append(out, "#"+c)
	}
	return append(out, r.rooms...)
}

func (r *rocketChat) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	address, header, field := r.URL("api", "v1", "chat.postMessage"), map[string]string{}, "roomId"
	targets := r.targets()
	switch r.mode {
	case "webhook":
		address, field = r.URL("hooks")+"/"+r.webhook, "channel"
		if len(targets) == 0 {
			targets = []string{""} // the webhook's default channel
		}
	case "token":
		header = map[string]string{"X-User-Id": r.User, "X-Auth-Token": r.Password}
	default:
		var err error
		if header, err = r.signIn(ctx, c); err != nil {
			return err
		}
		defer r.signOut(ctx, c, header)
	}
	return c.Steps.Each(ctx, targets, func(ctx context.Context, target string) error {
		payload := map[string]string{"text": m.Body}
		if icon := m.Icon(128); r.avatar == 1 && icon != "" {
			payload["avatar"] = icon
		}
		switch {
		case target == "":
		case target[0] == '#' || target[0] == '@':
			payload["channel"] = target
		default:
			payload[field] = target
		}
		var answer struct {
			Success *bool  `json:"success"`
			Error   string `json:"error"`
		}
		err := c.DoJSON(ctx, &notifier.Request{URL: address, Header: header, Body: notifier.JSON(payload)}, &answer)
		if err == nil && answer.Success != nil && !*answer.Success {
			err = textError("Rocket.Chat refused the message: " + answer.Error)
		}
		return err
	})
}
