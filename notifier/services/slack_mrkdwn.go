package services

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
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

// slackMarkdown finds what Slack writes in another way than Markdown does:
// code, links and pictures, escapes, emphasis and special characters.
var slackMarkdown = regexp.MustCompile("(?s)```.*?```|``.*?``|`[^`]*`" +
	`|!?\[((?:\\.|[^\]\\])*)\]\(<?([^)>\s]*)>?(?:\s[^)]*)?\)` +
	`|\\[!-/:-@\[-` + "`" + `{-~]|\*{1,3}|[&<>]`)

var slackAddress = strings.NewReplacer("&", "&amp;", "|", "%7C", "<", "%3C", ">", "%3E")

// slackMrkdwn turns Markdown that was made of HTML into Slack's markup.
func slackMrkdwn(md string) string {
	var b strings.Builder
	last := 0
	for _, at := range slackMarkdown.FindAllStringSubmatchIndex(md, -1) {
		b.WriteString(md[last:at[0]])
		switch word := md[at[0]:at[1]]; {
		case at[4] > at[5]-1 && at[4] >= 0: // a link that leads nowhere
			b.WriteString(slackMrkdwn(md[at[2]:at[3]]))
		case at[4] >= 0:
			b.WriteString("<" + slackAddress.Replace(md[at[4]:at[5]]))
			if label := slackMrkdwn(md[at[2]:at[3]]); label != "" {
				b.WriteString("|" + strings.ReplaceAll(label, "|", "¦"))
			}
			b.WriteString(">")
		case word[0] == '\\':
			b.WriteString(slackEntities.Replace(word[1:]))
		case word[0] == '*':
			before, _ := utf8.DecodeLastRuneInString(md[:at[0]])
			after, _ := utf8.DecodeRuneInString(md[at[1]:])
			b.WriteString(slackEmphasis(word, before, after))
		default:
			b.WriteString(slackEntities.Replace(word))
		}
		last = at[1]
	}
	b.WriteString(md[last:])
	return b.String()
}

// slackEmphasis is a run of asterisks in Slack's markup, which writes one for
// bold text and an underscore for italics.
func slackEmphasis(run string, before, after rune) string {
	space := func(r rune) bool { return r == utf8.RuneError || unicode.IsSpace(r) }
	switch {
	case space(before) && space(after):
		return run
	case len(run) == 1:
		return "_"
	case len(run) == 2:
		return "*"
	case space(after):
		return "_*"
	}
	return "*_"
}
