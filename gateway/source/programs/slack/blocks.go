package slack

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// addBlocks adds blocks of Block Kit and returns how many have text. left is the
// number of blocks and elements that may still be read.
func addBlocks(m *source.Message, blocks []map[string]any, body *compose.Lines, left *int) int {
	shown := 0
	for _, b := range blocks {
		if *left--; *left < 0 {
			break
		}
		before := len(body.Parts)
		switch payload.Text(b["type"]) {
		case "header":
			if m.Title == "" {
				m.Title = slackTitle(payload.Get(b, "text", "text"))
				shown++
			} else {
				body.Add(slackText(b["text"]))
			}
		case "section":
			body.Add(slackText(b["text"]))
			for _, f := range payload.Objects(b["fields"], compose.MaxFacts) {
				body.Add(slackText(f))
			}
			addElement(m, b["accessory"], body)
		case "context":
			var parts []string
			for _, e := range payload.Objects(b["elements"], compose.MaxFacts) {
				if s := slackText(e); s != "" {
					parts = append(parts, s)
				}
			}
			body.Add(strings.Join(parts, " "))
		case "markdown":
			body.Add(payload.Text(b["text"]))
		case "rich_text":
			body.Add(richText(b["elements"], left))
		case "image":
			body.Add(slackText(b["title"]))
			compose.AddImage(m, payload.Or(b["image_url"], payload.Get(b, "slack_file", "url")))
		case "actions":
			for _, e := range payload.Objects(b["elements"], compose.MaxFacts) {
				addElement(m, e, body)
			}
		case "alert":
			body.Add(slackText(b["text"]))
			switch payload.Text(b["level"]) {
			case "error":
				compose.RaiseType(m, notifier.Failure)
			case "warning":
				compose.RaiseType(m, notifier.Warning)
			case "success":
				compose.RaiseType(m, notifier.Success)
			}
		case "card":
			for _, name := range []string{"title", "subtitle", "body", "subtext"} {
				body.Add(slackText(b[name]))
			}
			compose.AddImage(m, payload.Get(b, "hero_image", "image_url"))
			for _, e := range payload.Objects(b["actions"], compose.MaxFacts) {
				addElement(m, e, body)
			}
		case "carousel":
			addBlocks(m, payload.Objects(b["elements"], maxBlocks), body, left)
		case "container":
			body.Add(slackText(b["title"]))
			body.Add(slackText(b["subtitle"]))
			addBlocks(m, payload.Objects(b["child_blocks"], maxBlocks), body, left)
		case "plan":
			body.Add(payload.Text(b["title"]))
			addBlocks(m, payload.Objects(b["tasks"], maxBlocks), body, left)
		case "task_card":
			body.Add(compose.Field(payload.Text(b["status"]), payload.Text(b["title"])))
			body.Add(richText(payload.Get(b, "output", "elements"), left))
		case "table", "data_table":
			body.Add(payload.Text(b["caption"]))
			rows, _ := b["rows"].([]any)
			for _, row := range rows[:min(len(rows), maxBlocks)] {
				body.Add(slackRow(row, left))
			}
		case "layout":
			body.Add(payload.Text(b["label"]))
			addBlocks(m, payload.Objects(b["fallback"], maxBlocks), body, left)
		case "video":
			body.Link(payload.Text(payload.Get(b, "title", "text")), payload.Text(payload.Or(b["title_url"], b["video_url"])))
			body.Add(payload.Text(payload.Get(b, "description", "text")))
			compose.AddImage(m, b["thumbnail_url"])
		}
		if len(body.Parts) > before {
			shown++
		}
	}
	return shown
}

// addElement adds the link and the image of an element.
func addElement(m *source.Message, v any, body *compose.Lines) {
	if address := payload.Text(payload.Get(v, "url")); source.IsAddress(address) {
		body.Link(slackText(payload.Get(v, "text")), address)
	}
	compose.AddImage(m, payload.Get(v, "image_url"))
}

// slackRow returns the cells of a table row, separated by bars. left is as for
// slackBlocks.
func slackRow(row any, left *int) string {
	var cells []string
	for _, c := range payload.Objects(row, compose.MaxFacts) {
		if *left--; *left < 0 {
			break
		}
		s := payload.Text(payload.Or(c["text"], c["value"]))
		if payload.Text(c["type"]) == "rich_text" {
			s = strings.TrimSpace(richText(c["elements"], left))
		}
		cells = append(cells, s)
	}
	return strings.Join(cells, " | ")
}

// slackText returns a text object as Markdown.
func slackText(v any) string {
	s := payload.Text(payload.Get(v, "text"))
	if payload.Text(payload.Get(v, "type")) == "mrkdwn" {
		return slackMarkup(s)
	}
	return slackLiteral(markup.ReplaceEmojis(s))
}

// richText returns the elements of a rich text as Markdown. left is as for
// slackBlocks.
func richText(v any, left *int) string {
	var b strings.Builder
	for _, e := range payload.Objects(v, maxNested) {
		if *left--; *left < 0 {
			break
		}
		switch payload.Text(e["type"]) {
		case "rich_text_section", "rich_text_quote":
			b.WriteString(richText(e["elements"], left) + "\n")
		case "rich_text_preformatted":
			b.WriteString("```\n" + strings.Trim(richText(e["elements"], left), "\n") + "\n```\n")
		case "rich_text_list":
			for _, item := range payload.Objects(e["elements"], maxNested) {
				b.WriteString("- " + strings.TrimSpace(richText([]any{item}, left)) + "\n")
			}
		case "link":
			var l compose.Lines
			l.Link(payload.Text(e["text"]), payload.Text(e["url"]))
			b.WriteString(l.String())
		case "emoji":
			b.WriteString(slackEmoji(e))
		case "user":
			b.WriteString("<@" + payload.Text(e["user_id"]) + ">")
		case "channel":
			b.WriteString("<#" + payload.Text(e["channel_id"]) + ">")
		case "usergroup":
			b.WriteString("<!subteam^" + payload.Text(e["usergroup_id"]) + ">")
		case "broadcast":
			b.WriteString("<!" + payload.Text(e["range"]) + ">")
		case "date":
			b.WriteString("<!date^" + payload.Text(e["timestamp"]) + "^" + payload.Text(e["format"]) + "|" + payload.Text(e["fallback"]) + ">")
		case "color":
			b.WriteString(payload.Text(e["value"]))
		default:
			b.WriteString(richStyle(payload.Text(e["text"]), e["style"]))
		}
	}
	return b.String()
}

// richStyle returns a text of a rich text in its style.
func richStyle(s string, style any) string {
	if payload.Get(style, "code") == true && s != "" {
		return "`" + s + "`"
	}
	s = slackLiteral(s)
	inner := strings.TrimSpace(s)
	if inner == "" {
		return s
	}
	before, after, _ := strings.Cut(s, inner)
	for _, mark := range []struct{ name, sign string }{{"strike", "~~"}, {"italic", "_"}, {"bold", "**"}} {
		if payload.Get(style, mark.name) == true {
			inner = mark.sign + inner + mark.sign
		}
	}
	return before + inner + after
}

// slackEmoji returns an emoji of a rich text, or its name if it is one of a workspace.
func slackEmoji(e map[string]any) string {
	var b strings.Builder
	for code := range strings.SplitSeq(payload.Text(e["unicode"]), "-") {
		if n, err := strconv.ParseInt(code, 16, 32); err == nil && n > 0 {
			b.WriteRune(rune(n))
		}
	}
	return cmp.Or(b.String(), markup.ReplaceEmojis(":"+payload.Text(e["name"])+":"))
}
