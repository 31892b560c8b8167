package programs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/slack"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

func init() {
	source.Register(source.Format{
		Name:    "discord",
		Program: "Discord",
		Doc:     "https://docs.discord.com/developers/resources/webhook#execute-webhook",
		Checked: "2026-08-06",
		Has:     []string{"content|embeds|components|poll", "embeds|username|avatar_url|components|poll?"},
		Reads:   []string{"slack"},
		Tokens:  []source.TokenPlace{{Path: true}},

		MaxFiles: 10, // Discord's limit
		API: &source.API{
			Clean: discordPath,
			Endpoints: []source.Endpoint{
				{Paths: discordHooks, Read: readDiscord, Reply: replyDiscord},
				{Methods: compose.GetMethods, Paths: discordHooks, Reply: replyDiscordHook},
				{Paths: []string{"*/{token}/slack"}, Read: slack.Read, Reply: slack.Reply},
				{Paths: []string{"*/{token}/github"}, Read: readGitHub, Reply: replyDiscord},
				{Methods: []string{http.MethodPatch}, Paths: discordMessages, Read: readDiscordEdit, Reply: replyDiscordEdit},
				{Methods: []string{http.MethodDelete}, Paths: discordMessages, Reply: replyDiscord},
				{Methods: compose.GetMethods, Paths: discordMessages, Read: readDiscordMessage, Reply: replyDiscord},
			},
			Images: true,
		},
	})
}

// discordHooks are the paths of a webhook, which may lack its ID or its token, and discordMessages
// are the paths of its messages.
var (
	discordHooks    = []string{"", "{token}", "*/{token}"}
	discordMessages = []string{"*/{token}/messages/*"}
)

// discordPrefix matches the beginning of the paths of Discord's own webhooks.
var discordPrefix = lazyregexp.New(`^api/(v\d+/)?webhooks/`)

// discordPath returns the path of a webhook without the prefix of Discord's own webhooks.
func discordPath(path string) string {
	return path[len(discordPrefix.FindString(path)):]
}

// maxEmbeds is Discord's limit on the embeds of a message.
const maxEmbeds = 10

// maxComponents is the maximum number of components to read of a message.
const maxComponents = 200

func readDiscord(_ context.Context, r *source.Request) (*source.Message, error) {
	data, err := r.JSONPayload("Discord", "payload_json")
	if err != nil {
		return nil, err
	}
	m := &source.Message{Format: "markdown", Dialect: markup.DialectDiscord}
	for _, name := range []string{"content", "embeds", "components", "username"} {
		compose.Echo(m, name, payload.Get(data, name))
	}
	body := discordBody{}
	body.own(payload.Text(payload.Get(data, "content")))
	embeds, _ := payload.Get(data, "embeds").([]any)
	for i, e := range payload.Objects(embeds, maxEmbeds) {
		title, address := payload.Text(e["title"]), payload.Text(e["url"])
		if i == 0 && title != "" {
			m.Title = m.Dialect.Title(title)
		} else {
			body.link(title, address)
		}
		body.link(m.Dialect.Escape(payload.Text(payload.Get(e, "author", "name"))), payload.Text(payload.Get(e, "author", "url")))
		body.own(payload.Text(e["description"]))
		for _, f := range payload.Objects(e["fields"], compose.MaxFacts) {
			body.own(compose.Field(payload.Text(f["name"]), payload.Text(f["value"])))
		}
		if i == 0 && title != "" && source.IsAddress(address) {
			body.Add(address)
		}
		body.Add(m.Dialect.Escape(payload.Text(payload.Get(e, "footer", "text"))))
		if color, ok := payload.Float(e["color"]); ok {
			compose.RaiseType(m, compose.TypeOfColor(int64(payload.Int(color))))
		}
		compose.AddImage(m, payload.Get(e, "image", "url"))
		compose.AddImage(m, payload.Get(e, "thumbnail", "url"))
	}
	body.More(m, len(embeds)-maxEmbeds, "embeds")
	left := maxComponents
	addDiscordComponents(m, payload.Get(data, "components"), &body, &left)
	if question := payload.Text(payload.Get(data, "poll", "question", "text")); question != "" {
		body.Add(m.Dialect.Escape(question))
		for _, a := range payload.Objects(payload.Get(data, "poll", "answers"), maxEmbeds) {
			body.Add("- " + m.Dialect.Escape(payload.Text(payload.Get(a, "poll_media", "text"))))
		}
	}
	m.Body = body.String()
	compose.SetType(m, notifier.Type(m.Type), compose.StateWithoutColor(m))
	if m, err = compose.CheckContent(m, "Discord", r); err != nil {
		return nil, &source.Error{Status: http.StatusBadRequest, Code: "50006", Err: err}
	}
	return m, nil
}

// discordBody is the body of a message in Discord's markup.
type discordBody struct{ compose.Lines }

// own adds a text in Discord's markup. Markup left open in it ends there.
func (t *discordBody) own(s string) { t.Add(markup.DialectDiscord.Contain(s)) }

// link adds a link with a text in Discord's markup. If the text or a valid address is missing, it
// adds only the other.
func (t *discordBody) link(text, address string) {
	switch {
	case !source.IsAddress(address):
		t.own(text)
	case strings.TrimSpace(text) == "":
		t.Add(address)
	default:
		t.Add(markup.DialectDiscord.Link(markup.DialectDiscord.Contain(text), address))
	}
}

// The types of components with text, links or images.
const (
	discordButton    = 2
	discordText      = 10
	discordThumbnail = 11
	discordGallery   = 12
)

// addDiscordComponents adds the texts, links and images of components. A message has
// components instead of content and embeds. left is the number of components that may
// still be read.
func addDiscordComponents(m *source.Message, v any, body *discordBody, left *int) {
	for _, c := range payload.Objects(v, maxComponents) {
		if *left--; *left < 0 {
			return
		}
		switch payload.Int(c["type"]) {
		case discordButton:
			if address := payload.Text(c["url"]); source.IsAddress(address) {
				body.link(m.Dialect.Escape(payload.Text(c["label"])), address)
			}
		case discordText:
			body.own(payload.Text(c["content"]))
		case discordThumbnail:
			compose.AddImage(m, payload.Get(c, "media", "url"))
		case discordGallery:
			for _, item := range payload.Objects(c["items"], maxEmbeds) {
				body.own(payload.Text(item["description"]))
				compose.AddImage(m, payload.Get(item, "media", "url"))
			}
		}
		if color, ok := payload.Float(c["accent_color"]); ok {
			compose.RaiseType(m, compose.TypeOfColor(int64(payload.Int(color))))
		}
		addDiscordComponents(m, c["components"], body, left)
		if accessory := c["accessory"]; accessory != nil {
			addDiscordComponents(m, []any{accessory}, body, left)
		}
	}
}

// readGitHub reads an event of GitHub, which Discord's webhooks accept at an address of their own.
func readGitHub(ctx context.Context, r *source.Request) (*source.Message, error) {
	github, err := source.Builtin("github")
	if err != nil {
		return nil, err
	}
	return github.Read(ctx, r)
}

// readDiscordEdit reads the new text of a message, which is sent as a new message. Other changes,
// such as of buttons, are not sent.
func readDiscordEdit(ctx context.Context, r *source.Request) (*source.Message, error) {
	m, err := readDiscord(ctx, r)
	if errors.Is(err, compose.ErrNoText) {
		return &source.Message{Skip: true}, nil
	}
	if err != nil {
		return nil, err
	}
	compose.MarkEdited(m)
	return m, nil
}

// readDiscordMessage refuses to return a message, because the gateway does not store it.
func readDiscordMessage(context.Context, *source.Request) (*source.Message, error) {
	return nil, &source.Error{Status: http.StatusNotFound, Code: "10008", Err: errors.New("the gateway does not keep messages")}
}

// replyDiscord answers with 204 or, with ?wait=true or for a message with files, with the message.
func replyDiscord(o source.Outcome) source.Reply {
	switch wait, err := strconv.ParseBool(o.Request.Query.Get("wait")); {
	case o.Error != "":
		return discordError(o)
	case o.Message.Skip || o.Request.Files == 0 && (err != nil || !wait):
		return source.Reply{Status: http.StatusNoContent}
	}
	return discordMessage(o, strconv.FormatUint(compose.NumericID(o, 22), 10), nil)
}

// replyDiscordEdit answers with the message that was changed.
func replyDiscordEdit(o source.Outcome) source.Reply {
	if o.Error != "" {
		return discordError(o)
	}
	_, id, _ := strings.Cut(discordPath(o.Request.Path), "/messages/")
	return discordMessage(o, id, o.Time.UTC().Format(time.RFC3339))
}

// replyDiscordHook answers with the webhook, which clients ask for to check its address.
func replyDiscordHook(o source.Outcome) source.Reply {
	if o.Error != "" {
		return discordError(o)
	}
	id, token := discordHook(o.Request)
	return compose.JSONReply(http.StatusOK, map[string]any{
		"id": id, "type": 1, "name": discordName, "avatar": nil, "channel_id": id, "guild_id": id, "application_id": nil, "token": token,
	})
}

// discordName is the name of the webhook.
const discordName = "caddy-notify"

// discordHook returns the ID and the token of the webhook that r addresses. Clients read
// the ID as a number.
func discordHook(r *source.Request) (id, token string) {
	segments := strings.Split(discordPath(r.Path), "/")
	token = segments[0]
	if len(segments) > 1 {
		id, token = segments[0], segments[1]
	}
	if _, err := strconv.ParseUint(id, 10, 64); err != nil {
		id = "1"
	}
	return id, token
}

// in addition to the keys of Base, and before them
func discordMessage(o source.Outcome, id string, edited any) source.Reply {
	hook, _ := discordHook(o.Request)
	out := map[string]any{
		"id": id, "type": 0, "content": "", "channel_id": hook, "webhook_id": hook, "timestamp": o.Time.UTC().Format(time.RFC3339),
		"edited_timestamp": edited,
		"embeds":           []any{}, "components": []any{}, "attachments": []any{}, "mentions": []any{}, "mention_roles": []any{},
		"mention_everyone": false, "tts": false, "pinned": false, "flags": 0,
	}
	name := discordName
	for field, value := range o.Message.Echo {
		if field == "username" {
			name = payload.Text(value)
			continue
		}
		out[field] = value
	}
	out["author"] = map[string]any{
		"id": hook, "username": name, "global_name": nil, "avatar": nil, "discriminator": "0000", "public_flags": 0,
		"bot": true,
	}
	return compose.JSONReply(http.StatusOK, out)
}

// discordError answers with an error and Discord's number for it.
func discordError(o source.Outcome) source.Reply {
	return compose.JSONReply(o.Status, map[string]any{"message": o.Error, "code": json.Number(cmp.Or(o.Code, discordCodes[o.Status], "0"))})
}

// discordCodes are the numbers of Discord's errors by status. See
// https://docs.discord.com/developers/topics/opcodes-and-status-codes#json.
var discordCodes = map[int]string{
	http.StatusBadRequest:            "50035", // invalid form body
	http.StatusUnauthorized:          "50027", // invalid webhook token
	http.StatusForbidden:             "50013", // no permission
	http.StatusNotFound:              "10015", // unknown webhook
	http.StatusRequestEntityTooLarge: "40005",
}
