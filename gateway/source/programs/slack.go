package programs

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
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
		// The fields are those of the Web API, and of a login at Rocket.Chat.
		Tokens: []source.TokenPlace{{Path: true}, {Header: "X-Auth-Token"}, {Field: "token"}, {Field: "password"}},
		Scheme: source.SchemeSlack,
		API: &source.API{
			Endpoints: slices.Concat(rocketEndpoints(), mattermostEndpoints(), slackWebEndpoints(), []source.Endpoint{{
				// /services/T…/B…/… of Slack, /hooks/… of Mattermost and Rocket.Chat
				Paths: []string{"", "{token}", "*/{token}", "*/*/{token}", "*/*/*/{token}"}, Read: readSlack, Reply: replySlack,
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

// readSlack reads a message of an incoming webhook.
func readSlack(_ context.Context, r *source.Request) (*source.Message, error) {
	data, err := r.JSONPayload("Slack", "payload")
	if err != nil {
		return nil, err
	}
	return checkContent(slackMessage(data), "Slack", r)
}

// slackMessage returns the message of a payload.
func slackMessage(data any) *source.Message {
	m := &source.Message{Format: "markdown", Dialect: markup.DialectSlack}
	var body lines
	left := maxElements
	blocks := addSlackBlocks(m, payload.Objects(payload.Get(data, "blocks"), maxBlocks), &body, &left)
	if blocks == 0 { // text repeats the blocks for clients that cannot show them
		body.add(payload.Text(payload.Get(data, "markdown_text")))
		body.add(slackMarkup(payload.Text(payload.Or(payload.Get(data, "text"), payload.Get(data, "msg"))))) // msg is Rocket.Chat's
	}
	switch payload.Text(payload.Get(data, "priority", "priority")) { // Mattermost's
	case "urgent":
		raiseType(m, notifier.Failure)
	case "important":
		raiseType(m, notifier.Warning)
	}
	attachments, _ := payload.Get(data, "attachments").([]any)
	if one, ok := payload.Get(data, "attachments").(map[string]any); ok {
		attachments = []any{one}
	}
	all := payload.Objects(attachments, maxBlocks)
	for _, a := range all {
		addSlackAttachment(m, a, &body, len(all) == 1)
	}
	if more := len(attachments) - maxBlocks; more > 0 {
		body.add("and " + payload.Text(more) + " more")
	}
	m.Body = body.String()
	rate(m, notifier.Type(m.Type), stateWithoutColor(m))
	return m
}

// addSlackAttachment adds an attachment, the older form of a message before blocks. The
// only attachment of a message can have its title.
func addSlackAttachment(m *source.Message, a map[string]any, body *lines, only bool) {
	raiseType(m, slackColor(payload.Text(a["color"])))
	title, pretext, fallback := slackTitle(a["title"]), slackMarkup(payload.Text(a["pretext"])), slackTitle(a["fallback"])
	link, content := payload.Text(a["title_link"]), payload.Text(payload.Or(a["text"], a["msg"])) // msg is Rocket.Chat's
	nested := payload.Objects(a["blocks"], maxBlocks)
	isTitle := only && m.Title == "" && !slices.ContainsFunc(nested, isHeader)
	empty := title == "" && content == "" && len(payload.Objects(a["fields"], 1)) == 0 && len(nested) == 0
	switch {
	case isTitle && title != "":
		m.Title = title
		body.add(pretext)
	case isTitle && !empty && isTitleLike(pretext) && !strings.Contains(pretext, "<"): // it mentions nobody
		m.Title = slackTitle(a["pretext"])
	case isTitle && !empty && len(body.parts) == 0 && isTitleLike(fallback) && !strings.HasPrefix(content, fallback):
		m.Title = fallback
		body.add(pretext)
	default:
		body.add(pretext)
		body.link(title, link)
	}
	if author := payload.Text(a["author_name"]); author == "" || !strings.HasPrefix(m.Title, author) {
		body.link(author, payload.Text(a["author_link"]))
	}
	body.add(slackMarkup(content))
	for _, f := range payload.Objects(a["fields"], maxFacts) {
		body.add(fact(slackMarkup(payload.Text(f["title"])), slackMarkup(payload.Text(f["value"]))))
	}
	if isTitle && title != "" && source.IsAddress(link) {
		body.add(link)
	}
	left := maxElements
	if blocks := addSlackBlocks(m, nested, body, &left); blocks == 0 && empty && pretext == "" {
		body.add(fallback)
	}
	for _, action := range payload.Objects(a["actions"], maxFacts) {
		if source.IsAddress(payload.Text(action["url"])) {
			body.link(payload.Text(action["text"]), payload.Text(action["url"]))
		}
	}
	body.add(slackMarkup(payload.Text(a["footer"])))
	addImage(m, payload.Or(a["image_url"], a["thumb_url"]))
}

// isHeader reports whether a block is a header.
func isHeader(b map[string]any) bool { return payload.Text(b["type"]) == "header" }

// isTitleLike reports whether a text can be a title: it is one short line.
func isTitleLike(s string) bool {
	const max = 200 // bytes
	return s != "" && len(s) <= max && !strings.Contains(s, "\n")
}

// slackColor returns the type for the colour of an attachment, or "".
func slackColor(color string) notifier.Type {
	switch strings.ToLower(strings.TrimSpace(color)) {
	case "danger", "red": // Rocket.Chat takes the names of colours
		return notifier.Failure
	case "warning", "orange", "yellow":
		return notifier.Warning
	case "good", "green":
		return notifier.Success
	}
	return typeOfColor(parseColor(color))
}

// replySlack answers as Slack does, with the text "ok" or an error. It answers in JSON
// at the addresses of Rocket.Chat, /hooks/ID/TOKEN.
func replySlack(o source.Outcome) source.Reply {
	if strings.HasPrefix(o.Request.Path, "hooks/") && strings.Count(o.Request.Path, "/") == 2 {
		if o.Error != "" {
			return jsonReply(o.Status, map[string]any{"success": false, "error": o.Error})
		}
		return jsonReply(http.StatusOK, map[string]any{"success": true})
	}
	r := source.Reply{Status: o.Status, ContentType: "text/plain; charset=utf-8", Body: []byte(markup.Printable(o.Error))}
	if o.Error == "" {
		r.Status, r.Body = http.StatusOK, []byte("ok")
	}
	return r
}
