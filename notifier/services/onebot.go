package services

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[onebot]()

// onebot sends to users and groups of QQ through a bot that speaks OneBot 11.
type onebot struct {
	notifier.Server
	token                  string
	targets, users, groups []string // targets is empty: all have a prefix
}

func (o *onebot) Describe(s *notifier.Schema) {
	s.Name, s.Site = "OneBot", "https://github.com/botuniverse/onebot-11/blob/master/api/public.md"
	s.Setup = "Run a bot with OneBot 11, such as NapCat, turn on its HTTP server and set an " +
		"access token there; targets are the QQ numbers of users and, after #, of groups."
	s.Groups(notifier.GroupChat, notifier.GroupRegional)
	s.Words("tencent", "napcat", "go-cqhttp", "china")
	s.URL("onebot[s]://[{token}@]{host}[:{port}]/{targets...}")
	s.Limits, s.Attachments = markup.Limits{Body: 4500}, true
	s.Server(&o.Server)
	s.Param("host").Example("onebot.example.com")
	s.Secret(&o.token, "token", "access token of the bot").Example("AbCdEf0123456789")
	s.List(&o.targets, "targets", "numbers of users (12345 or @12345) and groups (#12345)",
		notifier.Prefixed{Prefix: "@", Items: &o.users, Doc: "users"}, notifier.Prefixed{Prefix: "#", Items: &o.groups, Doc: "groups"},
	).Alias("to").Normalize(onebotTarget).Example("#1234567890")
}

var onebotNumber = lazyregexp.New(`^[@#]?[0-9]{1,19}$`)

// onebotTarget returns a target with its prefix and a number without leading zeros.
func onebotTarget(s string) (string, error) {
	if !onebotNumber.MatchString(s) {
		return "", errors.New("is not a QQ number; write 12345 or @12345 for a user and #12345 for a group")
	}
	prefix := "@"
	if s[0] == '#' {
		prefix = "#"
	}
	return prefix + cmp.Or(strings.TrimLeft(strings.TrimLeft(s, "@#"), "0"), "0"), nil
}

func (o *onebot) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	var targets []string
	for _, user := range o.users {
		targets = append(targets, "@"+user)
	}
	for _, group := range o.groups {
		targets = append(targets, "#"+group)
	}
	return c.Steps.Each(ctx, targets, func(ctx context.Context, target string) error {
		if m.Body != "" {
			err := c.Steps.Once("text "+target, func() error {
				return o.send(ctx, c, target, onebotSegment{Type: "text", Data: map[string]string{"text": m.Body}})
			})
			if err != nil {
				return err
			}
		}
		for i, a := range m.Attachments {
			err := c.Steps.Once(fmt.Sprint("file ", i, " ", target), func() error { return o.send(ctx, c, target, onebotFile(a), a) })
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// onebotSegment is a part of a message.
type onebotSegment struct {
	Type string            `json:"type"`
	Data map[string]string `json:"data"`
}

// onebotFile returns the segment that shows a file. Only a plain file has a name.
func onebotFile(a *notifier.Attachment) onebotSegment {
	segment := onebotSegment{Type: onebotTypes[a.MediaType()], Data: map[string]string{"file": "base64://" + notifier.Base64(a)}}
	if segment.Type == "" {
		segment.Type, segment.Data["name"] = "file", a.Name
	}
	return segment
}

var onebotTypes = map[string]string{"image": "image", "audio": "record", "video": "video"}

// send sends a message of one segment to a user or a group.
func (o *onebot) send(ctx context.Context, c *notifier.Client, target string, segment onebotSegment, files ...*notifier.Attachment) error {
	action, field := "send_private_msg", "user_id"
	if target[0] == '#' {
		action, field = "send_group_msg", "group_id"
	}
	header := map[string]string{}
	if o.token != "" {
		header["Authorization"] = "Bearer " + o.token
	}
	resp, err := c.Do(ctx, &notifier.Request{
		URL: o.URL(action), Header: header,
		Body:   notifier.JSON(map[string]any{field: json.Number(target[1:]), "message": []onebotSegment{segment}}, files...),
		Accept: func(code int) bool { return code == http.StatusOK },
	})
	if err != nil {
		return err
	}
	return onebotError(resp)
}

// onebotError returns the error in an answer with status 200. An answer that does not follow OneBot
// has none. The code 1 means that the bot sends the message later.
func onebotError(resp *notifier.Response) error {
	var answer map[string]any
	if resp.JSON(&answer) != nil {
		return nil
	}
	code, has := answer["retcode"]
	if answer["status"] != "failed" && (!has || code == 0.0 || code == 1.0) {
		return nil
	}
	text := "the bot could not send the message"
	if n, ok := code.(float64); ok {
		text += fmt.Sprintf(", with code %g", n)
	}
	for _, field := range []string{"wording", "message", "msg"} {
		if reason, ok := answer[field].(string); ok && reason != "" {
			return errors.New(text + ": " + reason)
		}
	}
	return errors.New(text)
}
