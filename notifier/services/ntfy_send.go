package services

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Send publishes the message to each topic. The first notification replaces the
// one about the same incident; those with further files are notifications of
// their own.
func (n *ntfy) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Steps.Each(ctx, n.topics, func(ctx context.Context, topic string) error {
		text := url.Values{} // in the address of the first file
		for name, v := range map[string]string{"title": m.Title, "message": m.Body} {
			if v != "" {
				text.Set(name, v)
			}
		}
		if len(m.Attachments) == 0 || len(text.Encode()) > ntfyQuery {
			if err := c.Steps.Once(topic+" text", func() error { return n.text(ctx, c, m, topic) }); err != nil {
				return err
			}
			text = nil
		}
		for i, f := range m.Attachments {
			sequence := ""
			if text != nil {
				sequence = m.NotificationID()
			}
			err := c.Steps.Once(fmt.Sprint(topic, " file ", i), func() error { return n.file(ctx, c, m, topic, f, text, sequence) })
			if err != nil {
				return err
			}
			text = nil
		}
		return nil
	})
}

// text publishes the message without its files. A text that is too long is sent
// as a file, beside its beginning.
func (n *ntfy) text(ctx context.Context, c *notifier.Client, m *notifier.Message, topic string) error {
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
	q := n.request(m, notifier.JSON(payload), m.NotificationID())
	if len(m.Body) > ntfyMessage || q.Body.Size() > ntfyJSON {
		name := map[notifier.Format]string{notifier.Text: "message.txt", notifier.Markdown: "message.md", notifier.HTML: "message.html"}[m.Format]
		return n.file(ctx, c, m, topic, notifier.NewAttachment(name, "", []byte(m.Body)), ntfyBeginning(m), m.NotificationID())
	}
	_, err := c.Do(ctx, q)
	return err
}

// ntfyBeginning returns the title and the beginning of the text for the address of the
// file with the whole text.
func ntfyBeginning(m *notifier.Message) url.Values {
	query := url.Values{}
	if m.Title != "" {
		query.Set("title", m.Title)
	}
	limits := markup.Limits{Unit: markup.UTF8Bytes}
	for limits.Body = ntfyQuery; ; limits.Body = limits.Body * 3 / 4 { // an address escapes what is not ASCII
		part := limits.Fit("", m.Body, m.Format, m.Source, markup.OverflowTruncate)[0]
		query.Set("message", part.Body+"…")
		if len(query.Encode()) <= ntfyQuery || limits.Body < 100 {
			return query
		}
	}
}

// file publishes a file. query has the title and the text to send with it, and
// sequence is the ID of the notification to replace, or "".
func (n *ntfy) file(
	ctx context.Context, c *notifier.Client, m *notifier.Message,
	topic string, f *notifier.Attachment, query url.Values, sequence string,
) error {
	body := notifier.File("", f)
	body.ContentType = "" // the server detects it
	q := n.request(m, body, sequence)
	q.URL += "/" + topic
	q.Query = notifier.Fields("filename", f.Name)
	maps.Copy(q.Query, query)
	_, err := c.Do(ctx, q)
	return err
}

func (n *ntfy) request(m *notifier.Message, body *notifier.Body, sequence string) *notifier.Request {
	q := &notifier.Request{Method: "POST", URL: n.URL(), Body: body, Header: map[string]string{
		"X-Delay":   n.delay,
		"X-Click":   ntfyAddress(n.click),
		"X-Email":   n.email,
		"X-Tags":    cmp.Or(strings.Join(n.tags, ","), ntfyTag(m)),
		"X-Actions": ntfyActions(n.actions, m),
	}}
	if sequence != "" {
		q.Header["X-Sequence-ID"] = sequence
	}
	if icon := m.Icon(256); n.image && icon != "" {
		q.Header["X-Icon"] = icon
	}
	if n.image && n.icon != "" {
		q.Header["X-Icon"] = n.icon
	}
	if m.Format == notifier.Markdown {
		q.Header["X-Markdown"] = "yes"
	}
	priority := n.priority
	if priority == 0 && m.Type == notifier.Failure {
		priority = 4
	}
	q.Header["X-Priority"] = ntfyPriorities[priority]
	switch {
	case n.token != "":
		q.Header["Authorization"] = "Bearer " + n.token
	case n.mode != "cloud": // ntfy.sh does not get the user and password of a host
		q.Login = &n.Server
	}
	if n.mode == "cloud" {
		q.URL = "https://ntfy.sh"
	}
	return q
}

// ntfyPriorities are the names of priorities in requests. The default priority is left out.
var ntfyPriorities = [...]string{1: "min", 2: "low", 3: "", 4: "high", 5: "max"}

// ntfyTags are the tags of messages, unless the URL has some. ntfy shows them as emojis.
var ntfyTags = map[notifier.Type]string{notifier.Failure: "rotating_light", notifier.Warning: "warning"}

// ntfyTag returns the tag of a message without tags in the URL. It is empty if the message already
// begins with that emoji, like one that ntfy has sent.
func ntfyTag(m *notifier.Message) string {
	tag := ntfyTags[m.Type]
	if strings.HasPrefix(m.Text(" "), markup.ReplaceEmojis(":"+tag+":")) {
		return ""
	}
	return tag
}

// ntfyAddress escapes characters that are not allowed in an address.
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
