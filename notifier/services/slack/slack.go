package slack

import (
	"context"
	"errors"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/jsontemplate"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/shown"
)

var _ = notifier.Register[service]()

// service posts through an incoming webhook, starts a workflow or posts as a bot.
// Only a bot can send files and find people by their e-mail address.
type service struct {
	botname     string
	accessToken string
	token       [4]string // parts of the address of a webhook or workflow
	targets     []string
	image       bool
	footer      bool
	timestamp   bool
	blocks      bool
	mode        string
	update      bool
	template    jsontemplate.Template

	shown shown.Messages // with update
}

// Ways to post to Slack.
const (
	modeHook     = "hook"
	modeGov      = "gov-hook"
	modeBot      = "bot"
	modeWorkflow = "workflow"
	modeTrigger  = "trigger"
)

func (k *service) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Slack", "https://api.slack.com/messaging/webhooks"
	s.Setup = "Create an app at api.slack.com/apps, turn on Incoming Webhooks and copy the webhook's address, " +
		"or install the app with the scope chat:write and copy its Bot User OAuth Token (xoxb-…)."
	s.Groups(notifier.GroupChat)
	s.Words("slack bot", "slack webhook", "salesforce")
	s.URL(
		"slack://[{botname}@]{access_token}[/{targets...}]",
		"slack://[{botname}@]{token_a}[/{token_b}][/{token_c}][/{targets...}]",
	)
	s.Way(2, "with a webhook")
	s.Way(1, "with the token of a bot")
	s.Native(
		"https://hooks.slack.com/services/{token_a}/{token_b}/{token_c}",
		"https://hooks.slack-gov.com/services/{token_a}/{token_b}/{token_c}?mode=gov-hook",
		"https://hooks.slack.com/workflows/{token_a}/{token_b}/{token_c}/{token_d}?mode=workflow",
		"https://hooks.slack.com/triggers/{token_a}/{token_b}/{token_c}?mode=trigger",
	)
	s.Hints(
		notifier.Hint{Text: `(?<access_token>(?:xoxe\.)?xox[abp]-[\w-]{10,})`, Is: "the token of a bot or a user"},
		notifier.Hint{
			Text: `xapp-[\w-]+`, Is: "an app-level token",
			Note: "an app-level token cannot send messages; the page OAuth & Permissions " +
				"of the app has the Bot User OAuth Token, which begins with xoxb-",
		},
		notifier.Hint{
			Text: `https://(?:app\.slack\.com/client|[\w-]+\.slack\.com/archives)/\S+`,
			Is:   "the address of a channel", Note: "Slack needs the address of a webhook, or the token of a bot",
		},
	)
	s.Format, s.Attachments = notifier.Markdown, true
	s.Dialect(markup.DialectSlack)
	s.Limits.Body = 35000
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved) // with update
	s.Acknowledge = notifier.AcknowledgeByButton
	// Send escapes texts.
	s.Foreign = &notifier.ForeignText{Escape: chattext.AsIs}
	s.String(&k.botname, "botname", "", "name to post under").Alias("user")
	s.Secret(&k.accessToken, "access_token", "OAuth token of a bot").Match(botToken).Example("xoxb-1234-1234-abc124")
	s.Secret(&k.token[0], "token_a", "first part of the address or the whole address, or the token of a bot").
		Alias("token").Example("T1JJ3T3L2")
	s.Secret(&k.token[1], "token_b", "second part of the address").Example("A1BRTD4JD")
	s.Secret(&k.token[2], "token_c", "third part of the address").Example("TIiajkdnlazkcOXrIdevi7FQ")
	s.Secret(&k.token[3], "token_d", "fourth part of a workflow's address")
	s.List(&k.targets, "targets", "#channel, @user, +id or e-mail address, with :thread").Alias("to").Example("#general")
	s.Bool(&k.image, "image", true, "show the icon of the message's type")
	s.Bool(&k.footer, "footer", true, "show the sender below the message")
	s.Bool(&k.timestamp, "timestamp", true, "show the time in the footer; not with blocks")
	s.Bool(&k.blocks, "blocks", false, "lay the message out in blocks")
	s.Choice(&k.mode, "mode", "", []string{modeHook, modeGov, modeBot, modeWorkflow, modeTrigger},
		"what the token is for; default: according to the token")
	s.Bool(&k.update, "update", false, "change the first message about an incident instead of adding one")
	k.template.Describe(s)
}

const botToken = `^(xoxe\.)?xox[abp]-[a-z0-9-]+$`

var (
	botTokenPattern = lazyregexp.New(`(?i)` + botToken)
	partPattern     = lazyregexp.New(`^[A-Za-z0-9]+$`)
)

func (k *service) Finish(s *notifier.Schema) error {
	k.normalize()
	if err := k.template.Check(checkTemplate); err != nil {
		return err
	}
	if k.template.Given() || k.mode == modeWorkflow || k.mode == modeTrigger {
		s.Acknowledge = notifier.AcknowledgeInText
	}
	if k.blocks && !k.template.Given() && k.mode != modeWorkflow && k.mode != modeTrigger {
		s.Limits.Title, s.Limits.Body = maxHeader, maxSection
	}
	if k.mode == modeBot || k.mode == "" && k.accessToken != "" {
		if k.accessToken == "" {
			return errors.New("mode=bot needs the OAuth token of the bot, which begins with xoxb-")
		}
		if len(k.targets) == 0 {
			k.targets = []string{"#general"}
		}
		if k.update && k.template.Given() {
			return shown.ErrTemplate
		}
		if k.update {
			s.Limits.Reserve = shown.Reserve
		}
		return nil
	}
	if k.update {
		return errors.New("update=yes needs the token of a bot, because a webhook " +
			"cannot change messages; write slack://xoxb-…/channel, or leave update out")
	}
	s.Attachments = false // Slack accepts files from bots only
	want := 3
	if k.mode == modeWorkflow {
		want = 4
	}
	for i, part := range k.token {
		workflow := k.mode == modeWorkflow || k.mode == modeTrigger
		if i < want && part == "" || i >= want && part != "" {
			if workflow {
				return errors.New("the address of a workflow has four parts after /workflows/, and the address of a trigger has three after /triggers/")
			}
			return errors.New("the address of a webhook has three parts after /services/, as in slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazk")
		}
		if part != "" && !workflow && !partPattern.MatchString(part) {
			return errors.New("the parts of the address of a webhook have letters and digits only")
		}
	}
	return nil
}

// normalize moves tokens and targets to their fields: the grammar of the URL
// cannot tell a token of a bot from a part of an address.
func (k *service) normalize() {
	switch all := strings.FieldsFunc(k.token[0], func(r rune) bool { return strings.ContainsRune(" \t\r\n,#\\/", r) }); {
	case botTokenPattern.MatchString(k.token[0]):
		// A bot has no further parts, so these are targets.
		k.accessToken = k.token[0]
		for _, t := range []string{k.token[2], k.token[1]} {
			if t != "" {
				k.targets = append([]string{t}, k.targets...)
			}
		}
		k.token = [4]string{}
	case len(all) > 1 && len(all) <= 4:
		k.token = [4]string{}
		copy(k.token[:], all)
	}
	if (k.mode == modeWorkflow || k.mode == modeTrigger) && len(k.targets) > 0 {
		// A workflow has no targets, so these are parts of its address.
		k.token[3], k.targets = strings.Join(append([]string{k.token[3]}, k.targets...), ""), nil
	}
}

func (k *service) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	title, body := headline(m), mrkdwn(m)
	var content map[string]any
	if k.template.Given() {
		filled := *m
		filled.Title, filled.Body = title, body
		icon := ""
		if k.image {
			icon = m.Icon(72)
		}
		var err error
		if content, err = k.template.Fill(ctx, c, jsontemplate.Values(&filled, icon), checkTemplate); err != nil {
			return err
		}
	}
	switch k.mode {
	case modeWorkflow, modeTrigger:
		if content != nil {
			return c.PostJSON(ctx, k.workflowURL(), content)
		}
		text := &notifier.Message{Title: title, Body: body}
		return c.PostJSON(ctx, k.workflowURL(), map[string]string{"text": text.Text(": ")})
	}
	payload := k.payload(m, body)
	if content != nil {
		payload = map[string]any{"attachments": []any{content}}
		if k.botname != "" {
			payload["username"] = k.botname
		}
	}
	return k.post(ctx, c, m, payload)
}

// headline returns the title of m, in Slack's markup if m is of another program.
func headline(m *notifier.Message) string {
	if m.Foreign {
		return escaper.Replace(m.Title)
	}
	return m.Title
}

// mrkdwn returns the body of m in Slack's markup. A plain text may have it already.
func mrkdwn(m *notifier.Message) string {
	switch {
	case m.Format != notifier.Markdown && m.Foreign:
		return escaper.Replace(m.Body)
	case m.Format != notifier.Markdown:
		return m.Body
	case m.Source == notifier.Markdown:
		return markup.DialectSlack.Write(m.Body, !m.Foreign)
	case m.Source == notifier.HTML:
		return markup.DialectSlack.Write(m.Body, false)
	case m.Foreign:
		return escaper.Replace(m.Body)
	}
	return m.Body
}

// workflowURL returns the address of a workflow or its trigger.
func (k *service) workflowURL() string {
	return "https://hooks.slack.com/" + k.mode + "s" + notifier.Path(k.token[:]...)
}

// checkTemplate returns an error if a template is not made of blocks.
// See https://api.slack.com/reference/block-kit/blocks.
func checkTemplate(t map[string]any) error { return jsontemplate.Objects(t, "blocks", "type") }
