package slack

import (
	"cmp"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/gateway/source/programs/internal/compose"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var (
	slackReference = lazyregexp.New(`<([^<>\n|]{1,1000})(?:\|([^<>\n]*))?>`)
	slackBold      = lazyregexp.New(`(^|[\s(>_~])\*([^\s*](?:[^*\n]*[^\s*])?)\*($|[\s).,:;!?_~])`)
	slackStrike    = lazyregexp.New(`(^|[\s(>*_])~([^\s~](?:[^~\n]*[^\s~])?)~($|[\s).,:;!?*_])`)
	slackEntities  = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

	// slackLookAlike matches the beginning of a text that would be a reference.
	slackLookAlike = lazyregexp.New(`<([@#!])`)
)

// slackMarkup converts links, bold and struck out text, emojis and character references
// in Slack's markup to Markdown. References stay as they are: see
// [markup.DialectSlack]. It does not change code, and Markdown, which Mattermost
// clients send.
func slackMarkup(s string) string {
	var b strings.Builder
	last := 0
	for _, at := range markup.FindCode(s) {
		b.WriteString(slackProse(s[last:at[0]]))
		b.WriteString(slackEntities.Replace(s[at[0]:at[1]]))
		last = at[1]
	}
	b.WriteString(slackProse(s[last:]))
	return b.String()
}

// slackProse is slackMarkup for a text without code.
func slackProse(s string) string {
	s = slackEmphasis(s)
	var b strings.Builder
	last := 0
	for _, at := range slackReference.FindAllStringSubmatchIndex(s, -1) {
		ref, target, label := s[at[0]:at[1]], s[at[2]:at[3]], ""
		if at[4] >= 0 {
			label = s[at[4]:at[5]]
		}
		b.WriteString(slackWords(s[last:at[0]]))
		last = at[1]
		switch {
		case source.IsAddress(target) && label != "":
			b.WriteString(compose.MarkdownLink(slackWords(slackEmphasis(label)), slackEntities.Replace(target)))
		case source.IsAddress(target):
			b.WriteString(slackEntities.Replace(target))
		case strings.HasPrefix(target, "mailto:"):
			b.WriteString(slackWords(cmp.Or(label, strings.TrimPrefix(target, "mailto:"))))
		case strings.ContainsAny(target[:1], "@#!"):
			b.WriteString(ref)
		default:
			b.WriteString(slackWords(ref))
		}
	}
	b.WriteString(slackWords(s[last:]))
	return b.String()
}

// slackEmphasis converts bold and struck out text.
func slackEmphasis(s string) string {
	s = slackBold.ReplaceAllString(s, "$1**$2**$3")
	return slackStrike.ReplaceAllString(s, "$1~~$2~~$3")
}

// slackWords converts emojis and character references in a text without code and
// references.
func slackWords(s string) string {
	return slackLiteral(slackEntities.Replace(markup.ReplaceEmojis(s)))
}

// slackLiteral returns Markdown for a text whose < begins no reference.
func slackLiteral(s string) string { return slackLookAlike.ReplaceAllString(s, `\<$1`) }

// slackTitle returns a text of a title, without markup.
func slackTitle(v any) string {
	s := slackStrike.ReplaceAllString(slackBold.ReplaceAllString(payload.Text(v), "$1$2$3"), "$1$2$3")
	s = slackReference.ReplaceAllStringFunc(s, func(ref string) string {
		m := slackReference.FindStringSubmatch(ref)
		if source.IsAddress(m[1]) {
			return cmp.Or(m[2], m[1])
		}
		return ref
	})
	return strings.TrimSpace(slackEntities.Replace(markup.ReplaceEmojis(markup.DialectSlack.Readable(s, time.UTC))))
}
