package source

import (
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

func init() {
	register(Format{
		Name:    "slack",
		Program: "Slack, Mattermost and Rocket.Chat",
		Doc:     "https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks/",
		Checked: "2026-11-05",
		Tokens:  []TokenPlace{{Path: true}, {Field: "token"}},
		Scheme:  schemeSlack,
		api: &api{
			// /services/T…/B…/… of Slack, /hooks/… of Mattermost and Rocket.Chat
			paths: []string{"*", "*/*", "*/*/*", "*/*/*/*"},
			read:  readSlack,
			reply: replySlack,
		},
	})
}

// The maximum numbers of parts to read of a message for Slack.
const (
	maxBlocks = 50  // blocks, attachments or rows of a table; Slack's limit for blocks
	maxNested = 200 // elements of one list of rich text

	maxElements = 1000 // blocks and elements of a message or an attachment
)

func readSlack(r *Request) (*Message, error) {
	data, err := r.jsonPayload("Slack", "payload")
	if err != nil {
		return nil, err
	}
	m := &Message{Format: "markdown"}
	var body lines
	left := maxElements
	blocks := m.slackBlocks(list(get(data, "blocks"), maxBlocks), &body, &left)
	if blocks == 0 { // text repeats the blocks for clients that cannot show them
		body.add(slackMarkup(text(valueOr(get(data, "text"), get(data, "msg"))))) // msg is Rocket.Chat's
	}
	switch text(get(data, "priority", "priority")) { // Mattermost's
	case "urgent":
		m.raise(notifier.Failure)
	case "important":
		m.raise(notifier.Warning)
	}
	attachments, _ := get(data, "attachments").([]any)
	if one, ok := get(data, "attachments").(map[string]any); ok {
		attachments = []any{one}
	}
	for _, a := range list(attachments, maxBlocks) {
		m.slackAttachment(a, &body)
	}
	if more := len(attachments) - maxBlocks; more > 0 {
		body.add("and " + text(more) + " more")
	}
	m.Body = body.String()
	return m.check("Slack", r)
}

// slackAttachment adds an attachment, the older form of a message before blocks.
func (m *Message) slackAttachment(a map[string]any, body *lines) {
	m.raise(slackColor(text(a["color"])))
	body.add(slackMarkup(text(a["pretext"])))
	body.link(text(a["author_name"]), text(a["author_link"]))
	body.link(slackMarkup(text(a["title"])), text(a["title_link"]))
	body.add(slackMarkup(text(valueOr(a["text"], a["msg"])))) // msg is Rocket.Chat's
	for _, f := range list(a["fields"], maxFacts) {
		body.add(fact(slackMarkup(text(f["title"])), slackMarkup(text(f["value"]))))
	}
	left := maxElements
	blocks := m.slackBlocks(list(a["blocks"], maxBlocks), body, &left)
	if blocks == 0 && text(a["title"]) == "" && text(a["text"]) == "" && text(a["pretext"]) == "" && len(list(a["fields"], 1)) == 0 {
		body.add(slackMarkup(text(a["fallback"])))
	}
	for _, action := range list(a["actions"], maxFacts) {
		if isAddress(text(action["url"])) {
			body.link(text(action["text"]), text(action["url"]))
		}
	}
	body.add(slackMarkup(text(a["footer"])))
	m.image(valueOr(a["image_url"], a["thumb_url"]))
}

// slackColor returns the type for the colour of an attachment, or "".
func slackColor(color string) notifier.Type {
	switch strings.ToLower(strings.TrimSpace(color)) {
	case "danger":
		return notifier.Failure
	case "warning":
		return notifier.Warning
	case "good":
		return notifier.Success
	}
	return typeOfColor(parseColor(color))
}

// slackBlocks adds blocks of Block Kit and returns how many have text. left is the
// number of blocks and elements that may still be read.
func (m *Message) slackBlocks(blocks []map[string]any, body *lines, left *int) int {
	shown := 0
	for _, b := range blocks {
		if *left--; *left < 0 {
			break
		}
		before := len(body.parts)
		switch text(b["type"]) {
		case "header":
			if title := text(get(b, "text", "text")); m.Title == "" && len(body.parts) == 0 {
				m.Title = title
				shown++
			} else {
				body.add(title)
			}
		case "section":
			body.add(slackText(b["text"]))
			for _, f := range list(b["fields"], maxFacts) {
				body.add(slackText(f))
			}
			m.slackElement(b["accessory"], body)
		case "context":
			var parts []string
			for _, e := range list(b["elements"], maxFacts) {
				if s := slackText(e); s != "" {
					parts = append(parts, s)
				}
			}
			body.add(strings.Join(parts, " "))
		case "markdown":
			body.add(text(b["text"]))
		case "rich_text":
			body.add(richText(b["elements"], left))
		case "image":
			body.add(slackText(b["title"]))
			m.image(valueOr(b["image_url"], get(b, "slack_file", "url")))
		case "actions":
			for _, e := range list(b["elements"], maxFacts) {
				m.slackElement(e, body)
			}
		case "alert":
			body.add(slackText(b["text"]))
			switch text(b["level"]) {
			case "error":
				m.raise(notifier.Failure)
			case "warning":
				m.raise(notifier.Warning)
			case "success":
				m.raise(notifier.Success)
			}
		case "card":
			for _, name := range []string{"title", "subtitle", "body", "subtext"} {
				body.add(slackText(b[name]))
			}
			m.image(get(b, "hero_image", "image_url"))
			for _, e := range list(b["actions"], maxFacts) {
				m.slackElement(e, body)
			}
		case "carousel":
			m.slackBlocks(list(b["elements"], maxBlocks), body, left)
		case "container":
			body.add(slackText(b["title"]))
			body.add(slackText(b["subtitle"]))
			m.slackBlocks(list(b["child_blocks"], maxBlocks), body, left)
		case "plan":
			body.add(text(b["title"]))
			m.slackBlocks(list(b["tasks"], maxBlocks), body, left)
		case "task_card":
			body.add(fact(text(b["status"]), text(b["title"])))
			body.add(richText(get(b, "output", "elements"), left))
		case "table", "data_table":
			body.add(text(b["caption"]))
			rows, _ := b["rows"].([]any)
			for _, row := range rows[:min(len(rows), maxBlocks)] {
				body.add(slackRow(row, left))
			}
		case "layout":
			body.add(text(b["label"]))
			m.slackBlocks(list(b["fallback"], maxBlocks), body, left)
		case "video":
			body.link(text(get(b, "title", "text")), text(valueOr(b["title_url"], b["video_url"])))
			body.add(text(get(b, "description", "text")))
			m.image(b["thumbnail_url"])
		}
		if len(body.parts) > before {
			shown++
		}
	}
	return shown
}

// slackElement adds the link and the image of an element.
func (m *Message) slackElement(v any, body *lines) {
	if address := text(get(v, "url")); isAddress(address) {
		body.link(slackText(get(v, "text")), address)
	}
	m.image(get(v, "image_url"))
}

// slackRow returns the cells of a table row, separated by bars. left is as for
// slackBlocks.
func slackRow(row any, left *int) string {
	var cells []string
	for _, c := range list(row, maxFacts) {
		if *left--; *left < 0 {
			break
		}
		s := text(valueOr(c["text"], c["value"]))
		if text(c["type"]) == "rich_text" {
			s = strings.TrimSpace(richText(c["elements"], left))
		}
		cells = append(cells, s)
	}
	return strings.Join(cells, " | ")
}

// slackText returns a text object as Markdown.
func slackText(v any) string {
	s := text(get(v, "text"))
	if text(get(v, "type")) == "mrkdwn" {
		return slackMarkup(s)
	}
	return s
}

// richText returns the elements of a rich text as Markdown. left is as for
// slackBlocks.
func richText(v any, left *int) string {
	var b strings.Builder
	for _, e := range list(v, maxNested) {
		if *left--; *left < 0 {
			break
		}
		switch text(e["type"]) {
		case "rich_text_section", "rich_text_quote", "rich_text_preformatted":
			b.WriteString(richText(e["elements"], left) + "\n")
		case "rich_text_list":
			for _, item := range list(e["elements"], maxNested) {
				b.WriteString("- " + strings.TrimSpace(richText([]any{item}, left)) + "\n")
			}
		case "link":
			var l lines
			l.link(text(e["text"]), text(e["url"]))
			b.WriteString(l.String())
		case "emoji":
			b.WriteString(":" + text(e["name"]) + ":")
		case "user", "channel", "usergroup":
			b.WriteString("@" + text(e["user_id"]) + text(e["channel_id"]) + text(e["usergroup_id"]))
		case "broadcast":
			b.WriteString("@" + text(e["range"]))
		case "date":
			b.WriteString(text(e["fallback"]))
		case "color":
			b.WriteString(text(e["value"]))
		default:
			s := text(e["text"])
			if get(e, "style", "bold") == true && strings.TrimSpace(s) != "" {
				s = "**" + s + "**"
			}
			b.WriteString(s)
		}
	}
	return b.String()
}

var (
	slackReference = lazyregexp.New(`<([^<>\n|]{1,1000})(?:\|([^<>\n]*))?>`)
	slackBold      = lazyregexp.New(`(^|[\s(>_~])\*([^\s*](?:[^*\n]*[^\s*])?)\*($|[\s).,:;!?_~])`)
	slackStrike    = lazyregexp.New(`(^|[\s(>*_])~([^\s~](?:[^~\n]*[^\s~])?)~($|[\s).,:;!?*_])`)
	slackEntities  = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

// slackMarkup converts links, mentions, bold and struck out text in Slack's markup to
// Markdown. It does not change Markdown, which Mattermost clients send.
func slackMarkup(s string) string {
	s = slackReference.ReplaceAllStringFunc(s, func(ref string) string {
		m := slackReference.FindStringSubmatch(ref)
		target, label := m[1], m[2]
		switch {
		case strings.HasPrefix(target, "@"), strings.HasPrefix(target, "#"):
			if label != "" {
				return target[:1] + label
			}
			return target
		case strings.HasPrefix(target, "!"):
			if label != "" {
				return label
			}
			name, _, _ := strings.Cut(target[1:], "^")
			return "@" + name
		case isAddress(target) || strings.HasPrefix(target, "mailto:"):
			if label == "" {
				return strings.TrimPrefix(target, "mailto:")
			}
			return "[" + label + "](" + target + ")"
		}
		return ref
	})
	s = slackBold.ReplaceAllString(s, "$1**$2**$3")
	s = slackStrike.ReplaceAllString(s, "$1~~$2~~$3")
	return slackEntities.Replace(s)
}

// replySlack answers as Slack does, with the text "ok" or an error. It answers in JSON
// at the addresses of Rocket.Chat, /hooks/ID/TOKEN.
func replySlack(o Outcome) Reply {
	if strings.HasPrefix(o.Request.Path, "hooks/") && strings.Count(o.Request.Path, "/") == 2 {
		if o.Error != "" {
			return jsonReply(o.Status, map[string]any{"success": false, "error": o.Error})
		}
		return jsonReply(http.StatusOK, map[string]any{"success": true})
	}
	r := Reply{Status: o.Status, ContentType: "text/plain; charset=utf-8", Body: []byte(o.Error)}
	if o.Error == "" {
		r.Status, r.Body = http.StatusOK, []byte("ok")
	}
	return r
}
