package chattext

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// Separator is put between two characters that would be markup together. It has no
// width (U+200B). It is for chats in which nothing can be escaped.
const Separator = "\u200b"

// AsIs returns text. It is for services that escape texts when they send them.
func AsIs(text string) string { return text }

// mentionPattern matches an address, or a sign that begins a mention. The character before it is not a
// letter or digit, as in an e-mail address.
var mentionPattern = lazyregexp.New(`https?://[^\s<>"]+|(?:^|[^A-Za-z0-9])[@＠]+`)

// addressMention matches the sign in an address such as https://example.com/@name.
var addressMention = lazyregexp.New(`([^A-Za-z0-9])@`)

// BreakMentions breaks each @name in a text, so that the chat takes it for text. In an
// address, the sign is encoded.
func BreakMentions(text string) string {
	if !strings.ContainsAny(text, "@＠") {
		return text
	}
	return mentionPattern.ReplaceAllStringFunc(text, func(s string) string {
		if strings.HasPrefix(s, "http") {
			return addressMention.ReplaceAllString(s, "$1%40")
		}
		return s + Separator
	})
}

var (
	linkPattern = strings.NewReplacer("](", "]"+Separator+"(")
	tagPattern  = lazyregexp.New(`<([!@#%&:/A-Za-z])`)
)

// BreakMarkup breaks links such as [text](address) and <address|text>, and other markup that chats
// write between < and >, such as <!channel> and <at>.
func BreakMarkup(text string) string {
	return tagPattern.ReplaceAllString(linkPattern.Replace(text), "<"+Separator+"$1")
}

// BreakAll breaks mentions and markup.
func BreakAll(text string) string { return BreakMarkup(BreakMentions(text)) }
