package telegram

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// The owner of the bot is looked up until that succeeds, and then not again.
func TestOwner(t *testing.T) {
	lookups, sent := 0, 0
	send := servicetest.API(func(q *http.Request, body string) (int, string) {
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
	}).Destination(t, "tgram://123456789:abcdefg_hijklmnop")
	if err := send(servicetest.Message(t, "plain")); err == nil {
		t.Error("a message without a chat counts as sent")
	}
	for range 2 {
		if err := send(servicetest.Message(t, "plain")); err != nil {
			t.Error(err)
		}
	}
	if lookups != 2 || sent != 2 {
		t.Errorf("%d look-ups and %d messages, want 2 and 2", lookups, sent)
	}
}

// Text with markup that Telegram cannot read arrives as plain text, and a delay
// in the body of an answer is honoured.
func TestFallback(t *testing.T) {
	var texts []string
	limited := false
	server := servicetest.API(func(q *http.Request, body string) (int, string) {
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
		msg := servicetest.Message(t, m)
		msg.Format = notifier.HTML
		if err := server.Destination(t, "tgram://123456789:abcdefg_hijklmnop/5")(msg); err != nil {
			t.Errorf("%s: %v", m, err)
		}
		if len(texts) < 2 || strings.Contains(texts[1], "HTML") || strings.Contains(texts[1], "<b>") {
			t.Errorf("%s: sent %q", m, texts)
		}
	}
}

// The icon is uploaded, and fetched by Telegram if the gateway cannot get it.
func TestIcon(t *testing.T) {
	for name, c := range map[string]struct {
		code          int
		answer        string
		icon          string
		want, warning string
	}{
		"a picture":    {200, string(servicetest.Picture), "http://icons.example.com/{type}.png?v=1", "uploaded", ""},
		"no picture":   {200, "<html>", "https://icons.example.com/{type}", "by address", ""},
		"not found":    {404, "", "https://icons.example.com/{type}.png", "by address", ""},
		"without icon": {200, string(servicetest.Picture), "", "", "image=yes has no effect"},
	} {
		var got []string
		m := servicetest.Message(t, "plain")
		m.Identity.Icon = c.icon
		report := servicetest.API(func(q *http.Request, body string) (int, string) {
			switch {
			case q.Method == "GET" && strings.HasPrefix(q.URL.Path, "/info"):
				return c.code, c.answer
			case !strings.HasSuffix(q.URL.Path, "/sendPhoto"):
			case servicetest.FormFields(q, body).Get("photo") == string(servicetest.Picture):
				got = append(got, "uploaded")
			case strings.Contains(body, `"photo":"https://icons.example.com/info`):
				got = append(got, "by address")
			}
			return 200, `{"ok": true}`
		}).Report(t, "tgram://123456789:abcdefg_hijklmnop/5/6?image=yes", m)
		want := []string{c.want, c.want}
		if c.want == "" {
			want = nil
		}
		if r := report.Results[0]; r.Err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q and the error %v", name, got, r.Err)
		}
		warned := false
		for _, r := range report.Records {
			warned = warned || strings.Contains(r.Text, c.warning)
		}
		if !warned {
			t.Errorf("%s: the records are %v", name, report.Records)
		}
	}
}

// A plain text keeps the elements that Telegram shows. Any other text with < or
// > is escaped.
func TestPlainText(t *testing.T) {
	for text, want := range map[string]string{
		"<b>91%</b> full":                        "",
		`see <a href="https://x.org/?a=1">x</a>`: "",
		"<b>a <i>b</i></b> &lt;c&gt; AT&T":       "",
		"<b>a <i>b</b></i>":                      "&lt;b&gt;a &lt;i&gt;b&lt;/b&gt;&lt;/i&gt;",
		"<b>open":                                "&lt;b&gt;open",
		"a < b":                                  "a &lt; b",
		"<b>a</b> > c":                           "&lt;b&gt;a&lt;/b&gt; &gt; c",
		"<b>x</b> List<int>":                     "&lt;b&gt;x&lt;/b&gt; List&lt;int&gt;",
		"</b>":                                   "&lt;/b&gt;",
		"&lt; & AT&T":                            "&amp;lt; & AT&T",
	} {
		if want == "" {
			want = text
		}
		if got, _ := new(service).text(&notifier.Message{Body: text, Format: notifier.Text}); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	// In HTML, the writer has escaped what looks like an element.
	if got, _ := new(service).text(&notifier.Message{
		Body: "<b>a</b>", Format: notifier.Text, Source: notifier.HTML,
	}); got != "&lt;b&gt;a&lt;/b&gt;" {
		t.Errorf("what was escaped in HTML becomes %q", got)
	}
}

// A group that has become a supergroup gets the message under its new id, and
// the client gets a warning.
func TestMove(t *testing.T) {
	var got []string
	server := servicetest.API(func(q *http.Request, body string) (int, string) {
		if strings.Contains(body, "-5") && !strings.Contains(body, "-1005") {
			return 400, `{"ok": false, "description": "Bad Request: group chat was ` +
				`upgraded to a supergroup chat", "parameters": {"migrate_to_chat_id": -1005}}`
		}
		got = append(got, q.URL.Path[strings.LastIndex(q.URL.Path, "/")+1:])
		return 200, `{"ok": true}`
	})
	for name, want := range map[string]string{"plain": "sendMessage", "attach": "sendDocument sendPhoto"} {
		got = nil
		report := server.Report(t, "tgram://123456789:abcdefg_hijklmnop/-5", servicetest.Message(t, name))
		if !report.OK() || strings.Join(got, " ") != want {
			t.Errorf("%s: the group has %s, want %s: %v", name, got, want, report.Results[0].Err)
		}
		if records := fmt.Sprint(report.Records); strings.Count(records, "-1005") != 1 {
			t.Errorf("the records do not name the new id once: %s", records)
		}
	}
}

// A file that Telegram refuses as a picture or sound is sent as a document.
func TestUnfit(t *testing.T) {
	large := make([]byte, 10<<20+1)
	for _, tt := range []struct {
		name, kind string
		data       []byte
		refusal    string
		want       string // what was tried, in order
	}{
		{"a.png", "image/png", servicetest.Picture, "", "sendPhoto"},
		{"a.jpg", "image/jpeg", servicetest.Picture, "Bad Request: PHOTO_INVALID_DIMENSIONS", "sendPhoto sendDocument"},
		{"a.webp", "image/webp", servicetest.Picture, "Bad Request: IMAGE_PROCESS_FAILED", "sendPhoto sendDocument"},
		{"a.png", "image/png", servicetest.Picture, "Bad Request: chat not found", "sendPhoto sendMessage"},
		{"a.png", "image/png", large, "", "sendDocument"},
		{"a.svg", "image/svg+xml", servicetest.Picture, "", "sendDocument"},
		{"a.tiff", "image/tiff", servicetest.Picture, "", "sendDocument"},
		{"a.gif", "image/gif", servicetest.Picture, "", "sendAnimation"},
		{"a.ogg", "audio/ogg", servicetest.Picture, "Bad Request: VOICE_MESSAGES_FORBIDDEN", "sendVoice sendDocument"},
	} {
		t.Run(tt.kind+" "+tt.refusal, func(t *testing.T) {
			var tried []string
			m := servicetest.Message(t, "notitle")
			m.Body = ""
			m.Attachments = []*notifier.Attachment{notifier.NewAttachment(tt.name, tt.kind, tt.data)}
			err := servicetest.API(func(q *http.Request, body string) (int, string) {
				method := q.URL.Path[strings.LastIndex(q.URL.Path, "/")+1:]
				tried = append(tried, method)
				if tt.refusal != "" && method != "sendDocument" {
					return 400, fmt.Sprintf(`{"ok": false, "description": %q}`, tt.refusal)
				}
				return 200, `{"ok": true}`
			}).Destination(t, "tgram://123456789:abcdefg_hijklmnop/5")(m)
			if got := strings.Join(tried, " "); got != tt.want {
				t.Errorf("tried %s, want %s: %v", got, tt.want, err)
			}
			if delivered := tt.refusal == "" || strings.HasSuffix(tt.want, "sendDocument"); delivered != (err == nil) {
				t.Error(err)
			}
		})
	}
}

// A message with HTML but no text that Telegram can show fails.
func TestNothingLeft(t *testing.T) {
	for _, html := range []string{`<img src="https://a.b/c.png">`, "<style>p { color: red }</style>", "<!-- x -->"} {
		m := servicetest.Message(t, "notitle")
		m.Format, m.Body = notifier.HTML, html
		err := servicetest.API(func(*http.Request, string) (int, string) {
			t.Errorf("%s: something was sent", html)
			return 200, `{"ok": true}`
		}).Destination(t, "tgram://123456789:abcdefg_hijklmnop/5")(m)
		if err == nil || !strings.Contains(err.Error(), "no text that Telegram can show") {
			t.Errorf("%s: %v", html, err)
		}
	}
}

// A character beyond U+FFFF counts twice.
func TestLength(t *testing.T) {
	var lengths []int
	m := servicetest.Message(t, "notitle")
	m.Body = strings.Repeat("🙂", 3000)
	err := servicetest.API(func(_ *http.Request, body string) (int, string) {
		lengths = append(lengths, strings.Count(body, "🙂"))
		return 200, `{"ok": true}`
	}).Destination(t, "tgram://123456789:abcdefg_hijklmnop/5?overflow=split")(m)
	if err != nil || fmt.Sprint(lengths) != "[2048 952]" {
		t.Errorf("parts of %v: %v", lengths, err)
	}
}

func TestHTML(t *testing.T) {
	for in, want := range map[string]string{
		"<h1>One</h1><p>two <strong>three</strong></p>":                        "<b>One</b>\ntwo <b>three</b>",
		"a<br>b<br/><br/>c":                                                    "a\nb\nc",
		"<ul>\n<li>one</li>\n<li><em>two</em></li></ul>":                       "-one\n-<i>two</i>",
		"<ol start=3><li>c<ul><li>x</li></ul></li><li value=\"7\">d</li></ol>": "3. c\n-x\n7. d",
		"1 &lt; 2 &amp;&amp; x &nbsp;y &eacute;":                               "1 &lt; 2 &amp;&amp; x  y é",
		"<script>alert(1)</script>x<!-- y -->z":                                "xz",
		"<span style='x'>a</span> <div>b</div>":                                "a \nb",
		`<a href="https://a.b/?c=1&amp;d" class="x">e</a>`:                     `<a href="https://a.b/?c=1&amp;d">e</a>`,
		"two  spaces<br/>  indented":                                           "two  spaces\n  indented",
		"<pre>  x\n  y</pre>z":                                                 "<pre>  x\n  y</pre>\nz",
		"<tg-spoiler>a</tg-spoiler> <unknown>b":                                "<tg-spoiler>a</tg-spoiler> <unknown>b",
		`<img src="x" alt="a picture">`:                                        "a picture",
		"<p><b>a <i>b</b> c</i> d</p></u>e <a name=f>f</a> <b>g":               "<b>a <i>b</i></b> c d\ne f <b>g</b>",
		"<pre>a\n b": "<pre>a\n b</pre>",
		"<details><summary>a</summary>b</details><legend>c</legend>d": "a\nb\nc\nd",
		"a\n  b": "a b",
		"":       "",
	} {
		if got := reduceHTML(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// If a file is refused, the text arrives, also if it goes after the files or is
// too long for one message.
func TestRefusedFiles(t *testing.T) {
	for name, body := range map[string]string{"short": strings.Repeat("ö", 1500), "long": strings.Repeat("ö", 5000)} {
		for _, content := range []string{"before", "after"} {
			t.Run(name+" "+content, func(t *testing.T) {
				length, files := 0, 0
				m := servicetest.Message(t, "attach")
				m.Title, m.Body = "", body
				r := servicetest.API(func(_ *http.Request, body string) (int, string) {
					n := strings.Count(body, "ö")
					switch file := strings.Contains(body, `filename="`); {
					case file && files == 1:
						return 413, ""
					case file:
						files++
					case n > 4096:
						return 400, `{"ok": false, "description": "Bad Request: message is too long"}`
					}
					length += n
					return 200, `{"ok": true}`
				}).Report(t, "tgram://123456789:abcdefg_hijklmnop/5?content="+content, m).Results[0]
				if length != utf8.RuneCountInString(body) || files != 1 || r.Err == nil {
					t.Errorf("%d characters and %d files arrived: %v", length, files, r.Err)
				}
			})
		}
	}
}
