package services

import (
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// discordMention matches @name and the ID of a user or a role.
var discordMention = lazyregexp.New(`(?i)(?:^|\W)(?:<?@(&?)(\d+)>?|@([a-z0-9]+))`)

// discordMentions are the mentions in texts, without repetitions.
type discordMentions struct{ names, users, roles []string }

func findDiscordMentions(texts []string) discordMentions {
	found := discordMentions{[]string{}, []string{}, []string{}}
	add := func(to *[]string, v string) {
		if !slices.Contains(*to, v) {
			*to = append(*to, v)
		}
	}
	for _, m := range discordMention.FindAllStringSubmatch(strings.Join(texts, " "), -1) {
		switch {
		case m[3] != "":
			add(&found.names, m[3])
		case m[1] != "":
			add(&found.roles, m[2])
		default:
			add(&found.users, m[2])
		}
	}
	return found
}

// discordPing returns a line with the mentions in texts, or "" if there are none.
func discordPing(payload map[string]any, texts ...string) string {
	found := findDiscordMentions(texts)
	var line []string
	for _, v := range found.names {
		line = append(line, "@"+v)
	}
	for _, v := range found.roles {
		line = append(line, "<@&"+v+">")
	}
	for _, v := range found.users {
		line = append(line, "<@"+v+">")
	}
	if len(line) == 0 {
		return ""
	}
	if payload["allowed_mentions"] == nil {
		// Existing clients send this field, which Discord ignores: it notifies
		// everybody whom the content mentions.
		payload["allow_mentions"] = map[string]any{"parse": found.names, "users": found.users, "roles": found.roles}
	}
	return "👉 " + strings.Join(line, " ")
}

// allowedMentions returns the field that lets a message of another program notify only those in the
// URL. See https://discord.com/developers/docs/resources/message#allowed-mentions-object.
func (d *discordHook) allowedMentions() map[string][]string {
	const max = 100 // of each list
	found := findDiscordMentions(d.ping)
	allowed := map[string][]string{
		"parse": {}, "users": found.users[:min(len(found.users), max)],
		"roles": found.roles[:min(len(found.roles), max)],
	}
	if d.pingsEveryone() {
		allowed["parse"] = []string{"everyone"} // and @here
	}
	return allowed
}

// pingsEveryone reports whether the URL has @everyone or @here.
func (d *discordHook) pingsEveryone() bool {
	return slices.ContainsFunc(findDiscordMentions(d.ping).names, func(name string) bool {
		return strings.EqualFold(name, "everyone") || strings.EqualFold(name, "here")
	})
}
