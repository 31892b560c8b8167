package services

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

// textPayloads returns the messages for the text of m. There is more than one only
// if a Markdown text has more headings than an embed can have fields.
func (d *discordHook) textPayloads(m *notifier.Message) []map[string]any {
	if m.Title == "" && m.Body == "" {
		return nil
	}
	first := d.payload(m, d.tts)
	if m.Format != notifier.Markdown {
		text := m.Text("\r\n")
		if m.Foreign && d.pingsEveryone() {
			text = chattext.BreakMentions(text) // the field allows @everyone for the whole content
		}
		first["content"] = text + discordPing(first, d.ping...)
		d.addButton(first, m)
		return []map[string]any{first}
	}
	// Discord does not notify about mentions within an embed, so they are repeated
	// outside.
	mentions := d.ping
	if !m.Foreign {
		mentions = append([]string{m.Body}, d.ping...)
	}
	if ping := discordPing(first, mentions...); ping != "" {
		first["content"] = ping
	}
	embed := d.embed(m)
	var fields []discordField
	if d.fields && !m.Foreign { // a field is code, which shows the escapes
		embed["description"], fields = discordSections(m.Body)
	}
	var out []map[string]any
	for chunk := range slices.Chunk(fields, discordMaxFields) {
		payload := first
		if len(out) > 0 {
			payload, embed = d.payload(m, d.tts), d.embed(m)
			embed["description"] = ""
		}
		embed["fields"] = chunk
		payload["embeds"] = []any{embed}
		out = append(out, payload)
	}
	if len(out) == 0 {
		first["embeds"] = []any{embed}
		out = append(out, first)
	}
	d.addButton(out[len(out)-1], m)
	return out
}

// embed returns an embed with the title and the body of m.
func (d *discordHook) embed(m *notifier.Message) map[string]any {
	e := map[string]any{
		"author":      map[string]string{"name": m.Identity.Name, "url": m.Identity.URL},
		"title":       m.Title,
		"description": m.Body,
		"color":       m.Type.ColorInt(),
	}
	if d.link != "" {
		e["url"] = d.link
	}
	if d.href != "" {
		e["url"] = d.href
	}
	if d.footer {
		footer := map[string]string{"text": m.Identity.Description}
		if d.footerLogo && m.Identity.Logo != "" {
			footer["icon_url"] = m.Identity.Logo
		}
		e["footer"] = footer
	}
	if icon := m.Icon(256); d.image && icon != "" {
		e["thumbnail"] = map[string]any{"url": icon, "height": 256, "width": 256}
	}
	return e
}

// discordField is a heading and the text below it.
type discordField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// discordFence matches a line that begins or ends a code block.
var discordFence = lazyregexp.New("^(?:(`{3,})[^`]*|(~{3,}).*)$")

// discordSections splits a Markdown text into the part before the first heading
// and a field for each heading. It does not split a text with a section that is
// too long for a field.
func discordSections(text string) (description string, fields []discordField) {
	var section []string
	name, heading := "", false
	fence := "" // the fence of the current code block
	long := false
	flush := func() {
		value := strings.TrimSpace(strings.Join(section, "\n"))
		section = nil
		if !heading {
			description = value
			return
		}
		f := discordField{name, "```\n```"}
		switch {
		case strings.Contains(value, "```"):
			f.Value = value // code blocks cannot be nested
		case value != "":
			f.Value = "```md\n" + value + "\n```"
		}
		long = long || utf8.RuneCountInString(f.Name) > 256 || utf8.RuneCountInString(f.Value) > 1024
		fields = append(fields, f)
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		title, trimmed := strings.Trim(line, "#`* \r\t\v"), strings.TrimSpace(line)
		if m := discordFence.FindStringSubmatch(trimmed); m != nil {
			switch mark := m[1] + m[2]; {
			case fence == "":
				fence = mark
			case strings.HasPrefix(mark, fence) && mark == trimmed:
				fence = ""
			}
		}
		if title == "" || fence != "" || !strings.HasPrefix(trimmed, "#") {
			section = append(section, line)
			continue
		}
		flush()
		name, heading = title, true
	}
	flush()
	if long {
		return text, nil
	}
	return description, fields
}
