package services

import (
	"regexp"
	"slices"
	"strings"
)

var discordMention = regexp.MustCompile(`(?i)(?:^|\W)(?:<?@(&?)(\d+)>?|@([a-z0-9]+))`)

// discordPing finds the mentions in a text, declares them in the payload and
// returns a line that pings them, or "" where there are none: within an embed
// a mention alerts nobody.
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
