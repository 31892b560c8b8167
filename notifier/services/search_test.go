package services

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// plain returns a name in lower case, without spaces and punctuation.
func plain(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune(" .-/()&", r) }), "")
}

// TestGroupsAndWords checks that each service has a group, and that the words of
// one are not the name of another.
func TestGroupsAndWords(t *testing.T) {
	names := map[string]string{}
	for _, s := range notifier.Services() {
		for _, name := range append([]string{s.Name}, s.Schemes...) {
			names[plain(name)] = s.Name
		}
	}
	count := map[notifier.Group]int{}
	for _, s := range notifier.Services() {
		if s.Groups[0] == notifier.GroupOther {
			t.Errorf("%s has no group", s.Name)
		}
		if s.Groups[0] == notifier.GroupRegional {
			t.Errorf("%s: the main group is the kind of the service, and not where it is used", s.Name)
		}
		count[s.Groups[0]]++
		for i, w := range s.Words {
			switch other := names[plain(w)]; {
			case w != strings.ToLower(w) || strings.TrimSpace(w) != w || plain(w) == "":
				t.Errorf("%s: the word %q is not in lower case", s.Name, w)
			case other == s.Name:
				t.Errorf("%s: the word %q is its own name", s.Name, w)
			case other != "" && w != "push": // the scheme of Techulus Push
				t.Errorf("%s: the word %q is the name of %s", s.Name, w, other)
			case slices.ContainsFunc(s.Words[:i], func(o string) bool { return plain(o) == plain(w) }):
				t.Errorf("%s has the word %q twice", s.Name, w)
			}
		}
		if n := len(s.URLs); n > 1 && len(s.Ways) != n || n == 1 && len(s.Ways) > 0 {
			t.Errorf("%s has %d URLs and the ways %q", s.Name, n, s.Ways)
		}
		for i, w := range s.Ways {
			if slices.Contains(s.Ways[:i], w) || strings.HasSuffix(w, ".") || strings.ContainsAny(w, "{}:") {
				t.Errorf("%s: the way %q", s.Name, w)
			}
		}
	}
	for _, g := range notifier.Groups() {
		if g != notifier.GroupRegional && g != notifier.GroupOther && count[g] < 4 {
			t.Errorf("the group %s has only %d services", g, count[g])
		}
	}
}

// TestSearch checks which services a search finds first, and why.
func TestSearch(t *testing.T) {
	for text, want := range map[string]string{
		"email":   `E-Mail (its name)`,
		"e-mail":  `E-Mail (its name)`,
		"Mail":    `E-Mail (known for "mail"), MailerSend (its name), Mailgun (its name)`,
		"gmail":   `E-Mail (known for "gmail")`,
		"outlook": `Office 365 (known for "outlook")`,
		"proton":  `E-Mail (known for "proton")`,
		"icloud":  `E-Mail (known for "icloud")`,
		"smtp":    `E-Mail (known for "smtp"), SMTP2GO (its name)`,
		"phone":   `Gotify (known for "phone"), ntfy (known for "phone"), Pushover (known for "phone")`,
		"push": `Gotify (known for "push"), ntfy (known for "push"), ` +
			`Pushover (known for "push"), Web Push (known for "push"), Techulus Push (the scheme push://)`,
		"iPhone":                 `Bark (known for "iphone"), Chanify (known for "iphone"), ntfy (known for "iphone")`,
		"android":                `Gotify (known for "android"), httpSMS (known for "android"), Join (known for "android")`,
		"teams":                  `Power Automate / Workflows (for MSTeams) (known for "teams"), Cisco Webex Teams (its name)`,
		"Microsoft Teams":        `Power Automate / Workflows (for MSTeams) (known for "microsoft teams")`,
		"sms":                    `Twilio (known for "sms"), Vonage (known for "sms"), Burst SMS (its name)`,
		"call":                   `Twilio (known for "call")`,
		"whatsapp":               `WhatsApp (its name), Evolution API (known for "whatsapp web")`,
		"signal":                 `Signal API (the scheme signal://)`,
		"telegram":               `Telegram (its name)`,
		"slack":                  `Slack (its name), Mattermost (known for "slack alternative")`,
		"jabber":                 `XMPP (known for "jabber")`,
		"element":                `Matrix (known for "element")`,
		"homeassistant":          `HomeAssistant (its name)`,
		"home assistant":         `HomeAssistant (its name)`,
		"home":                   `HomeAssistant (known for "home")`,
		"webhook":                `Form (known for "webhook"), JSON (known for "webhook"), XML (known for "webhook")`,
		"n8n":                    `JSON (known for "n8n")`,
		"pager":                  `Dapnet (known for "pager"), PagerDuty (known for "pager"), PagerTree (its name)`,
		"on-call":                `Opsgenie (known for "on-call"), PagerDuty (known for "on-call"), PagerTree (known for "on-call")`,
		"chat":                   `Delta Chat (its name), Google Chat (its name), Rocket.Chat (its name), Synology Chat (its name)`,
		"tv":                     `Enigma2 (known for "tv"), Kodi/XBMC (known for "tv")`,
		"企业微信":                   `WeChat (WeCom) (known for "企业微信"), WeCom Bot (known for "企业微信")`,
		"wechat":                 `WeChat (WeCom) (the scheme wechat://)`,
		"x":                      `Twitter (the scheme x://)`,
		"gchat":                  `Google Chat (the scheme gchat://)`,
		"push iphone":            `ntfy (known for "push"), Pushover (known for "push")`,
		"slack bot token":        ``,
		"nobody has this":        ``,
		"":                       ``,
		"...":                    ``,
		"discord://x/y":          ``,
		strings.Repeat("a", 200): ``,
	} {
		var found []string
		for _, f := range notifier.Search(text) {
			found = append(found, f.Name+" ("+f.Reason+")")
		}
		got := strings.Join(found, ", ")
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%q finds\n%s\nwant at first\n%s", text, got, want)
		}
	}
	for _, s := range notifier.Services() {
		for _, name := range []string{s.Name, strings.ToUpper(s.Name)} {
			if found := notifier.Search(name); len(found) == 0 || found[0].Name != s.Name {
				t.Errorf("%s does not find itself", name)
			}
		}
	}
}

// TestNamed checks that a word for a group is not the service that has it as its scheme.
func TestNamed(t *testing.T) {
	for text, want := range map[string]string{
		"push": "", " PUSH ": "", "push://": "Techulus Push", "Techulus Push": "Techulus Push", "email": "E-Mail",
		"pover": "Pushover", "pover://": "Pushover", "chat": "", "phone": "", "": "", "nobody has this": "",
	} {
		got := ""
		if s := notifier.Named(text); s != nil {
			got = s.Name
		}
		if got != want {
			t.Errorf("%q names %q, want %q", text, got, want)
		}
	}
}

// TestRankOfKinds checks that the services that most people have are first for a telephone
// number and for an address, and that the others follow by name.
func TestRankOfKinds(t *testing.T) {
	for text, want := range map[string][]string{"+4915112345678": {"Twilio", "Vonage"}, "alice@example.org": {"E-Mail", "AWS SES"}} {
		found, err := notifier.Recognize(text)
		if err != nil || len(found) < 10 {
			t.Fatalf("%s: %d, %v", text, len(found), err)
		}
		for i, name := range want {
			if found[i].Service.Name != name {
				t.Errorf("%s: the service %d is %s, want %s", text, i+1, found[i].Service.Name, name)
			}
		}
	}
}
