package services

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// Patterns of what mentions people, or hides the address of a link. One after a
// backslash is escaped, and one with a character of no width in it is text.
const (
	mention  = `(?:^|[^A-Za-z0-9])[@＠](?:everyone|here|all|channel|room|mallory|zoe|\*)`
	link     = `(?:^|[^\\])\[click\]\(https`
	anyLink  = `\]\((?:https|mention|tg)`
	tag      = `<(?:[!@#]|users/|at|a )`
	named    = `<https?://[^<>\s]*\|`
	redditor = `(?:^|[^\w/])/?u/\w`
)

// active has, for each service whose texts can mention people or hide an address, a
// pattern of how they do it there.
var active = map[string]string{
	"Amazon Chime":      mention + `|^\s*/md`,
	"Cisco Webex Teams": `<@`,
	"DingTalk":          anyLink,
	"Discord":           link,
	"Feishu":            `<at`,
	"Flock":             `<user|<a `,
	"Fluxer":            link,
	"Google Chat":       tag + "|" + named + "|" + anyLink,
	"Guilded":           mention + "|" + link,
	"HomeAssistant":     anyLink,
	"HumHub":            link + `|(?:^|[^\\])\[x\]\(mention`,
	"KOOK":              `\((?:met|rol)\)`,
	"Lark":              `<at`,
	"Mastodon":          mention,
	"Matrix":            `^<.*<a `,
	"Mattermost":        mention + "|" + tag + "|" + named + "|" + link,
	"Misskey":           mention + "|" + anyLink,
	"Nextcloud Talk":    mention + "|" + anyLink,
	"Notifiarr":         link,
	"Power Automate / Workflows (for MSTeams)": anyLink,
	"QQ Push":                   `@at=`,
	"Reddit":                    redditor + "|" + link,
	"Revolt":                    mention + "|" + tag + "|" + link,
	"Rocket.Chat":               mention + "|" + tag + "|" + named + "|" + link,
	"Ryver":                     mention + "|" + anyLink,
	"ServerChan":                anyLink,
	"Session Open Group Server": mention,
	"Slack":                     `<[!@#]|` + named,
	"Stackfield":                mention,
	"Synology Chat":             mention + "|" + named,
	"Telegram":                  mention,
	"Twist":                     link,
	"Twitter":                   mention,
	"WeChat (WeCom)":            `<a `,
	"WeCom Bot":                 `<@`,
	"Zoom":                      tag + "|" + named,
	"Zulip":                     mention + "|" + anyLink,
}

// plainTitle has the ones that show the title as plain text.
var plainTitle = []string{"DingTalk", "HomeAssistant", "Reddit", "ServerChan", "Twist", "Zulip"}

// plainSummary has the services that show the beginning of a text without a title as plain
// text, beside the text itself.
var plainSummary = []string{"GoAlert"}

const withoutLinks = "only a field of the API mentions people, and there are no links"

// harmless has, for all other services, the reason why no text mentions anybody or
// hides an address in the format that they take.
var harmless = map[string][]string{
	"the text is shown or read to one person, and mentions nobody": {
		"46elks", "800.com", "Africas Talking", "Aprs", "AWS SNS", "Bark", "BulkSMS",
		"BulkVS", "Burst SMS", "Chanify", "Clickatell", "ClickSend", "D7 Networks", "Dapnet",
		"Exotel", "Firebase Cloud Messaging", "Free-Mobile", "Gotify", "Growl", "httpSMS", "Join",
		"Kavenegar", "Kumulos", "Lauther", "MessageBird", "Mobile Message", "MSG91", "Nextcloud", "Notica",
		"Notifyre", "ntfy", "Octopush", "OneSignal", "Parse Platform", "Pinglet", "Pingram",
		"Plivo", "Prowl", "Pushbullet", "PushDeer", "Pushed", "Pushjet", "PushMe", "Pushover",
		"Pushplus", "Pushsafer", "PushWard", "Pushy", "RingCentral", "SerwerSMS", "seven",
		"Signalgrid", "Simplepush", "Sinch", "SMPP", "SMS Eagle", "SMS Manager", "SMSC",
		"Société Française du Radiotéléphone", "SpugPush", "Techulus Push", "Threema Gateway",
		"Trigv", "Twilio", "Viber", "VoIPms", "Vonage", "Web Push", "WxPusher",
	},
	"a mail program shows where a link leads, and knows no mentions": {
		"AWS SES", "Brevo", "Delta Chat", "E-Mail", "MailerSend", "Mailgun", "Office 365",
		"Postmark", "Resend", "SendGrid", "SendPulse", "SMTP2GO", "SparkPost",
	},
	"a screen shows the text": {"Dot.", "Emby", "Enigma2", "Jellyfin", "Kodi/XBMC", "LaMetric", "Streamlabs"},
	"a program gets the text as it is": {
		"Apprise API", "Form", "IFTTT", "JSON", "MQTT", "Remote Syslog", "Syslog", "XML",
	},
	"an incident has responders, and its text mentions nobody": {
		"Flowtriq", "GoAlert", "ilert", "incident.io", "Jira", "Opsgenie",
		"PagerDuty", "PagerTree", "SIGNL4", "Spike.sh", "Splunk On-Call", "Squadcast",
	},
	"a post without facets has neither mentions nor links": {"BlueSky"},
	withoutLinks: {"Evolution API", "GroupMe", "LINE", "OneBot", "Signal API", "WhatsApp"},
	"the text is plain; a program that searches it for names decides": {"IRC", "Notifico", "XMPP"},
}

// TestForeignServices sends messages of other programs to every service, with all the
// ways in which chats mention people and name links. What arrives must not be active,
// and what a client sends must be as before.
func TestForeignServices(t *testing.T) {
	racetest.SkipIfSlow(t)
	seen, others := map[string]bool{}, map[string]bool{}
	for _, file := range racetest.Part(servicetest.Files(t, "."), 5) {
		for _, c := range servicetest.ReadCases(t, file) {
			s := serviceOf(c.URL)
			if s == nil || active[s.Name] == "" && others[s.Name] {
				continue
			}
			others[s.Name] = true
			for _, format := range []string{"", "text", "markdown", "html"} {
				address := withFormat(c.URL, format)
				for name, m := range hostileMessages(t) {
					m.Foreign = false
					direct := sendHostile(t, c, address, m)
					m.Foreign = true
					checkForeign(t, s.Name, address+", "+name, format, m, direct, sendHostile(t, c, address, m), seen)
				}
			}
		}
	}
	for name := range active {
		if !seen[name] && racetest.All() {
			t.Errorf("%s: no message of a client has what the test looks for", name)
		}
	}
}

// checkForeign checks what a service has sent for a message of another program. direct is what it
// has sent for the same message of a client. If that has a mention or a link, the service is noted
// in seen.
func checkForeign(t *testing.T, service, what, format string, m *notifier.Message, direct, foreign sentTexts, seen map[string]bool) {
	pattern := active[service]
	if pattern == "" {
		switch {
		case slices.Contains(harmless[withoutLinks], service):
			return
		case format == "markdown":
			pattern = `(?s)^[^<].*[^\\]\[click\]\(https` // mails are HTML
		case format == "html":
			pattern = `(?s)^<.*click</a>(?:[^ ]| [^(]|$)`
		default:
			return
		}
	}
	re := regexp.MustCompile(pattern)
	for _, text := range direct.texts {
		seen[service] = seen[service] || isHostile(text) && re.MatchString(text)
	}
	for _, text := range foreign.texts {
		if active[service] == "" && strings.Contains(text, "\r\nSubject:") {
			continue // a mail
		}
		text, _, _ = strings.Cut(text, "👉") // what the URL mentions
		if m.Title != "" && strings.HasSuffix(text, m.Title) && (active[service] == "" || slices.Contains(plainTitle, service)) {
			continue
		}
		if m.Title == "" && slices.Contains(plainSummary, service) && strings.HasPrefix(m.Body, text) {
			continue
		}
		if found := re.FindString(text); isHostile(text) && found != "" {
			t.Errorf("%s: %s: %q is active in %q", service, what, found, text)
		}
	}
	if (len(direct.texts) == 0) != (len(foreign.texts) == 0) {
		t.Errorf("%s: %s: %d texts were sent, and %d for the message of a client", service, what, len(foreign.texts), len(direct.texts))
	}
	for _, body := range foreign.objects {
		switch service {
		case "Discord", "Fluxer":
			allowed, _ := body["allowed_mentions"].(map[string]any)
			parse, ok := allowed["parse"].([]any)
			if !ok || len(parse) > 0 && !strings.Contains(what, "ping=@here") {
				t.Errorf("%s: %s: mentions are allowed: %v", service, what, body)
			}
			content, _ := body["content"].(string)
			if text, _, _ := strings.Cut(content, "👉"); len(parse) > 0 && regexp.MustCompile(mention).MatchString(text) {
				t.Errorf("%s: %s: the URL allows @here, and the text mentions everybody: %q", service, what, text)
			}
		case "Notifiarr":
			discord, _ := body["discord"].(map[string]any)
			if text, _ := discord["text"].(map[string]any); text["content"] != "" {
				t.Errorf("%s: %s: mentions are added: %v", service, what, body)
			}
		case "KOOK":
			if text, _ := body["content"].(string); body["type"] == 9.0 && regexp.MustCompile(link).MatchString(text) {
				t.Errorf("%s: %s: the text has a link: %q", service, what, text)
			}
		case "Matrix":
			none, ok := body["m.mentions"].(map[string]any)
			if event := body["msgtype"] != nil; event && body["url"] == nil && (!ok || len(none) > 0) {
				t.Errorf("%s: %s: the event has mentions: %v", service, what, body)
			}
			for _, name := range []string{"text", "html"} { // of a bridge
				if text, _ := body[name].(string); regexp.MustCompile(mention).MatchString(text) {
					t.Errorf("%s: %s: the text has mentions: %q", service, what, text)
				}
			}
		case "Telegram":
			text, _ := body["text"].(string)
			if body["parse_mode"] == "HTML" && strings.Contains(text, "<a ") ||
				body["parse_mode"] != nil && body["parse_mode"] != "HTML" && regexp.MustCompile(link).MatchString(text) {
				t.Errorf("%s: %s: the text has a link: %q", service, what, text)
			}
		case "DingTalk":
			if at, _ := body["at"].(map[string]any); at["isAtAll"] != false {
				t.Errorf("%s: %s: everybody is mentioned: %v", service, what, body)
			}
		case "Power Automate / Workflows (for MSTeams)":
			if text, _ := json.Marshal(body); strings.Contains(string(text), `"entities"`) {
				t.Errorf("%s: %s: the card has mentions: %s", service, what, text)
			}
		}
	}
}

// TestForeignServicesListed checks that every service either is in active, or has a
// reason why its texts are harmless.
func TestForeignServicesListed(t *testing.T) {
	reasons := map[string]string{}
	for reason, names := range harmless {
		for _, name := range names {
			if reasons[name] != "" || active[name] != "" {
				t.Errorf("%s is listed twice", name)
			}
			reasons[name] = reason
		}
	}
	for _, s := range notifier.Services() {
		if active[s.Name] == "" && reasons[s.Name] == "" {
			t.Errorf("%s: nothing says what a text of a stranger can do there. "+
				"If it can mention people or name a link, set Foreign in Describe and add a pattern to active; "+
				"otherwise add the reason to harmless", s.Name)
		}
		delete(reasons, s.Name)
	}
	for name := range reasons {
		t.Errorf("there is no service %s", name)
	}
}

// hostileMessages returns messages that mention everybody and name links in the ways
// of all chats, in each format.
func hostileMessages(t *testing.T) map[string]*notifier.Message {
	const everybody = "@everyone @here @all @channel @room @mallory ＠zoe " +
		"@**all** @at=123@ @[Joe](user:1) u/spez /u/spez (met)all(met) (rol)1(rol)"
	out := map[string]*notifier.Message{}
	for name, body := range map[string]string{
		"text": "evil " + everybody + "\n<!channel> <!here|here> <@U024BE7LH> <@&77> <@all> <#C1> " +
			"<users/all> <at user_id=\"all\"></at> <at>ann@example.com</at> <user userId=\"u:1\">x</user>\n" +
			"[click](https://evil.example/a_b) <https://evil.example|click> <a " +
			"href=\"https://evil.example/a_b\">click</a> <a href=\"tg://user?id=1\">x</a> " +
			"[x](mention:1) https://evil.example/@mallory joe@example.com",
		"command": "/md evil @all [click](https://evil.example/a_b)",
		"markdown": "evil " + everybody + "\n\\<!channel> <!here|here> <@U024BE7LH> <@&77> <at user_id=\"all\"></at> <at>ann@example.com</at>\n" +
			"[click](https://evil.example/a_b) [click][r] ![click](https://evil.example/p.png) [x](mention:1) " +
			"[x](tg://user?id=1) <https://evil.example|click>\n\n[r]: https://evil.example/r",
		"html": "<p>evil " + everybody + " &lt;!channel&gt; &lt;@U1&gt; &lt;users/all&gt; " +
			"&lt;at user_id=&quot;all&quot;&gt; &lt;https://evil.example|click&gt; " +
			"[click](https://evil.example/a_b) &#91;click](https://evil.example/a_b)</p>" +
			`<a href="https://evil.example/a_b">click</a> <a href="tg://user?id=1">x</a> <a ` +
			`href="mention:1">x</a> <at id="all"></at> <user userId="u:1">x</user> <!channel>`,
	} {
		m := servicetest.Message(t, "plain")
		m.Title, m.Body = "evil <!channel> @everyone <@1> [click](https://evil.example/t) (met)all(met) <at>x</at>", body
		switch name {
		case "markdown", "html":
			m.Format = notifier.Format(name)
		case "command":
			m.Title = ""
		}
		out[name] = m
	}
	return out
}

func isHostile(text string) bool { return strings.Contains(text, "evil") }

// withFormat returns a URL with the parameter format.
func withFormat(address, format string) string {
	switch {
	case format == "":
		return address
	case strings.Contains(address, "?"):
		return address + "&format=" + format
	}
	return address + "?format=" + format
}

// sentTexts is what a service has sent: its JSON objects, and each text in them, in forms,
// and in addresses.
type sentTexts struct {
	objects []map[string]any
	texts   []string
}

// sendHostile sends m to an address of a case and returns what arrives.
func sendHostile(t *testing.T, c servicetest.Case, address string, m *notifier.Message) sentTexts {
	t.Helper()
	var mu sync.Mutex
	var w sentTexts
	sender := servicetest.NewSenderOver(t, roundTripper(func(q *http.Request) (*http.Response, error) {
		var body []byte
		if q.Body != nil {
			var err error
			if body, err = io.ReadAll(q.Body); err != nil {
				return nil, err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		w.addRequest(q, body)
		return servicetest.Respond(q, c.Answers), nil
	}))
	d, err := sender.ParseWithFiles(address, nil, notifier.Files{Dir: c.Files})
	if err != nil {
		return sentTexts{}
	}
	sender.Send(t.Context(), m, []notifier.Target{{Destination: d}}, notifier.Options{})
	return w
}

type roundTripper func(q *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

func (w *sentTexts) addRequest(q *http.Request, body []byte) {
	w.addValues(q.URL.Query())
	media, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	switch {
	case media == "application/x-www-form-urlencoded" && !json.Valid(body):
		form, _ := url.ParseQuery(string(body))
		w.addValues(form)
	case media == "multipart/form-data":
		w.addValues(servicetest.FormFields(q, string(body)))
	default:
		w.addText(string(body))
	}
}

func (w *sentTexts) addValues(v url.Values) {
	for _, texts := range v {
		for _, text := range texts {
			w.addText(text)
		}
	}
}

// addText adds a text, or what is in it if it is JSON or base64.
func (w *sentTexts) addText(text string) {
	var v any
	if json.Unmarshal([]byte(text), &v) == nil && v != any(text) {
		if object, ok := v.(map[string]any); ok {
			w.objects = append(w.objects, object)
		}
		w.addJSON(v)
		return
	}
	if data, err := base64.StdEncoding.DecodeString(text); err == nil && len(data) > 20 {
		text = strings.ToValidUTF8(string(data), "")
	}
	w.texts = append(w.texts, text)
}

func (w *sentTexts) addJSON(v any) {
	switch v := v.(type) {
	case string:
		w.addText(v)
	case []any:
		for _, item := range v {
			w.addJSON(item)
		}
	case map[string]any:
		for _, item := range v {
			w.addJSON(item)
		}
	}
}

// TestForeignParts checks that each part of a long message of another program is
// harmless, wherever it is cut.
func TestForeignParts(t *testing.T) {
	for _, address := range []string{
		"discord://123456789/t0ken-secret?overflow=split",
		"mmost://mattermost.example.com/3ccdd113474722377935511fc85d3dd4?overflow=split",
	} {
		for width := range 30 {
			m := servicetest.Message(t, "plain")
			m.Foreign, m.Title, m.Body = true, "", strings.Repeat("x", 1980+width)+
				strings.Repeat(" evil [click](https://evil.example/a_b) @everyone <!channel>", 90)
			sent := sendHostile(t, servicetest.Case{}, address, m)
			if len(sent.objects) < 2 {
				t.Fatalf("%d parts", len(sent.objects))
			}
			for _, part := range sent.objects {
				text, _ := part["content"].(string)
				pattern := link
				if text == "" {
					text, _ = part["text"].(string)
					pattern = active["Mattermost"]
				} else if part["allowed_mentions"] == nil {
					t.Errorf("a part may mention people: %v", part)
				}
				if found := regexp.MustCompile(pattern).FindString(text); found != "" {
					t.Errorf("%s, width %d: %q is active in %q", address, width, found, text)
				}
			}
		}
	}
}
