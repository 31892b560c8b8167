package source

import (
	"net/http"
	"strconv"
	"time"
)

func init() {
	register(Format{
		Name:    "discord",
		Program: "Discord",
		Doc:     "https://docs.discord.com/developers/resources/webhook#execute-webhook",
		Checked: "2026-08-06",
		Tokens:  []TokenPlace{{Path: true}},
		api: &api{
			paths: []string{"*", "*/*", "api/webhooks/*/*", "api/*/webhooks/*/*"},
			read:  readDiscord,
			reply: replyDiscord,
		},
	})
}

// maxEmbeds is Discord's limit on the embeds of a message.
const maxEmbeds = 10

// maxComponents is the maximum number of components to read of a message.
const maxComponents = 200

func readDiscord(r *Request) (*Message, error) {
	data, err := r.jsonPayload("Discord", "payload_json")
	if err != nil {
		return nil, err
	}
	m := &Message{Format: "markdown"}
	var body lines
	body.add(text(get(data, "content")))
	embeds, _ := get(data, "embeds").([]any)
	for i, e := range list(embeds, maxEmbeds) {
		title, address := text(e["title"]), text(e["url"])
		if i == 0 && title != "" {
			m.Title = title
		} else {
			body.link(title, address)
		}
		body.link(text(get(e, "author", "name")), text(get(e, "author", "url")))
		body.add(text(e["description"]))
		for _, f := range list(e["fields"], maxFacts) {
			body.add(fact(text(f["name"]), text(f["value"])))
		}
		if i == 0 && title != "" && isAddress(address) {
			body.add(address)
		}
		body.add(text(get(e, "footer", "text")))
		if color, ok := toFloat(e["color"]); ok {
			m.raise(typeOfColor(int64(toInt(color))))
		}
		m.image(get(e, "image", "url"))
		m.image(get(e, "thumbnail", "url"))
	}
	if more := len(embeds) - maxEmbeds; more > 0 {
		body.add("and " + strconv.Itoa(more) + " more")
	}
	left := maxComponents
	m.discordComponents(get(data, "components"), &body, &left)
	if question := text(get(data, "poll", "question", "text")); question != "" {
		body.add(question)
		for _, a := range list(get(data, "poll", "answers"), maxEmbeds) {
			body.add("- " + text(get(a, "poll_media", "text")))
		}
	}
	m.Body = body.String()
	return m.check("Discord", r)
}

// The types of components with text, links or images.
const (
	discordButton    = 2
	discordText      = 10
	discordThumbnail = 11
	discordGallery   = 12
)

// discordComponents adds the texts, links and images of components. A message has
// components instead of content and embeds. left is the number of components that may
// still be read.
func (m *Message) discordComponents(v any, body *lines, left *int) {
	for _, c := range list(v, maxComponents) {
		if *left--; *left < 0 {
			return
		}
		switch toInt(c["type"]) {
		case discordButton:
			if address := text(c["url"]); isAddress(address) {
				body.link(text(c["label"]), address)
			}
		case discordText:
			body.add(text(c["content"]))
		case discordThumbnail:
			m.image(get(c, "media", "url"))
		case discordGallery:
			for _, item := range list(c["items"], maxEmbeds) {
				body.add(text(item["description"]))
				m.image(get(item, "media", "url"))
			}
		}
		if color, ok := toFloat(c["accent_color"]); ok {
			m.raise(typeOfColor(int64(toInt(color))))
		}
		m.discordComponents(c["components"], body, left)
		if accessory := c["accessory"]; accessory != nil {
			m.discordComponents([]any{accessory}, body, left)
		}
	}
}

// replyDiscord answers with 204 or, with ?wait=true, with the message.
func replyDiscord(o Outcome) Reply {
	if o.Error != "" {
		return jsonReply(o.Status, map[string]any{"message": o.Error, "code": 0})
	}
	if wait, err := strconv.ParseBool(o.Request.Query.Get("wait")); err != nil || !wait {
		return Reply{Status: http.StatusNoContent}
	}
	return jsonReply(http.StatusOK, map[string]any{
		"id": strconv.FormatInt(numericID(o.Time), 10), "type": 0, "content": o.Message.Body, "channel_id": "0",
		"timestamp": o.Time.UTC().Format(time.RFC3339), "embeds": []any{}, "attachments": []any{}, "mentions": []any{}, "mention_roles": []any{},
		"mention_everyone": false, "tts": false, "pinned": false, "flags": 0, "edited_timestamp": nil,
		"author": map[string]any{"id": "0", "username": "caddy-notify", "avatar": nil, "discriminator": "0000", "bot": true},
	})
}
