package mailto

import (
	"crypto/rand"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// content returns the text and files of the message.
func (m *service) content(msg *notifier.Message) mail.Part {
	files := msg.Attachments
	var text mail.Part
	if msg.Format == notifier.HTML {
		html, shown, rest := msg.Body, []mail.Part(nil), files
		if m.inline {
			html, shown, rest = inlineFiles(msg.Body, files)
		}
		files = rest
		text = mail.TextPart("html", html)
		if len(shown) > 0 {
			text = mail.Multipart(`related; type="text/html"`, append([]mail.Part{text}, shown...)...)
		}
		text = mail.Multipart("alternative", mail.TextPart("plain", markup.Convert(msg.Body, notifier.HTML, notifier.Text)), text)
	} else {
		var body strings.Builder
		body.WriteString(msg.Body)
		if m.inline {
			for _, a := range files {
				if a.MediaType() == "image" {
					body.WriteString("\n[Image: " + a.Name + "]")
				}
			}
		}
		text = mail.TextPart("plain", body.String())
	}
	if len(files) == 0 {
		return text
	}
	parts := []mail.Part{text}
	for _, a := range files {
		parts = append(parts, mail.FilePart(a, "", a.Open))
	}
	return mail.Multipart("mixed", parts...)
}

// inlineFiles returns the parts to show inside the HTML text: files that it
// refers to as cid:name, and all other pictures, which are added at its end. It
// also returns the text with those additions, and the remaining files.
func inlineFiles(html string, files []*notifier.Attachment) (text string, shown []mail.Part, rest []*notifier.Attachment) {
	taken := map[string]bool{}
	text = html
	for _, a := range files {
		id := url.PathEscape(a.Name)
		named := !taken[id] && refersTo(html, id)
		switch {
		case named:
			taken[id] = true
		case a.MediaType() == "image":
			id = strings.ToLower(rand.Text())
			text += `<br/><img src="cid:` + id + `">`
		default:
			rest = append(rest, a)
			continue
		}
		shown = append(shown, mail.FilePart(a, id, a.Open))
	}
	return text, shown, rest
}

// refersTo reports whether an HTML text refers to the id, and not only to one
// that begins like it.
func refersTo(html, id string) bool {
	for {
		_, after, found := strings.Cut(html, "cid:"+id)
		if !found {
			return false
		}
		if after == "" || strings.ContainsRune("\"'>) \t\r\n", rune(after[0])) {
			return true
		}
		html = after
	}
}
