package source

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

func init() {
	register(Format{
		Name:    "slack",
		Program: "Slack, Mattermost and Rocket.Chat",
		Doc:     "https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks/",
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

// The bounds of what is read of a message for Slack.
const (
	maxBlocks = 50  // Slack's own limit
	maxFacts  = 25  // fields of an attachment
	maxNested = 200 // elements of rich text
)

func readSlack(r *Request) (*Message, error) {
	data, err := r.jsonPayload("Slack", "payload")
	if err != nil {
		return nil, err
	}
	m := &Message{Format: "markdown"}
	var body lines
	blocks := m.slackBlocks(list(get(data, "blocks"), maxBlocks), &body)
	if blocks == 0 { // with blocks, the text is for notifications that cannot show them
		body.add(slackMarkup(text(get(data, "text"))))
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

// slackAttachment adds an attachment of the older kind.
func (m *Message) slackAttachment(a map[string]any, body *lines) {
	m.raise(slackColor(text(a["color"])))
	body.add(slackMarkup(text(a["pretext"])))
	body.link(text(a["author_name"]), text(a["author_link"]))
	body.link(slackMarkup(text(a["title"])), text(a["title_link"]))
	body.add(slackMarkup(text(a["text"])))
	for _, f := range list(a["fields"], maxFacts) {
		body.add(fact(slackMarkup(text(f["title"])), slackMarkup(text(f["value"]))))
	}
	blocks := m.slackBlocks(list(a["blocks"], maxBlocks), body)
	if blocks == 0 && text(a["title"]) == "" && text(a["text"]) == "" && text(a["pretext"]) == "" && len(list(a["fields"], 1)) == 0 {
		body.add(slackMarkup(text(a["fallback"])))
	}
	body.add(slackMarkup(text(a["footer"])))
	m.image(a["image_url"])
}

func fact(name, value string) string {
	if name == "" {
		return value
	}
	return name + ": " + value
}

// image adds the address of an image.
func (m *Message) image(v any) {
	if s := text(v); isAddress(s) && len(m.Images) < maxImages {
		m.Images = append(m.Images, s)
	}
}

// raise sets the type to t if t is more serious.
func (m *Message) raise(t notifier.Type) {
	order := map[string]int{"": 0, string(notifier.Info): 1, string(notifier.Success): 2, string(notifier.Warning): 3, string(notifier.Failure): 4}
	if order[string(t)] > order[m.Type] {
		m.Type = string(t)
	}
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

// slackBlocks adds blocks of Block Kit and returns how many had a text.
func (m *Message) slackBlocks(blocks []map[string]any, body *lines) int {
	shown := 0
	for _, b := range blocks {
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
			left := maxNested
			body.add(richText(b["elements"], &left))
		case "image":
			body.add(slackText(b["title"]))
			m.image(b["image_url"])
		case "actions":
			for _, e := range list(b["elements"], maxFacts) {
				if isAddress(text(e["url"])) {
					body.link(slackText(e["text"]), text(e["url"]))
				}
			}
		}
		if len(body.parts) > before {
			shown++
		}
	}
	return shown
}

// slackText returns a text object as Markdown.
func slackText(v any) string {
	s := text(get(v, "text"))
	if text(get(v, "type")) == "mrkdwn" {
		return slackMarkup(s)
	}
	return s
}

// richText returns the elements of a rich text as Markdown.
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
	slackReference = regexp.MustCompile(`<([^<>\n|]{1,1000})(?:\|([^<>\n]*))?>`)
	slackBold      = regexp.MustCompile(`(^|[\s(>_~])\*([^\s*](?:[^*\n]*[^\s*])?)\*($|[\s).,:;!?_~])`)
	slackStrike    = regexp.MustCompile(`(^|[\s(>*_])~([^\s~](?:[^~\n]*[^\s~])?)~($|[\s).,:;!?*_])`)
	slackEntities  = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

// slackMarkup returns a text in Slack's markup as Markdown: links and mentions,
// bold and struck out text. What is Markdown already, as from Mattermost, stays
// as it is.
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

// replySlack answers as Slack does: ok, or a word or sentence.
func replySlack(o Outcome) Reply {
	r := Reply{Status: o.Status, ContentType: "text/plain; charset=utf-8", Body: []byte(o.Error)}
	if o.Error == "" {
		r.Status, r.Body = http.StatusOK, []byte("ok")
	}
	return r
}
