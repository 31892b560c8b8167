package notifier

import (
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier/internal/urlsyntax"
)

// A Group is a purpose that services have in common. Lists of services are
// arranged by it.
type Group string

// The groups, in the order in which lists show them.
const (
	GroupChat     Group = "chat"
	GroupPhone    Group = "phone" // and desktops and browsers
	GroupMail     Group = "mail"
	GroupSMS      Group = "sms"
	GroupIncident Group = "incident"
	GroupHome     Group = "home" // and devices
	GroupMedia    Group = "media"
	GroupSocial   Group = "social"
	GroupServer   Group = "server"   // programs and servers of one's own
	GroupRegional Group = "regional" // used in one country mainly
	GroupOther    Group = "other"    // services that declare none
)

// groups describes all groups.
var groups = []struct {
	group Group
	title string
	words []string // that find the group in a search, besides its own name
}{
	{GroupChat, "Chat", []string{"messenger", "team chat", "instant messaging"}},
	{GroupPhone, "Phone, desktop and browser", []string{"push", "mobile", "smartphone", "app", "tablet", "desktop", "browser"}},
	{GroupMail, "E-mail", []string{"email", "smtp"}},
	{GroupSMS, "SMS and calls", []string{"text message", "call", "telephone", "voice"}},
	{GroupIncident, "Incidents and on-call", []string{"on-call", "alerting", "pager", "escalation"}},
	{GroupHome, "Home and devices", []string{"smart home", "device", "iot", "display"}},
	{GroupMedia, "Media", []string{"tv", "streaming", "video", "home theater"}},
	{GroupSocial, "Social networks", []string{"social network", "microblog", "fediverse"}},
	{GroupServer, "Webhooks and servers", []string{"webhook", "http", "api", "log", "self-hosted", "automation"}},
	{GroupRegional, "In one country", []string{"country", "local"}},
	{GroupOther, "Others", nil},
}

// Groups returns all groups in the order in which lists show them.
func Groups() []Group {
	out := make([]Group, len(groups))
	for i, g := range groups {
		out[i] = g.group
	}
	return out
}

// Title returns the name of the group for people, such as "SMS and calls".
func (g Group) Title() string {
	for _, x := range groups {
		if x.group == g {
			return x.title
		}
	}
	return string(g)
}

// Groups declares the groups of the service, the main one first. Without it, the service belongs to
// [GroupOther].
func (s *Schema) Groups(in ...Group) {
	for _, g := range in {
		if !slices.Contains(Groups(), g) || slices.Contains(s.groups, g) {
			panic(s.Name + ": the group " + string(g) + " does not exist or is declared twice")
		}
		s.groups = append(s.groups, g)
	}
}

// Words declares other words that people search for when they need the service: names, brands, apps
// and devices, in lower case. A word that is a group's, such as sms, puts the service before the
// others of the group.
func (s *Schema) Words(words ...string) { s.words = append(s.words, words...) }

// Way names the template n of [Schema.URL], counted from 1 on, for lists and forms, by its purpose
// or its requirement, as in "with an access token". The ways are declared from the best to the
// worst for a newcomer. A service has a way for each template or none.
func (s *Schema) Way(n int, name string) {
	if n < 1 || n > len(s.templates) || s.templates[n-1].Way != "" {
		panic(s.Name + ": there is no URL for the way " + name + ", or it has one")
	}
	t := s.templates[n-1]
	t.Way = name
	s.ways = append(s.ways, t)
}

// forms returns the templates of the service, the best for a newcomer first.
func (d *description) forms() []*urlsyntax.Template {
	if len(d.ways) > 0 {
		return d.ways
	}
	return d.templates
}
