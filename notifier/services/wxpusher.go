package services

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[wxpusher]()

// wxpusher sends to users and topics of an application of WxPusher.
type wxpusher struct {
	token  string
	topics []string
	users  []string
}

func (w *wxpusher) Describe(s *notifier.Schema) {
	s.Name, s.Site = "WxPusher", "https://wxpusher.zjiecode.com/docs/"
	s.Setup = "Create an application in the console at wxpusher.zjiecode.com/admin and copy its appToken; " +
		"a user who follows it finds the ID (UID_…) under My UID in the WxPusher account in WeChat."
	s.Groups(notifier.GroupChat, notifier.GroupRegional)
	s.Words("微信", "weixin", "china")
	s.URL("wxpusher://{token|targets}[/{targets...}]")
	s.Hints(
		notifier.Hint{Text: `(?<token>AT_\w{20,})`, Is: "the token of an application"},
		notifier.Hint{Text: `(?<targets>UID_\w{20,})`, Is: "the ID of a user"},
	)
	s.Secret(&w.token, "token", "token of the application, which begins with AT_").Match(`^AT_\S+$`).Example("AT_abc1234")
	s.List(&w.topics, "targets", "IDs of topics",
		notifier.Prefixed{Prefix: "UID_", Items: &w.users, Doc: "ID of a user"}).Alias("to").Normalize(wxpusherTarget).Example("123")
}

var wxpusherTargetPattern = lazyregexp.New(`^((?i:UID_)\S+|[1-9][0-9]{0,17})$`)

func wxpusherTarget(s string) (string, error) {
	if !wxpusherTargetPattern.MatchString(s) {
		return "", errors.New("is not the ID of a topic, which is a number, or of a user, which begins with UID_")
	}
	if s[0] > '9' {
		s = "UID_" + s[len("UID_"):]
	}
	return s, nil
}

func (w *wxpusher) Finish(*notifier.Schema) error {
	if len(w.topics)+len(w.users) == 0 {
		return errors.New("the URL has no targets; add the ID of a topic or, with UID_ before it, of a user to the path")
	}
	return nil
}

var wxpusherTypes = map[notifier.Format]int{notifier.Text: 1, notifier.HTML: 2, notifier.Markdown: 3}

func (w *wxpusher) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	topics, users := []int{}, []string{}
	for _, id := range w.topics {
		n, err := strconv.Atoi(id)
		if err != nil {
			return err
		}
		topics = append(topics, n)
	}
	for _, id := range w.users {
		users = append(users, "UID_"+strings.TrimSpace(id))
	}
	var answer struct {
		Code int
		Msg  string
	}
	err := c.DoJSON(ctx, &notifier.Request{
		URL: "https://wxpusher.zjiecode.com/api/send/message",
		Body: notifier.JSON(map[string]any{
			"appToken": w.token, "summary": m.Title, "content": m.Body, "contentType": wxpusherTypes[m.Format],
			"topicIds": topics, "uids": users, "url": nil,
		}),
	}, &answer)
	if err == nil && answer.Code != 1000 {
		err = refusedError(answer.Code, answer.Msg)
	}
	return err
}
