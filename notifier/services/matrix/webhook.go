package matrix

import (
	"context"
	"html"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// postWebhook posts to a webhook of a bridge: matrix-appservice-webhooks in its
// own format (also at t2bot.io) or Slack's, or matrix-hookshot.
func (x *service) postWebhook(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	name := x.User
	if name == "" {
		name = m.Identity.Name
	}
	address := x.URL("api", "v1", "matrix", "hook", x.token)
	var payload map[string]any
	switch x.mode {
	case "slack":
		payload = map[string]any{
			"username": name,
			"mrkdwn":   m.Format == notifier.Markdown,
			"attachments": []map[string]any{{
				"title": slackEscaper.Replace(m.Title), "text": slackEscaper.Replace(m.Body),
				"color": m.Type.Color(), "ts": m.Time.Unix(), "footer": m.Identity.Name,
			}},
		}
	case "hookshot":
		address = x.URL() + notifier.Path(strings.Split(x.path, "/")...) + notifier.Path(x.token)
		payload = map[string]any{"username": name, "text": plainText(m, "\r\n"), "html": htmlText(m)}
	default:
		payload = map[string]any{"displayName": name, "format": "html", "text": htmlText(m)}
		if m.Format == notifier.Text {
			payload["format"], payload["text"] = "plain", m.Text("\r\n")
		}
	}
	if x.mode == "t2bot" {
		address = "https://webhooks.t2bot.io/api/v1/matrix/hook/" + x.token
		if icon := m.Icon(32); x.image && icon != "" {
			payload["avatarUrl"] = icon
		}
	}
	return c.PostJSON(ctx, address, payload)
}

var slackEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// htmlText returns title and body as HTML.
func htmlText(m *notifier.Message) string {
	title := ""
	if m.Title != "" {
		title = "<h1>" + html.EscapeString(m.Title) + "</h1>"
	}
	switch m.Format {
	case notifier.HTML:
		return title + m.Body
	case notifier.Markdown:
		return title + markup.Convert(m.Body, notifier.Markdown, notifier.HTML)
	}
	return strings.ReplaceAll(html.EscapeString(m.Text("\r\n")), "\n", "<br/>")
}

// plainText returns title and body as plain text, with sep between them.
func plainText(m *notifier.Message, sep string) string {
	text := *m
	if m.Format == notifier.Markdown && m.Foreign { // a reader should not see the escapes
		text.Format, text.Body = notifier.HTML, markup.Convert(m.Body, notifier.Markdown, notifier.HTML)
	}
	if text.Format == notifier.HTML {
		text.Body = markup.Convert(text.Body, notifier.HTML, notifier.Text)
	}
	return text.Text(sep)
}
