package source

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

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
			if m.Title == "" {
				m.Title = slackTitle(get(b, "text", "text"))
				shown++
			} else {
				body.add(slackText(b["text"]))
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
	return slackLiteral(markup.ReplaceEmojis(s))
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
		case "rich_text_section", "rich_text_quote":
			b.WriteString(richText(e["elements"], left) + "\n")
		case "rich_text_preformatted":
			b.WriteString("```\n" + strings.Trim(richText(e["elements"], left), "\n") + "\n```\n")
		case "rich_text_list":
			for _, item := range list(e["elements"], maxNested) {
				b.WriteString("- " + strings.TrimSpace(richText([]any{item}, left)) + "\n")
			}
		case "link":
			var l lines
			l.link(text(e["text"]), text(e["url"]))
			b.WriteString(l.String())
		case "emoji":
			b.WriteString(slackEmoji(e))
		case "user":
			b.WriteString("<@" + text(e["user_id"]) + ">")
		case "channel":
			b.WriteString("<#" + text(e["channel_id"]) + ">")
		case "usergroup":
			b.WriteString("<!subteam^" + text(e["usergroup_id"]) + ">")
		case "broadcast":
			b.WriteString("<!" + text(e["range"]) + ">")
		case "date":
			b.WriteString("<!date^" + text(e["timestamp"]) + "^" + text(e["format"]) + "|" + text(e["fallback"]) + ">")
		case "color":
			b.WriteString(text(e["value"]))
		default:
			b.WriteString(richStyle(text(e["text"]), e["style"]))
		}
	}
	return b.String()
}

// richStyle returns a text of a rich text in its style.
func richStyle(s string, style any) string {
	if get(style, "code") == true && s != "" {
		return "`" + s + "`"
	}
	s = slackLiteral(s)
	inner := strings.TrimSpace(s)
	if inner == "" {
		return s
	}
	before, after, _ := strings.Cut(s, inner)
	for _, mark := range []struct{ name, sign string }{{"strike", "~~"}, {"italic", "_"}, {"bold", "**"}} {
		if get(style, mark.name) == true {
			inner = mark.sign + inner + mark.sign
		}
	}
	return before + inner + after
}

// slackEmoji returns an emoji of a rich text, or its name if it is one of a workspace.
func slackEmoji(e map[string]any) string {
	var b strings.Builder
	for code := range strings.SplitSeq(text(e["unicode"]), "-") {
		if n, err := strconv.ParseInt(code, 16, 32); err == nil && n > 0 {
			b.WriteRune(rune(n))
		}
	}
	return cmp.Or(b.String(), markup.ReplaceEmojis(":"+text(e["name"])+":"))
}
