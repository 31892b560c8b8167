package services

import (
	"regexp"
	"strings"
)

// slackReference is what Slack's own markup has in angle brackets: a link, a
// user, a channel or a special mention, with a label or without.
// See https://api.slack.com/reference/surfaces/formatting.
var slackReference = regexp.MustCompile(`<[ \t]*((?:https?://|mailto:|[@#!])[^|<>\n]+)(?:\|([^<>\n]*))?>`)

// slackEscape escapes a text in Slack's markup, but for its references.
func slackEscape(text string) string {
	var b strings.Builder
	last := 0
	for _, at := range slackReference.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(slackEntities.Replace(text[last:at[0]]))
		b.WriteString("<" + strings.TrimSpace(text[at[2]:at[3]]))
		if at[4] >= 0 && strings.TrimSpace(text[at[4]:at[5]]) != "" {
			b.WriteString("|" + slackEntities.Replace(strings.TrimSpace(text[at[4]:at[5]])))
		}
		b.WriteString(">")
		last = at[1]
	}
	b.WriteString(slackEntities.Replace(text[last:]))
	return b.String()
}

var (
	slackEntities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	slackAddress  = strings.NewReplacer("&", "&amp;", "|", "%7C", "<", "%3C", ">", "%3E")
)

// slackMrkdwn turns Markdown that was made of HTML into Slack's markup.
func slackMrkdwn(md string) string {
	return chatMarkup{
		bold: "*", italic: "_",
		text:   slackEntities.Replace,
		quoted: slackEntities.Replace,
		code:   func(fence, text string) string { return fence + slackEntities.Replace(text) + fence },
		link: func(label, address string) string {
			if label != "" {
				label = "|" + strings.ReplaceAll(label, "|", "¦")
			}
			return "<" + slackAddress.Replace(address) + label + ">"
		},
	}.rewrite(md)
}
