package slack

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
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

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
