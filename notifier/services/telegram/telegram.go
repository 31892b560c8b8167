package telegram

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/jsontemplate"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/shown"
)

var _ = notifier.Register[service]()

// service sends to people, groups and channels as a Telegram bot.
type service struct {
	token    string
	targets  []string
	image    bool
	detect   bool
	silent   bool
	preview  bool
	topic    int
	mdv      int
	content  string
	update   bool
	template jsontemplate.Template

	owner notifier.Cached[string] // the id of the chat to use without targets
	shown shown.Messages          // with update
}

// The maximum length of a message and of the caption of a file, in UTF-16 units.
const (
	maxText    = 4096
	maxCaption = 1024

	// maxRichText is the maximum length of a text for a template.
	maxRichText = 32768
)

func (t *service) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Telegram", "https://core.telegram.org/bots/api#sendmessage"
	s.Setup = "Send /newbot to @BotFather in Telegram to get the token, then write to the bot and " +
		"find your chat id in the answer of https://api.telegram.org/bot{bot_token}/getUpdates."
	s.Groups(notifier.GroupChat, notifier.GroupPhone)
	s.Words("telegram bot", "botfather")
	s.URL("tgram://{bot_token}[/{targets...}]")
	s.Hints(
		notifier.Hint{Text: `(?:bot)?(?<bot_token>\d{6,12}:[\w-]{30,50})`, Is: "the token of a bot"},
		notifier.Hint{
			Text: `https://api\.telegram\.org/bot(?<bot_token>\d{6,12}:[\w-]{30,50})(?:/\w*)?(?:\?.*)?`,
			Is:   "an address of the bot API",
		},
		notifier.Hint{
			Text: `(?:@|https://(?:t|telegram)\.me/)\w{2,30}[bB][oO][tT]`, Is: "the name of a bot",
			Note: "Telegram needs the token of the bot, which @BotFather shows after /mybots",
		},
		notifier.Hint{
			Text: `(?:@|https://(?:t|telegram)\.me/)(?<targets>[A-Za-z]\w{4,31})`,
			Is:   "the name of a channel or a group",
			Note: "the bot must be a member of the group, or an administrator of the channel", Guess: true,
		},
		notifier.Hint{Text: `(?<targets>-100\d{8,13})`, Is: "the ID of a group or a channel"},
	)
	s.Format, s.Attachments = notifier.HTML, true
	s.Limits = markup.Limits{Body: maxText, Unit: markup.UTF16Units}
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved) // with update
	s.Acknowledge = notifier.AcknowledgeByButton
	// text escapes plain texts. The title has a place of its own in a template.
	s.Foreign = &notifier.ForeignText{Title: true, Escape: chattext.AsIs, Mentions: chattext.BreakMentions}
	s.Secret(&t.token, "bot_token", "token of the bot").Match(`^(bot)?[0-9]+:[a-z0-9_-]+$`).
		Example("123456789:AAabcdefghijklmnopqrstuvwxyz0123456")
	s.List(&t.targets, "targets", "chat ids, @groups or @channels, with :topic").Alias("to").Normalize(parseTarget).Example("-1001234567890")
	s.Bool(&t.image, "image", false, "send the icon of the message's type first")
	s.Bool(&t.detect, "detect", true, "without targets, send to the first person who wrote to the bot")
	s.Bool(&t.silent, "silent", false, "deliver without a sound")
	s.Bool(&t.preview, "preview", false, "show a preview of the first link")
	s.Int(&t.topic, "topic", 0, "topic (thread) of a group").Range(0, 1<<53).Alias("thread")
	s.Enum(&t.mdv, "mdv", "v1", []notifier.Choice{{Name: "v1", Value: 1}, {Name: "v2", Value: 2}},
		"version of Telegram's Markdown, for format markdown").Lenient()
	s.Choice(&t.content, "content", "before", []string{"before", "after"}, "place of the text: before or after the files")
	s.Bool(&t.update, "update", false, "change the first message about an incident instead of adding one")
	t.template.Describe(s)
}

var targetPattern = lazyregexp.New(`(?i)^(?:(-?[0-9]{1,18})|@?([a-z_-][a-z0-9_-]+))(:[0-9]{1,18})?$`)

// parseTarget returns a target in the form of the API, with its topic.
func parseTarget(s string) (string, error) {
	m := targetPattern.FindStringSubmatch(s)
	switch {
	case m == nil:
		return "", errors.New("is not the id of a chat or a @name")
	case m[1] != "":
		return m[1] + m[3], nil
	}
	return "@" + m[2] + m[3], nil
}

func (t *service) Finish(s *notifier.Schema) error {
	t.token = strings.TrimPrefix(strings.ToLower(t.token[:3]), "bot") + t.token[3:]
	if len(t.targets) == 0 && !t.detect {
		return errors.New("the URL has no targets; add a chat id, as in tgram://123456789:abcdefg_hijklmnop/12315544")
	}
	if t.update && t.template.Given() {
		return shown.ErrTemplate
	}
	if t.update {
		s.Limits.Reserve = shown.Reserve
	}
	if t.template.Given() {
		// The texts of the template are plain, and title and body have separate
		// places in it.
		s.Acknowledge = notifier.AcknowledgeInText
		s.Format, s.Limits = notifier.Text, markup.Limits{Title: maxText, Body: maxRichText, Unit: markup.UTF16Units}
	}
	return t.template.Check(checkTemplate)
}

func (t *service) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	if len(t.targets) > 0 {
		return c.Steps.Each(ctx, t.targets, func(ctx context.Context, target string) error {
			chat := delivery{service: t, c: c, m: m, id: target, thread: t.topic}
			if name, topic, ok := strings.Cut(target, ":"); ok {
				chat.id = name
				chat.thread, _ = strconv.Atoi(topic)
			}
			if id, err := strconv.Atoi(chat.id.(string)); err == nil {
				chat.id = id
			}
			return chat.deliver(ctx)
		})
	}
	owner, err := t.owner.Get(ctx, func(ctx context.Context) (string, time.Duration, error) {
		var id string
		if c.LoadState(ctx, "owner", &id) && id != "" {
			return id, 0, nil
		}
		id, err := t.findOwner(ctx, c)
		if err == nil {
			c.SaveState(ctx, "owner", id)
		}
		return id, 0, err
	})
	if err != nil {
		return err
	}
	return delivery{service: t, c: c, m: m, id: owner, thread: t.topic}.deliver(ctx)
}

// findOwner returns the id of the first person who wrote to the bot, of those
// messages that Telegram still has.
func (t *service) findOwner(ctx context.Context, c *notifier.Client) (string, error) {
	var answer struct {
		Result []struct {
			Message struct {
				From struct {
					ID int64 `json:"id"`
				} `json:"from"`
			} `json:"message"`
		} `json:"result"`
	}
	resp, err := t.call(ctx, c, "getUpdates", notifier.Bytes("application/json", nil))
	if err != nil {
		return "", err
	}
	if err := resp.JSON(&answer); err != nil {
		return "", err
	}
	for _, update := range answer.Result {
		if id := update.Message.From.ID; id != 0 {
			return strconv.FormatInt(id, 10), nil
		}
	}
	return "", errors.New("nobody has written to the bot recently; write to it, or add a chat id to the URL")
}
