package services

import (
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// discordMention matches @name and the ID of a user or a role.
var discordMention = lazyregexp.New(`(?i)(?:^|\W)(?:<?@(&?)(\d+)>?|@([a-z0-9]+))`)

// discordPing finds the mentions in text and allows them in payload. It returns a
// line with the mentions, or "" if there are none. Discord does not notify about
// mentions within an embed, so they must be repeated outside.
func discordPing(payload map[string]any, text string) string {
	parse, users, roles := []string{}, []string{}, []string{}
	add := func(to *[]string, v string) {
		if !slices.Contains(*to, v) {
			*to = append(*to, v)
		}
	}
	for _, m := range discordMention.FindAllStringSubmatch(text, -1) {
		switch {
		case m[3] != "":
			add(&parse, m[3])
		case m[1] != "":
			add(&roles, m[2])
		default:
			add(&users, m[2])
		}
	}
	var line []string
	for _, v := range parse {
		line = append(line, "@"+v)
	}
	for _, v := range roles {
		line = append(line, "<@&"+v+">")
	}
	for _, v := range users {
		line = append(line, "<@"+v+">")
	}
	if len(line) == 0 {
		return ""
	}
	payload["allow_mentions"] = map[string]any{"parse": parse, "users": users, "roles": roles}
	return "👉 " + strings.Join(line, " ")
}
