package services

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[kook]()

// kook sends to channels and users of KOOK as a bot, or to a channel through
// its webhook.
type kook struct {
	token    string
	mode     string
	channels []string
	users    []string
}

// The message types of KOOK.
const (
	kookText     = 1
	kookImage    = 2
	kookFile     = 4
	kookMarkdown = 9
)

const kookAPI = "https://www.kookapp.cn/api/v3"

func (k *kook) Describe(s *notifier.Schema) {
	s.Name, s.Site = "KOOK", "https://developer.kookapp.cn/doc/http/message"
	s.Setup = "Create an application at developer.kookapp.cn, copy the token of its bot " +
		"and invite the bot to your server; the targets are IDs of channels and users."
	s.Groups(notifier.GroupChat, notifier.GroupRegional)
	s.Words("开黑啦", "kaiheila", "china")
	s.URL("kook://{token}[/{targets...}]")
	s.Native(kookAPI + "/incoming/{token}?mode=webhook")
	s.Hints(
		notifier.Hint{Text: `(?<token>1/[A-Za-z0-9+/=]{4,12}/[A-Za-z0-9+/=]{20,40})`, Is: "the token of a bot"},
	)
	s.Attachments = true
	s.Format = notifier.Markdown
	s.Limits = markup.Limits{Body: 5000}
	s.Foreign = &notifier.ForeignText{Mentions: kookMentions}
	s.Secret(&k.token, "token", "token of the bot, or key of the webhook").Example("1/MTAxNzU=/AbCdEf0123456789==")
	s.List(&k.channels, "targets", "IDs of channels",
		notifier.Prefixed{Prefix: "@", Items: &k.users, Doc: "ID of a user"}).Alias("to").Normalize(kookTarget).Example("1234567890")
	s.Choice(&k.mode, "mode", "bot", []string{"bot", "webhook"}, "what the token belongs to")
}

var kookMention = lazyregexp.New(`\((met|rol|chn)\)`)

// kookMentions breaks (met)all(met) and the like, which mention users, roles and
// channels. See https://developer.kookapp.cn/doc/kmarkdown.
func kookMentions(text string) string {
	return kookMention.ReplaceAllString(text, "("+chattext.Separator+"$1)")
}

var kookTargetPattern = lazyregexp.New(`^@?[0-9]{1,20}$`)

func kookTarget(s string) (string, error) {
	if s = strings.TrimPrefix(s, "#"); !kookTargetPattern.MatchString(s) {
		return "", errors.New("must be the ID of a channel, or @ and the ID of a user")
	}
	return s, nil
}

func (k *kook) Finish(s *notifier.Schema) error {
	if k.mode == "webhook" {
		s.Attachments = false
	} else if len(k.channels)+len(k.users) == 0 {
		return errors.New("a bot needs a target; add the ID of a channel, or @ and the ID of a user, to the path")
	}
	return nil
}

func (k *kook) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	kind := kookText
	if m.Format == notifier.Markdown {
		kind = kookMarkdown
	}
	if k.mode == "webhook" {
		return k.post(ctx, c, "/incoming"+notifier.Path(k.token), map[string]any{"type": kind, "content": m.Body})
	}
	if m.Body != "" {
		if err := k.each(ctx, c, "text", kind, m.Body); err != nil {
			return err
		}
	}
	for i, a := range m.Attachments {
		key := "file " + strconv.Itoa(i)
		err := c.Steps.Once(key, func() error {
			address, err := k.upload(ctx, c, a)
			if err != nil {
				return fmt.Errorf("uploading an attachment: %w", err)
			}
			kind := kookFile
			if a.MediaType() == "image" {
				kind = kookImage
			}
			return k.each(ctx, c, key, kind, address)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// each sends content to all targets. step names the part of the message, so that
// a retry repeats only the parts that a target lacks.
func (k *kook) each(ctx context.Context, c *notifier.Client, step string, kind int, content string) error {
	var targets []string
	for _, id := range k.channels {
		targets = append(targets, step+"/message/"+id)
	}
	for _, id := range k.users {
		targets = append(targets, step+"/direct-message/"+id)
	}
	return c.Steps.Each(ctx, targets, func(ctx context.Context, target string) error {
		part := strings.Split(target, "/")
		return k.post(ctx, c, "/"+part[1]+"/create", map[string]any{"type": kind, "target_id": part[2], "content": content})
	})
}

func (k *kook) post(ctx context.Context, c *notifier.Client, path string, payload any) error {
	q := &notifier.Request{URL: kookAPI + path, Header: k.header(), Body: notifier.JSON(payload)}
	return checkedDo(ctx, c, q, "code", "message", 0)
}

func (k *kook) header() map[string]string {
	if k.mode == "webhook" {
		return nil
	}
	return map[string]string{"Authorization": "Bot " + k.token}
}

// upload uploads a file and returns its URL.
func (k *kook) upload(ctx context.Context, c *notifier.Client, a *notifier.Attachment) (string, error) {
	resp, err := c.Do(ctx, &notifier.Request{
		URL: kookAPI + "/asset/create", Header: k.header(),
		Body: notifier.Multipart(notifier.FormPart{Name: "file", File: a}),
	})
	if err != nil {
		return "", err
	}
	if err := checkAnswer(resp, "code", "message", 0); err != nil {
		return "", err
	}
	var stored struct{ Data struct{ URL string } }
	if err := resp.JSON(&stored); err != nil {
		return "", err
	}
	if stored.Data.URL == "" {
		return "", errors.New("the service's answer has no URL of the file")
	}
	return stored.Data.URL, nil
}
