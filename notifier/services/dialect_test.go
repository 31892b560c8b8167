package services_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestDialects checks that a chat gets the references of its own dialect, such as
// mentions, and that others get words. Times have the zone of the destination.
func TestDialects(t *testing.T) {
	const (
		slack   = "<!channel> *disk* of <https://db1.example.net|db1> ~sda~ &lt;!here&gt; <@U1|bob>"
		discord = "<@&42> @here **disk** full since <t:1618953630:R>"
	)
	for name, tt := range map[string]struct {
		url  string
		m    notifier.Message
		want string // in the request
	}{
		"Slack to Slack": {
			"slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
			notifier.Message{Body: slack, Dialect: markup.DialectSlack},
			"<!channel> *disk* of <https://db1.example.net|db1> ~sda~ &lt;!here&gt; <@U1|bob>",
		},
		"Slack to Slack, blocks": {
			"slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ?blocks=yes",
			notifier.Message{Body: slack, Dialect: markup.DialectSlack},
			"<!channel> *disk*",
		},
		"Slack to Slack, as text": {
			"slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ?format=text",
			notifier.Message{Body: slack, Dialect: markup.DialectSlack},
			"@channel disk of db1 (https://db1.example.net) sda <!here> @bob",
		},
		"Slack to Discord": {
			"discord://1/token",
			notifier.Message{Body: slack, Dialect: markup.DialectSlack},
			"@channel **disk** of [db1](https://db1.example.net) ~~sda~~ \\<!here> @bob",
		},
		"Slack to Mattermost": {
			"mmosts://mattermost.example.net/token",
			notifier.Message{Body: slack, Dialect: markup.DialectSlack},
			"@channel **disk**",
		},
		"Slack to HTML": {
			"jsons://example.net?format=html",
			notifier.Message{Body: slack, Dialect: markup.DialectSlack},
			"<p>@channel <strong>disk</strong>",
		},
		"Slack, foreign, to Slack": {
			"slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
			notifier.Message{Body: slack, Dialect: markup.DialectSlack, Foreign: true},
			"@channel *disk*",
		},
		"Discord to Discord": {"discord://1/token", notifier.Message{Body: discord, Dialect: markup.DialectDiscord}, discord},
		"Discord to an embed": {
			"discord://1/token?format=markdown",
			notifier.Message{Body: discord, Dialect: markup.DialectDiscord},
			discord,
		},
		"Discord to Slack": {
			"slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ?tz=Europe/Berlin",
			notifier.Message{Body: discord, Dialect: markup.DialectDiscord},
			"@42 @here *disk* full since 2021-04-20 23:20 CEST",
		},
		"Discord to text": {
			"jsons://example.net?tz=UTC",
			notifier.Message{Body: discord, Dialect: markup.DialectDiscord},
			"@42 @here disk full since 2021-04-20 21:20 UTC",
		},
		"a client's Markdown": {"jsons://example.net", notifier.Message{Body: discord}, discord},
		"a client's, for Slack": {
			"slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
			notifier.Message{Body: "<!channel> **disk**"},
			"<!channel> *disk*",
		},
		"Slack's, not in Markdown": {
			"jsons://example.net",
			notifier.Message{Body: "<!channel>", Format: notifier.Text, Dialect: markup.DialectSlack},
			"<!channel>",
		},
		"Discord to Slack, emphasis": {
			"slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
			notifier.Message{Body: "**a** [b](https://c.example.net)", Dialect: markup.DialectDiscord},
			"*a* <https://c.example.net|b>",
		},
		"Discord to Google Chat": {"gchat://workspace/key/token", notifier.Message{Body: "**a** <@1>", Dialect: markup.DialectDiscord}, "*a* @1"},
		"Discord to Telegram": {
			"tgram://123456789:abcdefg_hijklmnop/12315544",
			notifier.Message{Body: "**a** <@1>", Dialect: markup.DialectDiscord},
			"<b>a</b> @1",
		},
		"Discord to ntfy": {
			"ntfys://ntfy.example.net/topic",
			notifier.Message{Body: "<:disk:1> `<@1>`", Dialect: markup.DialectDiscord},
			":disk: <@1>",
		},
	} {
		if tt.m.Format == "" {
			tt.m.Format = notifier.Markdown
		}
		got := ""
		api := servicetest.API(func(q *http.Request, body string) (int, string) {
			got += textsOf(body) + "\n"
			if q.URL.Host == "hooks.slack.com" {
				return 200, "ok"
			}
			return 200, `{"ok":true}`
		})
		if err := api.Destination(t, tt.url)(&tt.m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: sent %s, want %s", name, got, tt.want)
		}
	}
}

// textsOf returns the texts in a JSON or form body.
func textsOf(body string) string {
	var v any
	if json.Unmarshal([]byte(body), &v) != nil {
		s, err := url.QueryUnescape(body)
		if err != nil {
			return body
		}
		return s
	}
	var out []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(v)
	return strings.Join(out, "\n")
}
