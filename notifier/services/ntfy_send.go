package services

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

func (n *ntfy) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Each(ctx, n.topics, func(ctx context.Context, topic string) error {
		if len(m.Attachments) > 0 {
			return n.files(ctx, c, m, topic, m.Attachments, true)
		}
		payload := map[string]string{"topic": topic, "message": m.Body}
		if m.Title != "" {
			payload["title"] = m.Title
		}
		if n.attach != "" {
			payload["attach"] = n.attach
			if n.filename != "" {
				payload["filename"] = n.filename
			}
		}
		q := n.request(m, notifier.JSON(payload))
		if q.Body.Size() > ntfyMessage {
			name := map[notifier.Format]string{notifier.Text: "message.txt", notifier.Markdown: "message.md", notifier.HTML: "message.html"}[m.Format]
			text := notifier.NewAttachment(name, "", []byte(m.Text("\n")))
			return n.files(ctx, c, m, topic, []*notifier.Attachment{text}, false)
		}
		_, err := c.Do(ctx, q)
		return err
	})
}

// files publishes a message for each file; the first one has the text, too,
// where that is wanted.
func (n *ntfy) files(ctx context.Context, c *notifier.Client, m *notifier.Message, topic string, files []*notifier.Attachment, text bool) error {
	for i, f := range files {
		body := notifier.File("", f)
		body.ContentType = "" // the server finds it out
		q := n.request(m, body)
		q.URL += "/" + topic
		q.Query = notifier.Fields("filename", f.Name)
		for name, v := range map[string]string{"title": m.Title, "message": m.Body} {
			if text && i == 0 && v != "" {
				q.Query.Set(name, v)
			}
		}
		err := c.Once(fmt.Sprint(topic, " file ", i), func() error {
			_, err := c.Do(ctx, q)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *ntfy) request(m *notifier.Message, body *notifier.Body) *notifier.Request {
	q := &notifier.Request{Method: "POST", URL: n.URL(), Body: body, Header: map[string]string{
		"X-Delay":   n.delay,
		"X-Click":   ntfyAddress(n.click),
		"X-Email":   n.email,
		"X-Tags":    strings.Join(n.tags, ","),
		"X-Actions": n.actions,
	}}
	if icon := m.Icon(256); n.image && icon != "" {
		q.Header["X-Icon"] = icon
	}
	if n.image && n.icon != "" {
		q.Header["X-Icon"] = n.icon
	}
	if m.Format == notifier.Markdown {
		q.Header["X-Markdown"] = "yes"
	}
	if n.priority != 3 {
		q.Header["X-Priority"] = ntfyPriorities[n.priority]
	}
	switch {
	case n.token != "":
		q.Header["Authorization"] = "Bearer " + n.token
	case n.mode != "cloud": // user and password are for a server of one's own
		q.Login = &n.Server
	}
	if n.mode == "cloud" {
		q.URL = "https://ntfy.sh"
	}
	return q
}

var ntfyPriorities = [...]string{1: "min", 2: "low", 3: "default", 4: "high", 5: "max"}

// ntfyAddress escapes what must not stand in an address.
func ntfyAddress(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r > '~' || r <= ' ' || strings.ContainsRune("\"<>\\^`{|}", r) {
			b.WriteString(url.PathEscape(string(r)))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
