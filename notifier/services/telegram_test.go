package services

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// The owner of the bot is looked up once, and again where the first look-up
// has failed.
func TestTelegramOwner(t *testing.T) {
	lookups, sent := 0, 0
	send := pushService(func(q *http.Request, body string) (int, string) {
		if strings.HasSuffix(q.URL.Path, "/getUpdates") {
			lookups++
			if lookups == 1 {
				return 200, `{"ok": true, "result": []}`
			}
			return 200, `{"ok": true, "result": [{"message": {"from": {"id": 42}}}]}`
		}
		if !strings.Contains(body, `"chat_id":"42"`) {
			return 400, `{"ok": false, "description": "Bad Request: chat not found"}`
		}
		sent++
		return 200, `{"ok": true}`
	}).destination(t, "tgram://123456789:abcdefg_hijklmnop")
	if err := send(message(t, "plain")); err == nil {
		t.Error("a message to nobody counts as sent")
	}
	for range 2 {
		if err := send(message(t, "plain")); err != nil {
			t.Error(err)
		}
	}
	if lookups != 2 || sent != 2 {
		t.Errorf("%d look-ups and %d messages, want 2 and 2", lookups, sent)
	}
}

// What Telegram cannot read as markup arrives as plain text, and a limit that
// it states in its own way is kept to.
func TestTelegramFallback(t *testing.T) {
	var texts []string
	limited := false
	server := pushService(func(q *http.Request, body string) (int, string) {
		if !limited {
			limited = true
			return 429, `{"ok": false, "description": "Too Many Requests", "parameters": {"retry_after": 0.001}}`
		}
		texts = append(texts, body)
		if strings.Contains(body, "HTML") {
			return 400, `{"ok": false, "description": "Bad Request: can't parse entities: Unsupported start tag \"ok\""}`
		}
		return 200, `{"ok": true}`
	})
	for _, m := range []string{"html", "attach"} {
		texts, limited = nil, false
		msg := message(t, m)
		msg.Format = notifier.HTML
		if err := server.destination(t, "tgram://123456789:abcdefg_hijklmnop/5")(msg); err != nil {
			t.Errorf("%s: %v", m, err)
		}
		if len(texts) < 2 || strings.Contains(texts[1], "HTML") || strings.Contains(texts[1], "<b>") {
			t.Errorf("%s: sent %q", m, texts)
		}
	}
}

func TestTelegramHTML(t *testing.T) {
	for in, want := range map[string]string{
		"<h1>One</h1><p>two <strong>three</strong></p>":    "<b>One</b>\ntwo <b>three</b>",
		"a<br>b<br/><br/>c":                                "a\nb\nc",
		"<ul>\n<li>one</li>\n<li><em>two</em></li></ul>":   "-one\n-<i>two</i>",
		"1 &lt; 2 &amp;&amp; x &nbsp;y &eacute;":           "1 &lt; 2 &amp;&amp; x  y é",
		"<script>alert(1)</script>x<!-- y -->z":            "xz",
		"<span style='x'>a</span> <div>b</div>":            "a \nb",
		`<a href="https://a.b/?c=1&amp;d" class="x">e</a>`: `<a href="https://a.b/?c=1&amp;d">e</a>`,
		"two  spaces<br/>  indented":                       "two  spaces\n  indented",
		"<pre>  x\n  y</pre>z":                             "<pre>  x\n  y</pre>\nz",
		"<tg-spoiler>a</tg-spoiler> <unknown>b":            "<tg-spoiler>a</tg-spoiler> <unknown>b",
		`<img src="x" alt="a picture">`:                    "a picture",
		"a\n  b":                                           "a b",
		"":                                                 "",
	} {
		if got := telegramHTML(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestTelegramMarkdown(t *testing.T) {
	const md = `# A\_b **bold** [x.y](https://a.b/(c) ` + "`d.e`" + ` 1.5!`
	for version, want := range map[int]string{
		1: `# A\_b *bold* [x.y](https://a.b/(c) ` + "`d.e`" + ` 1.5!`,
		2: `\# A\_b *bold* [x\.y](https://a.b/(c) ` + "`d.e`" + ` 1\.5\!`,
	} {
		if got := telegramMarkdown(md, version); got != want {
			t.Errorf("version %d: %q, want %q", version, got, want)
		}
	}
}
