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

// addBlocks adds blocks of Block Kit and returns how many have text. left is the number of blocks
// and elements that may still be read.
func addBlocks(m *source.Message, blocks []map[string]any, body *text, left *int) int {
	shown := 0
	for _, b := range blocks {
		if *left--; *left < 0 {
			break
		}
		before := len(body.Parts)
		switch payload.Text(b["type"]) {
		case "header":
			if m.Title == "" {
				m.Title = markup.OneLine(plainObject(b["text"]))
				shown++
			} else {
				body.Add(body.object(b["text"]))
			}
		case "section":
			body.Add(body.object(b["text"]))
			for _, f := range payload.Objects(b["fields"], compose.MaxFacts) {
				body.Add(body.object(f))
			}
			addElement(m, b["accessory"], body)
		case "context":
			var parts []string
			for _, e := range payload.Objects(b["elements"], compose.MaxFacts) {
				if s := body.object(e); s != "" {
					parts = append(parts, s)
				}
			}
			body.Add(strings.Join(parts, " "))
		case "markdown":
			body.markdown(payload.Text(b["text"]))
		case "rich_text":
			body.Add(body.richText(b["elements"], left))
		case "image":
			body.Add(body.object(b["title"]))
			compose.AddImage(m, payload.Or(b["image_url"], payload.Get(b, "slack_file", "url")))
		case "actions":
			for _, e := range payload.Objects(b["elements"], compose.MaxFacts) {
				addElement(m, e, body)
			}
		case "alert":
			body.Add(body.object(b["text"]))
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
				body.Add(body.object(b[name]))
			}
			compose.AddImage(m, payload.Get(b, "hero_image", "image_url"))
			for _, e := range payload.Objects(b["actions"], compose.MaxFacts) {
				addElement(m, e, body)
			}
		case "carousel":
			addBlocks(m, payload.Objects(b["elements"], maxBlocks), body, left)
		case "container":
			body.Add(body.object(b["title"]))
			body.Add(body.object(b["subtitle"]))
			addBlocks(m, payload.Objects(b["child_blocks"], maxBlocks), body, left)
		case "plan":
			body.plain(payload.Text(b["title"]))
			addBlocks(m, payload.Objects(b["tasks"], maxBlocks), body, left)
		case "task_card":
			body.plain(compose.Field(payload.Text(b["status"]), payload.Text(b["title"])))
			body.Add(body.richText(payload.Get(b, "output", "elements"), left))
		case "table", "data_table":
			body.plain(payload.Text(b["caption"]))
			rows, _ := b["rows"].([]any)
			for _, row := range rows[:min(len(rows), maxBlocks)] {
				body.Add(body.row(row, left))
			}
		case "layout":
			body.plain(payload.Text(b["label"]))
			addBlocks(m, payload.Objects(b["fallback"], maxBlocks), body, left)
		case "video":
			body.link(body.object(b["title"]), payload.Text(payload.Or(b["title_url"], b["video_url"])))
			body.Add(body.object(b["description"]))
			compose.AddImage(m, b["thumbnail_url"])
		}
		if len(body.Parts) > before {
			shown++
		}
	}
	return shown
}

// addElement adds the link and the image of an element.
func addElement(m *source.Message, v any, body *text) {
	if address := payload.Text(payload.Get(v, "url")); source.IsAddress(address) {
		body.link(body.object(payload.Get(v, "text")), address)
	}
	compose.AddImage(m, payload.Get(v, "image_url"))
}

// row returns the cells of a table row, separated by bars. left is as in addBlocks.
func (t *text) row(row any, left *int) string {
	var cells []string
	for _, c := range payload.Objects(row, compose.MaxFacts) {
		if *left--; *left < 0 {
			break
		}
		s := t.dialect.Escape(payload.Text(payload.Or(c["text"], c["value"])))
		if payload.Text(c["type"]) == "rich_text" {
			s = strings.TrimSpace(t.richText(c["elements"], left))
		}
		cells = append(cells, s)
	}
	return strings.Join(cells, " | ")
}

// richText returns the elements of a rich text. left is as in addBlocks.
func (t *text) richText(v any, left *int) string {
	var b strings.Builder
	for _, e := range payload.Objects(v, maxNested) {
		if *left--; *left < 0 {
			break
		}
		switch payload.Text(e["type"]) {
		case "rich_text_section":
			b.WriteString(t.richText(e["elements"], left) + "\n")
		case "rich_text_quote":
			b.WriteString("> " + strings.ReplaceAll(strings.TrimSpace(t.richText(e["elements"], left)), "\n", "\n> ") + "\n")
		case "rich_text_preformatted":
			b.WriteString("```\n" + strings.Trim(richCode(e["elements"]), "\n") + "\n```\n")
		case "rich_text_list":
			indent := strings.Repeat("  ", min(max(payload.Int(e["indent"]), 0), maxIndent))
			number := payload.Int(e["offset"])
			for _, item := range payload.Objects(e["elements"], maxNested) {
				mark := "- "
				if number++; payload.Text(e["style"]) == "ordered" {
					mark = strconv.Itoa(number) + ". "
				}
				lines := strings.ReplaceAll(strings.TrimSpace(t.richText([]any{item}, left)), "\n", "\n   "+indent)
				b.WriteString(indent + mark + lines + "\n")
			}
		case "link":
			switch label, address := payload.Text(e["text"]), payload.Text(e["url"]); {
			case !source.IsAddress(address):
				b.WriteString(t.dialect.Escape(label))
			case label == "":
				b.WriteString("<" + address + ">")
			default:
				b.WriteString(t.dialect.Link(t.dialect.Escape(label), address))
			}
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
			b.WriteString(t.styled(payload.Text(e["text"]), e["style"]))
		}
	}
	return b.String()
}

// maxIndent is Slack's limit for the level of a list.
const maxIndent = 8

// richCode returns the text of preformatted elements.
func richCode(v any) string {
	var b strings.Builder
	for _, e := range payload.Objects(v, maxNested) {
		b.WriteString(payload.Text(payload.Or(e["text"], e["url"])))
	}
	return escapeCode(b.String())
}

// escapeCode escapes a text as Slack does in code.
var escapeCode = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace

// styled returns a text of a rich text in its style.
func (t *text) styled(s string, style any) string {
	inner := strings.TrimSpace(s)
	if inner == "" {
		return s
	}
	before, after, _ := strings.Cut(s, inner)
	if payload.Get(style, "code") == true && !strings.ContainsAny(inner, "`\n") {
		return before + "`" + escapeCode(inner) + "`" + after
	}
	inner = t.dialect.Escape(inner)
	for _, mark := range []struct{ name, sign string }{{"strike", "~"}, {"italic", "_"}, {"bold", "*"}} {
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
