package services

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[dingtalk]()

// dingtalk posts to a DingTalk group through a custom robot.
type dingtalk struct {
	token  string
	secret string
	phones []string
	format string
}

func (d *dingtalk) Describe(s *notifier.Schema) {
	s.Name, s.Site = "DingTalk", "https://open.dingtalk.com/document/robots/custom-robot-access"
	s.Recipients = 1 // the list has mentions
	s.Setup = "Add a custom robot in the settings of the DingTalk group and copy the access_token " +
		"from its webhook URL; if its security setting is a signature, copy the secret (SEC…) too."
	s.Groups(notifier.GroupChat, notifier.GroupRegional)
	s.Words("钉钉", "alibaba", "china")
	s.URL("dingtalk://[{secret}@]{token}[/{targets...}]")
	s.Native("https://oapi.dingtalk.com/robot/send?access_token={token}")
	s.Hints(
		notifier.Hint{Text: `(?<secret>SEC[0-9a-f]{64})`, Is: "the secret of a robot"},
	)
	s.Limits = markup.Limits{Unit: markup.UTF8Bytes, Title: 1000, Body: 20000}
	// Only the field at mentions people.
	s.Foreign = &notifier.ForeignText{Escape: chattext.AsIs, Mentions: chattext.BreakMarkup}
	s.Secret(&d.token, "token", "access token of the robot's webhook").Match(`^[a-z0-9]+$`).Alias("access_token").
		Required().Example("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	s.Secret(&d.secret, "secret", "secret for signatures, if the robot demands them").Match(`^[a-z0-9]+$`)
	s.Phones(&d.phones, "targets", "telephone numbers of members to mention").Alias("to").Normalize(dingtalkPhone).DropInvalid()
	s.Choice(&d.format, "format", "text", []string{"text", "markdown", "html"}, "what the message is converted to").Lenient()
}

// dingtalkPhone returns a number of 11 to 14 digits without a +.
func dingtalkPhone(s string) (string, error) {
	s, err := notifier.Phone(s)
	s = strings.TrimPrefix(s, "+")
	if err == nil && (len(s) < 11 || len(s) > 14) {
		err = errors.New("is not a telephone number of 11 to 14 digits")
	}
	return s, err
}

// Finish puts the title into the body, except in Markdown messages, which have a
// title in DingTalk.
func (d *dingtalk) Finish(s *notifier.Schema) error {
	s.Format = notifier.Format(d.format)
	if s.Format != notifier.Markdown {
		s.Limits.Title = 0
	}
	return nil
}

func (d *dingtalk) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	phones := d.phones
	if phones == nil {
		phones = []string{}
	}
	payload := map[string]any{"at": map[string]any{"atMobiles": phones, "isAtAll": false}}
	if m.Format == notifier.Markdown {
		// DingTalk requires a title. It shows it in the list of conversations.
		payload["msgtype"] = "markdown"
		payload["markdown"] = map[string]string{"title": cmp.Or(m.Title, m.Identity.Name), "text": m.Body}
	} else {
		payload["msgtype"] = "text"
		payload["text"] = map[string]string{"content": m.Body}
	}
	query := notifier.Fields("access_token", d.token)
	if d.secret != "" {
		now := strconv.FormatInt(time.Now().UnixMilli(), 10)
		mac := hmac.New(sha256.New, []byte(d.secret))
		mac.Write([]byte(now + "\n" + d.secret))
		query.Set("timestamp", now)
		query.Set("sign", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	err := checkedDo(ctx, c, &notifier.Request{
		URL: "https://oapi.dingtalk.com/robot/send", Query: query, Body: notifier.JSON(payload),
	}, "errcode", "errmsg", 0)
	return unlessBusy(err, -1, 130101) // 130101: more than 20 messages in a minute
}
