package notifier

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// A message with a title, a file or a picture in its text has something to say, even to a
// service that shows none of them. Whether a text is empty is known only after it is converted;
// then the title, the file or the picture is named in its place.

// hasText reports whether there is something to read in s.
func hasText(s string) bool { return strings.TrimSpace(s) != "" }

// withFileLines returns m with a line in its text for each of its files: its name and its size.
func (m *Message) withFileLines() *Message {
	var lines []string
	if hasText(m.Body) {
		lines = append(lines, m.Body)
	}
	for _, a := range m.Attachments {
		line := a.Name + " (" + humanize.IBytes(uint64(max(a.Size, 0))) + ")"
		if m.Format == Markdown {
			line = markup.EscapeMarkdown(line)
		}
		lines = append(lines, markup.Convert(line, Text, cmp.Or(m.Format, Text)))
	}
	separator := "\n"
	switch m.Format {
	case HTML:
		separator = "<br>\n"
	case Markdown:
		separator = "\n\n"
	}
	c := *m
	c.Body = strings.Join(lines, separator)
	return &c
}

// instead returns m with another text, because a destination would show nothing of its own: the
// title, or else the descriptions or the addresses of its pictures.
func (m *Message) instead() *Message {
	c := *m
	c.Format, c.Dialect = Text, ""
	c.Title, c.Body = "", m.Title
	if !hasText(c.Body) {
		c.Body = strings.Join(pictures(m.Body), "\n")
	}
	if !hasText(c.Body) {
		c.Body = "(no text)"
	}
	return &c
}

// maxPictures bounds the pictures that are named in place of a text.
const maxPictures = 5

var (
	pictureElement   = lazyregexp.New(`(?i)<img\b[^>]*>`)
	pictureAttribute = lazyregexp.New(`(?i)\b(alt|src)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))`)
)

// pictures returns the descriptions of the pictures in HTML or, of those without one, their
// addresses.
func pictures(html string) (out []string) {
	for _, element := range pictureElement.FindAllString(html, maxPictures) {
		alt, address := "", ""
		for _, a := range pictureAttribute.FindAllStringSubmatch(element, -1) {
			value := markup.Convert(strings.Join(a[2:], ""), HTML, Text)
			switch {
			case strings.EqualFold(a[1], "alt"):
				alt = value
			case strings.HasPrefix(value, "https://") || strings.HasPrefix(value, "http://"):
				address = value
			}
		}
		if text := cmp.Or(strings.TrimSpace(alt), address); text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
