package slack

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

func init() {
	source.Register(source.Format{
		Name:    "slack",
		Program: "Slack, Mattermost and Rocket.Chat",
		Doc:     "https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks/",
		Checked: "2026-11-05",
		Has:     []string{"text|attachments|blocks|msg", "attachments|blocks|channel|username|alias|icon_url|icon_emoji|emoji|priority|props?"},
		// The fields are used by the Web API and by a login at Rocket.Chat.
		Tokens: []source.TokenPlace{{Path: true}, {Header: "X-Auth-Token"}, {Field: "token"}, {Field: "password"}},
		Scheme: source.SchemeSlack,
		API: &source.API{
			Endpoints: slices.Concat(rocketEndpoints(), mattermostEndpoints(), webEndpoints(), []source.Endpoint{{
				// /services/T…/B…/… of Slack, /hooks/… of Mattermost and Rocket.Chat
				Paths: []string{"", "{token}", "*/{token}", "*/*/{token}", "*/*/*/{token}"}, Read: Read, Reply: Reply,
			}}),
			Images: true,
		},
	})
}

// The maximum numbers of parts to read of a message for Slack.
const (
	maxBlocks = 50  // blocks, attachments or rows of a table; Slack's limit for blocks
	maxNested = 200 // elements of one list of rich text

	maxElements = 1000 // blocks and elements of a message or an attachment
)

// Read reads a message of an incoming webhook.
func Read(_ context.Context, r *source.Request) (*source.Message, error) {
	r.ReadQuery() // as Mattermost's server does for the parameter payload
	data, err := r.JSONPayload("Slack", "payload")
	if err != nil {
		return nil, err
	}
	return compose.CheckContent(slackMessage(data, dialectOf(r, data)), "Slack", r)
}

// dialectOf returns the chat in whose markup a webhook's payload is written. Webhooks have the
// address /hooks/TOKEN in Mattermost and /hooks/ID/TOKEN in Rocket.Chat, and each chat has some
// fields of its own.
func dialectOf(r *source.Request, data any) markup.Dialect {
	has := func(name string) bool { return payload.Get(data, name) != nil }
	hook := ""
	if rest, ok := strings.CutPrefix(r.Path, "hooks/"); ok {
		hook = rest
	}
	switch {
	case strings.Contains(hook, "/"), has("msg"), has("alias"):
		return markup.DialectRocketChat
	case hook != "", has("props"), has("priority"):
		return markup.DialectMattermost
	}
	return markup.DialectSlack
}

// slackMessage returns the message of a payload, whose texts are in a dialect.
func slackMessage(data any, dialect markup.Dialect) *source.Message {
	m := &source.Message{Format: "markdown", Dialect: dialect}
	body := text{dialect: dialect}
	left := maxElements
	list, _ := payload.Get(data, "blocks").([]any)
	blocks := addBlocks(m, payload.Objects(list, maxBlocks), &body, &left)
	body.More(m, len(list)-maxBlocks, "blocks")
	if blocks == 0 { // text repeats the blocks for clients that cannot show them
		body.markdown(payload.Text(payload.Get(data, "markdown_text")))
		own := payload.Text(payload.Or(payload.Get(data, "text"), payload.Get(data, "msg"))) // Rocket.Chat has msg
		if dialect == markup.DialectSlack && payload.Text(payload.Get(data, "mrkdwn")) == "false" {
			body.Add(unformatted(own))
		} else {
			body.own(own)
		}
	}
	switch payload.Text(payload.Get(data, "priority", "priority")) { // Mattermost has this
	case "urgent":
		compose.RaiseType(m, notifier.Failure)
	case "important":
		compose.RaiseType(m, notifier.Warning)
	}
	// Mattermost has them in props.
	attachments := slices.Concat(listOf(payload.Get(data, "attachments")), listOf(payload.Get(data, "props", "attachments")))
	all := payload.Objects(attachments, maxBlocks)
	for _, a := range all {
		addAttachment(m, a, &body, len(all) == 1)
	}
	body.More(m, len(attachments)-maxBlocks, "attachments")
	m.Body = body.String()
	words := *m
	words.Body = m.Dialect.Convert(m.Body, markup.Text, nil)
	compose.SetType(m, notifier.Type(m.Type), compose.StateWithoutColor(&words))
	return m
}

// listOf returns the attachments of a message, which some programs send as a single object.
func listOf(v any) []any {
	if one, ok := v.(map[string]any); ok {
		return []any{one}
	}
	list, _ := v.([]any)
	return list
}

// addAttachment adds an attachment, the predecessor of blocks. The only attachment of a message can
// set its title.
func addAttachment(m *source.Message, a map[string]any, body *text, only bool) {
	compose.RaiseType(m, typeOfColor(payload.Text(a["color"])))
	titleOf := func(name string) string { return m.Dialect.Title(body.titled(payload.Text(a[name]))) }
	title, pretext, fallback := titleOf("title"), payload.Text(a["pretext"]), titleOf("fallback")
	link, content := payload.Text(a["title_link"]), payload.Text(payload.Or(a["text"], a["msg"])) // Rocket.Chat has msg
	nested := payload.Objects(a["blocks"], maxBlocks)
	isTitle := only && m.Title == "" && !slices.ContainsFunc(nested, isHeader)
	empty := title == "" && content == "" && len(payload.Objects(a["fields"], 1)) == 0 && len(nested) == 0
	switch {
	case isTitle && title != "":
		m.Title = title
		body.own(pretext)
	case isTitle && !empty && compose.IsTitleLike(pretext) && !strings.Contains(pretext, "<"): // it mentions nobody
		m.Title = m.Dialect.Title(pretext)
	case isTitle && !empty && len(body.Parts) == 0 && compose.IsTitleLike(fallback) && !strings.HasPrefix(content, fallback):
		m.Title = fallback
		body.own(pretext)
	default:
		body.own(pretext)
		body.link(body.titled(payload.Text(a["title"])), link)
	}
	if author := payload.Text(a["author_name"]); author == "" || !strings.HasPrefix(m.Title, author) {
		body.link(body.labelled(author), payload.Text(a["author_link"]))
	}
	body.own(content)
	for _, f := range payload.Objects(a["fields"], compose.MaxFacts) {
		body.Add(compose.Field(body.titled(payload.Text(f["title"])), m.Dialect.Contain(payload.Text(f["value"]))))
	}
	if isTitle && title != "" && source.IsAddress(link) {
		body.Add(link)
	}
	left := maxElements
	if blocks := addBlocks(m, nested, body, &left); blocks == 0 && empty && pretext == "" {
		body.plain(fallback)
	}
	for _, action := range payload.Objects(a["actions"], compose.MaxFacts) {
		if source.IsAddress(payload.Text(action["url"])) {
			body.link(m.Dialect.Escape(payload.Text(action["text"])), payload.Text(action["url"]))
		}
	}
	body.Add(body.labelled(payload.Text(a["footer"])))
	compose.AddImage(m, payload.Or(a["image_url"], a["thumb_url"]))
}

// isHeader reports whether a block is a header.
func isHeader(b map[string]any) bool { return payload.Text(b["type"]) == "header" }

// typeOfColor returns the type for the colour of an attachment, or "".
func typeOfColor(color string) notifier.Type {
	switch strings.ToLower(strings.TrimSpace(color)) {
	case "danger", "red": // Rocket.Chat takes the names of colours
		return notifier.Failure
	case "warning", "orange", "yellow":
		return notifier.Warning
	case "good", "green":
		return notifier.Success
	}
	return compose.TypeOfColor(compose.ParseColor(color))
}

// Reply answers as Slack does, with the text "ok" or an error. It answers in JSON
// at the addresses of Rocket.Chat, /hooks/ID/TOKEN.
func Reply(o source.Outcome) source.Reply {
	if strings.HasPrefix(o.Request.Path, "hooks/") && strings.Count(o.Request.Path, "/") == 2 {
		if o.Error != "" {
			return compose.JSONReply(o.Status, map[string]any{"success": false, "error": o.Error})
		}
		return compose.JSONReply(http.StatusOK, map[string]any{"success": true})
	}
	r := source.Reply{Status: o.Status, ContentType: "text/plain; charset=utf-8", Body: []byte(markup.Printable(o.Error))}
	if o.Error == "" {
		r.Status, r.Body = http.StatusOK, []byte("ok")
	}
	return r
}
