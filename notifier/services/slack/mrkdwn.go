package slack

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

// referencePattern matches what Slack's markup has in angle brackets: a link, a
// user, a channel or a special mention, with or without a label.
// See https://api.slack.com/reference/surfaces/formatting.
var referencePattern = lazyregexp.New(`<[ \t]*((?:https?://|mailto:|[@#!])[^|<>\n]+)(?:\|([^<>\n]*))?>`)

// escape escapes a text in Slack's markup, except its references.
func escape(text string) string {
	var b strings.Builder
	last := 0
	for _, at := range referencePattern.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(escaper.Replace(text[last:at[0]]))
		b.WriteString("<" + strings.TrimSpace(text[at[2]:at[3]]))
		if at[4] >= 0 && strings.TrimSpace(text[at[4]:at[5]]) != "" {
			b.WriteString("|" + escaper.Replace(strings.TrimSpace(text[at[4]:at[5]])))
		}
		b.WriteString(">")
		last = at[1]
	}
	b.WriteString(escaper.Replace(text[last:]))
	return b.String()
}

// struck matches struck out text in Markdown.
var struck = lazyregexp.New(`~~([^~\n]+)~~`)

var (
	escaper     = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	linkEscaper = strings.NewReplacer("&", "&amp;", "|", "%7C", "<", "%3C", ">", "%3E")
)

// toMrkdwn converts Markdown that was converted from HTML, or from another chat's
// markup, to Slack's. With references, it keeps those in Slack's markup.
func toMrkdwn(md string, references bool) string {
	text := escaper.Replace
	if references {
		text = func(s string) string { return escape(struck.ReplaceAllString(s, "~$1~")) }
	}
	return chattext.Markup{
		Bold: "*", Italic: "_",
		Text:    text,
		Escaped: escaper.Replace,
		Code:    func(fence, text string) string { return fence + escaper.Replace(text) + fence },
		Link: func(label, address string) string {
			if label != "" {
				label = "|" + strings.ReplaceAll(label, "|", "¦")
			}
			return "<" + linkEscaper.Replace(address) + label + ">"
		},
	}.FromMarkdown(md)
}
