package services

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// recognized describes what a text is taken for: the services that are sure or,
// if none is, the first ones, each with the form and the values.
func recognized(found []notifier.Recognized) string {
	var out []string
	for _, r := range found {
		if found[0].Sure != r.Sure || len(out) == 3 {
			break
		}
		text := r.Service.Name
		if r.Form.Way != "" {
			text += " " + r.Form.Way
		}
		if r.Values.Scheme != "" {
			text += " " + r.Values.Scheme + "://"
		}
		for _, name := range slices.Sorted(maps.Keys(r.Values.Texts)) {
			text += fmt.Sprintf(" %s=%s", name, strings.Join(r.Values.Texts[name], ","))
		}
		for _, name := range slices.Sorted(maps.Keys(r.Values.Maps)) {
			var entries []string
			for _, key := range slices.Sorted(maps.Keys(r.Values.Maps[name])) {
				entries = append(entries, key+":"+r.Values.Maps[name][key])
			}
			text += " " + name + "=" + strings.Join(entries, ",")
		}
		if r.Values.Slash {
			text += " slash"
		}
		if r.Note != "" {
			text += " (!)"
		}
		if !r.Sure {
			text += "?"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// TestRecognize checks which services a pasted text is offered to, and which
// fields it fills in. (!) stands for a note, and ? for a guess.
func TestRecognize(t *testing.T) {
	hex := func(n int) string { return strings.Repeat("0123456789abcdef", 4)[:n] }
	for text, want := range map[string]string{
		// tokens
		"123456789:AAabcdefghijklmnopqrstuvwxyz0123456":       "Telegram bot_token=123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
		" \"123456789:AAabcdefghijklmnopqrstuvwxyz0123456\" ": "Telegram bot_token=123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
		"xoxb-1234-1234-abc124":                               "Slack with the token of a bot access_token=xoxb-1234-1234-abc124",
		"xapp-1-A012-345-abc":                                 "Slack with a webhook (!)",
		"uQiRzpo4DXghDmr9QzzfQu27cmVRsG":                      "",
		"uqirzpo4dxghdmr9qzzfqu27cmvrsg":                      "Pushover user_key=uqirzpo4dxghdmr9qzzfqu27cmvrsg",
		"azgdorepk8gmac0qoyamyeeuzjnyui":                      "Pushover token=azgdorepk8gmac0qoyamyeeuzjnyui",
		"R0123456789ABCDEF0123456789ABCDE":                    "PagerDuty integrationkey=R0123456789ABCDEF0123456789ABCDE",
		hex(32): "PagerDuty integrationkey=" +
			hex(32) + "?; Twilio auth_token=" + hex(32) + "?",
		"01234567-89ab-cdef-0123-456789abcdef": "Jira apikey=01234567-89ab-cdef-0123-456789abcdef?; " +
			"Opsgenie apikey=01234567-89ab-cdef-0123-456789abcdef?; Postmark to addresses of " +
			"your choice apikey=01234567-89ab-cdef-0123-456789abcdef?",
		"tk_" + hex(29):                 "ntfy with a topic of ntfy.sh token=tk_" + hex(29),
		"AbCdEf.GhIjKlMn":               "Gotify token=AbCdEf.GhIjKlMn?",
		"CbCdEf.GhIjKlMn":               "Gotify (!)?",
		"syt_YWxpY2U_abcdefghij_123456": "Matrix with an access token token=syt_YWxpY2U_abcdefghij_123456",
		"abcdefghijklmnopqrstuvwxyz":    "Mattermost token=abcdefghijklmnopqrstuvwxyz?",
		"eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJub3RpZnkifQ.c2lnbmF0dXJl": "HomeAssistant " +
			"accesstoken=eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJub3RpZnkifQ.c2lnbmF0dXJl?",
		"AC" + hex(32):                         "Twilio account_sid=AC" + hex(32),
		"SG.0123456789abcdefghijkl." + hex(43): "SendGrid to addresses of your choice apikey=SG.0123456789abcdefghijkl." + hex(43),
		"re_0123456789abcdefABCD":              "Resend to addresses of your choice apikey=re_0123456789abcdefABCD",
		"o." + hex(32):                         "Pushbullet accesstoken=o." + hex(32),
		"AKIAIOSFODNN7EXAMPLE": "AWS SES with the sender's address in one field " +
			"access_key_id=AKIAIOSFODNN7EXAMPLE?; AWS SNS access_key_id=AKIAIOSFODNN7EXAMPLE?",
		"trgv_a1b2c3d4_" + hex(32):                                     "Trigv through trigv.com api_key=trgv_a1b2c3d4_" + hex(32),
		"MTA5ODc2NTQzMjEwOTg3NjU0Mw.GabcDe." + strings.Repeat("a", 38): "Discord (!)",
		// names
		"@ops_bot":                             "Telegram (!)",
		"https://t.me/OpsBot":                  "Telegram (!)",
		"@ourchannel":                          "Telegram targets=ourchannel (!)?",
		"@alice:matrix.org":                    "Matrix with a user name and a password host=matrix.org user=alice",
		"#ops:example.com":                     "Matrix with an access token host=example.com targets=#ops:example.com",
		"https://matrix.to/#/#ops:example.com": "Matrix with an access token host=example.com targets=#ops:example.com",
		"alerts-bot@acme.zulipchat.com":        "Zulip botname=alerts organization=acme",
		"mobile_app_phone":                     "HomeAssistant targets=mobile_app_phone",
		"alice@gmail.com": "E-Mail host=gmail.com user=alice (!)?; " +
			"AWS SES with the sender's address in one field targets=alice@gmail.com?; " +
			"Brevo to addresses of your choice targets=alice@gmail.com?",
		"mailto:alice@gmail.com": "E-Mail host=gmail.com user=alice (!)?; AWS SES with the sender's address " +
			"in one field targets=alice@gmail.com?; Brevo to addresses of your choice targets=alice@gmail.com?",
		"+49 170 1234567":     "Twilio targets=+49 170 1234567?; Vonage targets=+49 170 1234567?; 800.com targets=+49 170 1234567?",
		"tel:+1-555-123-4567": "Twilio targets=+1-555-123-4567?; Vonage targets=+1-555-123-4567?; 800.com targets=+1-555-123-4567?",
		// addresses
		"https://discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js": "Discord " +
			"discord:// webhook_id=4174216298 webhook_token=JHMHI8qBe7bk2ZwO5U711o3dV_js",
		"discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js": "Discord " +
			"discord:// webhook_id=4174216298 webhook_token=JHMHI8qBe7bk2ZwO5U711o3dV_js",
		"https://discord.gg/abc": "Discord (!)",
		"https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ": "Slack " +
			"with a webhook slack:// token_a=T1JJ3T3L2 token_b=A1BRTD4JD token_c=TIiajkdnlazkcOXrIdevi7FQ",
		"https://acme.webhook.office.com/webhookb2/a@b/IncomingWebhook/c/d": "Power Automate / Workflows (for MSTeams) (!)",
		"https://chat.googleapis.com/v1/spaces/AAAA/messages?key=K&token=T": "Google " +
			"Chat gchat:// webhook_key=K webhook_token=T workspace=AAAA",
		"https://api.telegram.org/bot123456789:AAabcdefghijklmnopqrstuvwxyz0123456/getUpdates": "Telegram " +
			"bot_token=123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
		"https://ntfy.sh/my-alerts": "ntfy " +
			"with a server of your own ntfys:// host=ntfy.sh mode=cloud targets=my-alerts",
		"ntfy.sh/my-alerts": "ntfy with a server of your own ntfys:// host=ntfy.sh mode=cloud targets=my-alerts",
		"https://push.example.com/message?token=AbCdEf.GhIjKlMn": "Gotify " +
			"gotifys:// host=push.example.com token=AbCdEf.GhIjKlMn",
		"http://10.0.0.5:8080/gotify/message?token=AbCdEf.GhIjKlMn": "Gotify " +
			"gotify:// host=10.0.0.5 path=gotify port=8080 token=AbCdEf.GhIjKlMn",
		"https://chat.example.com/hooks/abcdefghijklmnopqrstuvwxyz": "Mattermost " +
			"mmosts:// host=chat.example.com token=abcdefghijklmnopqrstuvwxyz",
		"https://chat.example.com/hooks/66a1b2c3d4e5f6a7b8c9d0e1/Zxcvbnm123": "Rocket.Chat " +
			"rockets:// host=chat.example.com webhook=66a1b2c3d4e5f6a7b8c9d0e1/Zxcvbnm123",
		"http://homeassistant.local:8123/lovelace/0": "HomeAssistant " +
			"hassio:// host=homeassistant.local port=8123",
		"https://hass.example.com": "HomeAssistant " +
			"hassios:// host=hass.example.com",
		"https://matrix.example.com/_matrix/client/versions": "Matrix " +
			"with an access token matrixs:// host=matrix.example.com",
		"https://cloud.example.com/call/abc123xy": "Nextcloud " +
			"Talk nctalks:// host=cloud.example.com targets=abc123xy",
		"https://api.day.app/0123456789abcdef/text": "Bark " +
			"barks:// host=api.day.app targets=0123456789abcdef",
		"https://maker.ifttt.com/trigger/door/with/key/bAbCdEf0123456789": "IFTTT " +
			"with the key before an @ events=door webhook_id=bAbCdEf0123456789",
		"https://chat.example.com:5001/webapi/entry.cgi?api=SYNO.Chat.External&token=%22abc123%22": "Synology " +
			"Chat synologys:// host=chat.example.com port=5001 token=abc123",
		"https://push.example.com/alerts": "ntfy with a server of your own ntfys:// " +
			"host=push.example.com targets=alerts?; Apprise API apprises:// host=push.example.com path=alerts?; " +
			"Enigma2 enigma2s:// host=push.example.com path=alerts?",
		"https://gotify.example.com": "Gotify gotifys:// host=gotify.example.com?; ntfy with a server of " +
			"your own ntfys:// host=gotify.example.com?; Apprise API apprises:// host=gotify.example.com?",
		"http://10.0.0.5:8123":     "HomeAssistant hassio:// host=10.0.0.5 port=8123",
		"10.0.0.5:8123":            "HomeAssistant hassio:// host=10.0.0.5 port=8123",
		"homeassistant.local:8123": "HomeAssistant hassio:// host=homeassistant.local port=8123",
		"https://me:pw@flow.example.com/hooks/a%2Fb/?x=1&y=a%20b": "Form forms:// " +
			"host=flow.example.com password=pw path=hooks,a/b user=me params=x:1,y:a b slash?; " +
			"JSON jsons:// host=flow.example.com password=pw path=hooks,a/b user=me params=x:1,y:a b slash?",
		// URLs
		"tgram://123456789:AAabcdefghijklmnopqrstuvwxyz0123456/42": "Telegram tgram:// " +
			"bot_token=123456789:AAabcdefghijklmnopqrstuvwxyz0123456 targets=42",
		"url gotifys://push.example.com/AbCdEf": "Gotify gotifys:// host=push.example.com token=AbCdEf",
		"tgram://":                              "Telegram (!)?",
		// a password with characters that divide a URL
		"mailtos://me:a/b?c#d@e@gmail.com": "E-Mail mailtos:// host=gmail.com password=a/b?c#d@e user=me (!)",
		"mailtos://me:12/34@gmail.com?to=ops@example.com": "E-Mail mailtos:// " +
			"host=gmail.com password=12/34 targets=ops@example.com user=me (!)",
		"url matrixs://me:a%2Fb/c@matrix.example.com:8448/%23ops": "Matrix with a user name and a " +
			"password matrixs:// host=matrix.example.com port=8448 targets=#ops token=a/b/c user=me (!)",
	} {
		found, err := notifier.Recognize(text)
		if got := recognized(found); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is\n%s\nwant\n%s\nerror %v", text, got, want, err)
		}
		// The form takes the values: only others may be missing.
		for _, r := range found {
			_, problems := r.Form.Build(r.Values)
			for _, p := range problems {
				if _, filled := r.Values.Texts[p.Param]; filled || p.Param != "" && !strings.Contains(p.Problem, "missing") {
					t.Errorf("%q: %s refuses it: %v", text, r.Service.Name, p)
				}
			}
		}
	}
	for text, want := range map[string]string{
		"hello": "no service gives out a text of this form; " +
			"search for the name of the service, and paste the text into the field of its form",
		"":                              "no service gives out",
		"discrod://s3cret/x":            "you may mean discord://",
		"msteams://s3cret":              "use workflows://",
		"https://example.com/#s3cret":   "belongs to none of the services",
		strings.Repeat("s3cret", 20000): "too long",
		"s3cret\x00\xff":                "no service gives out",
	} {
		found, err := notifier.Recognize(text)
		if len(found) > 0 || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%.40q: %s, %v; want %s", text, recognized(found), err, want)
		}
	}
}

// TestRecognizeInNetwork checks that an address of a private network is that of a web server, also
// without a scheme, and neither a telephone number nor a name.
func TestRecognizeInNetwork(t *testing.T) {
	for text, with := range map[string]string{
		"192.168.1.20": "http://192.168.1.20", "192.168.1.20/hook": "http://192.168.1.20/hook", "10.0.0.5:9000": "http://10.0.0.5:9000",
		"fd00::20": "http://[fd00::20]", "[fd00::20]:80": "http://[fd00::20]:80", "nas.lan": "http://nas.lan", "nas:8080": "http://nas:8080",
		"203.0.113.5": "http://203.0.113.5", "nas.home.arpa:80/x": "http://nas.home.arpa:80/x",
	} {
		found, err := notifier.Recognize(text)
		want, _ := notifier.Recognize(with)
		if err != nil || recognized(found) == "" || recognized(found) != recognized(want) {
			t.Errorf("%s is\n%s, %v, not\n%s", text, recognized(found), err, recognized(want))
		}
		if local := text != "203.0.113.5"; local != strings.HasSuffix(found[len(found)-1].What, "in your network") {
			t.Errorf("%s is %s", text, found[len(found)-1].What)
		}
	}
}

// TestHints checks that each service with a hint is offered a text with its own
// example, that the notes are no whole sentences, and that no hint is sure of an
// example of another service.
func TestHints(t *testing.T) {
	for _, s := range notifier.Services() {
		for _, p := range s.Params {
			if p.Example == "" || !p.Secret {
				continue
			}
			found, _ := notifier.Recognize(p.Example)
			for _, r := range found {
				if r.Sure && r.Service.Name != s.Name {
					t.Errorf("%s: the example of %s, %s, is taken for %s of %s", s.Name, p.Name, p.Example, r.What, r.Service.Name)
				}
				if strings.HasSuffix(r.Note, ".") || r.What == "" {
					t.Errorf("%s: %q, %q", r.Service.Name, r.What, r.Note)
				}
			}
		}
	}
}
