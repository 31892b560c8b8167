package programs

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// readPayload returns what a source reads in a payload that is sent to a path.
func readPayload(t *testing.T, name, path, body string) *source.Message {
	t.Helper()
	m, err := withImages(t, name).Read(t.Context(), &source.Request{
		Method: http.MethodPost, Path: percent.Decode(path), Header: http.Header{"Content-Type": {"application/json"}}, Query: url.Values{},
		Body: []byte(body),
		Time: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC),
	})
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return m
}

// TestPlainTexts checks that texts that chats show as plain text arrive unchanged.
func TestPlainTexts(t *testing.T) {
	const object = `{"type":"plain_text","text":TEXT}`
	texts := []string{
		"*disk* is _full_ of ~old~ `logs`", "**db** 2*3*4", "[log](https://x.example/a)", "## one", "- one", "1. one", "> one", ">>> one",
		"```one```", "AT&T <one>", "a | b",
		`\*one\*`, "<b>one</b> <script>two()</script>", "https://e.example/a_b_c?x=_y_&z",
	}
	for _, place := range []struct{ name, source, path, body string }{
		{"a header", "slack", "", `{"blocks":[{"type":"header","text":` + object + `}]}`},
		{"a second header", "slack", "", `{"blocks":[{"type":"header","text":{"type":"plain_text","text":"x"}},{"type":"header","text":` +
			object + `}]}`},
		{"a section", "slack", "", `{"blocks":[{"type":"section","text":` + object + `}]}`},
		{"a field of a section", "slack", "", `{"blocks":[{"type":"section","fields":[` + object + `]}]}`},
		{"a context", "slack", "", `{"blocks":[{"type":"context","elements":[` + object + `]}]}`},
		{"a button", "slack", "", `{"blocks":[{"type":"actions","elements":[{"type":"button","url":"https://y.example","text":` +
			object + `}]}]}`},
		{
			"an accessory", "slack", "",
			`{"blocks":[{"type":"section","text":{"type":"mrkdwn","text":"x"},"accessory":{"type":"button","url":"https://y.example","text":` +
				object + `}}]}`,
		},
		{"the title of an image", "slack", "", `{"blocks":[{"type":"image","image_url":"https://y.example","title":` + object + `}]}`},
		{"the title of a video", "slack", "", `{"blocks":[{"type":"video","title":` + object + `}]}`},
		{"the description of a video", "slack", "", `{"blocks":[{"type":"video","title":{"type":"plain_text","text":"x"},"description":` +
			object + `}]}`},
		{
			"a rich text", "slack", "",
			`{"blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":TEXT}]}]}]}`,
		},
		{"a cell", "slack", "", `{"blocks":[{"type":"table","rows":[[{"type":"raw_text","text":TEXT}]]}]}`},
		{"a text without markup", "slack", "", `{"mrkdwn":false,"text":TEXT}`},
		{"the title of an attachment", "slack", "", `{"attachments":[{"title":TEXT,"text":"x"}]}`},
		{"the title of the second attachment", "slack", "", `{"attachments":[{"text":"x"},{"title":TEXT}]}`},
		{"an author", "slack", "", `{"attachments":[{"author_name":TEXT,"text":"x"}]}`},
		{"a footer", "slack", "", `{"attachments":[{"footer":TEXT,"text":"x"}]}`},
		{"the title of a field", "slack", "", `{"attachments":[{"text":"x","fields":[{"title":TEXT,"value":""}]}]}`},
		{"a fallback", "slack", "", `{"attachments":[{"fallback":TEXT}]}`},
		{"an action", "slack", "", `{"attachments":[{"text":"x","actions":[{"type":"button","url":"https://y.example","text":TEXT}]}]}`},
		{"an author, Mattermost", "slack", "hooks/abc", `{"attachments":[{"author_name":TEXT,"text":"x"}]}`},
		{"a footer, Mattermost", "slack", "hooks/abc", `{"attachments":[{"footer":TEXT,"text":"x"}]}`},
		{"an author, Rocket.Chat", "slack", "hooks/a/bc", `{"attachments":[{"author_name":TEXT,"text":"x"}]}`},
		{"an author, Discord", "discord", "", `{"embeds":[{"description":"x","author":{"name":TEXT}}]}`},
		{"a footer, Discord", "discord", "", `{"embeds":[{"description":"x","footer":{"text":TEXT}}]}`},
		{
			"a button, Discord", "discord", "",
			`{"content":"x","components":[{"type":1,"components":[{"type":2,"url":"https://y.example","label":TEXT}]}]}`,
		},
		{"a question, Discord", "discord", "", `{"poll":{"question":{"text":TEXT},"answers":[]}}`},
		{"an answer, Discord", "discord", "", `{"poll":{"question":{"text":"x"},"answers":[{"poll_media":{"text":TEXT}}]}}`},
	} {
		for _, text := range texts {
			sent := text
			if place.source == "slack" && !strings.Contains(place.path, "hooks") && !strings.Contains(place.name, "rich") &&
				!strings.Contains(place.name, "cell") && !strings.Contains(place.name, "action") {
				sent = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text) // as Slack's clients send it
			}
			m := readPayload(t, place.source, place.path, strings.ReplaceAll(place.body, "TEXT", payload.Encode(sent)))
			if got := m.Title + "\n" + m.Dialect.Convert(m.Body, markup.Text,
				nil); !strings.Contains(strings.NewReplacer("\u00a0", " ", "¦", "|").Replace(got), text) {
				t.Errorf("%s: %q arrives as %q", place.name, text, got)
			}
		}
	}
}

// TestEmojisOfPlainTexts checks that a plain text of Slack has emojis, unless it says that it has
// none.
func TestEmojisOfPlainTexts(t *testing.T) {
	for emoji, want := range map[string]string{"": "✅ done", `,"emoji":true`: "✅ done", `,"emoji":false`: ":white_check_mark: done"} {
		object := `{"type":"plain_text","text":":white_check_mark: done"` + emoji + `}`
		for _, block := range []string{`{"type":"header","text":` + object + `}`, `{"type":"section","text":` + object + `}`} {
			m := readPayload(t, "slack", "", `{"blocks":[`+block+`]}`)
			if got := m.Title + m.Dialect.Convert(m.Body, markup.Text, nil); got != want {
				t.Errorf("%s: %q, want %q", block, got, want)
			}
		}
	}
}

// TestReferencesOfTitles checks that the titles of attachments of Slack have links and references.
func TestReferencesOfTitles(t *testing.T) {
	m := readPayload(t, "slack", "", `{"text":"x","attachments":[{"title":"*<https://a.example|run>* `+
		`_<!here>_","text":"y","footer":"*<https://b.example|log>* of <@U1|ann>"}]}`)
	if want := "*run* _@here_"; m.Title != want {
		t.Errorf("the title is %q, want %q", m.Title, want)
	}
	if got, want := m.Dialect.Convert(m.Body, markup.Text, nil), "x\ny\n*log (https://b.example)* of @ann"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
}

// TestPropsOfMattermost checks that attachments are read in props, too.
func TestPropsOfMattermost(t *testing.T) {
	const one, two = `[{"title":"db1","text":"**91%** full","color":"#D00000"}]`, `[{"text":"two"}]`
	for _, c := range []struct{ path, body, title, text string }{
		{"hooks/abc", `{"text":"Disk","props":{"attachments":` + one + `}}`, "db1", "Disk\n91% full"},
		{"hooks/abc", `{"props":{"attachments":` + one + `}}`, "db1", "91% full"},
		{"", `{"text":"Disk","props":{"attachments":` + one + `}}`, "db1", "Disk\n91% full"},
		{"", `{"props":{"attachments":` + one + `},"username":"monitor"}`, "db1", "91% full"},
		{"hooks/abc", `{"attachments":` + two + `,"props":{"attachments":` + one + `,"card":"c"}}`, "", "two\ndb1\n91% full"},
		{"hooks/abc", `{"props":{"attachments":{"text":"two"}}}`, "", "two"},
		{"api/v4/posts", `{"channel_id":"c","props":{"attachments":` + one + `}}`, "db1", "91% full"},
		{"api/v4/posts", `{"channel_id":"c","message":"Disk","props":{"attachments":` + one + `}}`, "db1", "Disk\n91% full"},
	} {
		m := readPayload(t, "slack", c.path, c.body)
		if got := m.Dialect.Convert(m.Body, markup.Text, nil); m.Title != c.title || got != c.text {
			t.Errorf("%s %s: %q, %q; want %q, %q", c.path, c.body, m.Title, got, c.title, c.text)
		}
	}
}
