package notifier

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// renderings are the texts of one message in each way that its destinations
// need, made once for all of them.
type renderings struct {
	m  *Message
	mu sync.Mutex
	by map[rendering]renderedText
}

type rendering struct {
	format  Format
	emojis  bool
	merged  bool         // the title becomes part of the body
	foreign *ForeignText // of the service, for a message of another program

	// dialect is the dialect of the body, which is converted to the format that the service
	// reads, with times in zone.
	dialect markup.Dialect
	reads   Format
	zone    *time.Location // nil for a body without times
}

type renderedText struct{ title, body string }

// render sets title, body, format and source of c, a copy of the message, for d.
func (r *renderings) render(c *Message, d *Destination) {
	key := rendering{format: d.format(), emojis: d.options.emojis, merged: d.schema.Limits.Title <= 0}
	c.Format, c.Source = key.format, cmp.Or(r.m.Format, Text)
	if dialect := r.m.dialect(); dialect != "" {
		key.reads = d.schema.Foreign.reads(key.format)
		if !r.m.Foreign && dialect == d.schema.dialect && key.reads == Markdown {
			c.Source = Text // it is what the destination reads
		} else {
			c.Source, key.dialect = HTML, dialect
			if dialect.HasTimes(r.m.Body) {
				key.zone = d.location
			}
		}
	}
	if !r.m.Foreign {
		c.Title, c.Body = r.get(key)
		return
	}
	key.foreign, key.merged = d.schema.Foreign, d.schema.Foreign.hasTitle(d.schema.Limits)
	c.Title, c.Body = r.get(key)
	if c.Source == Markdown && key.foreign.reads(key.format) != Text {
		c.Source = HTML // markup.ConvertForeign makes HTML of it
	}
}

// renderAll is render with a line for each file that d cannot send, and with another text in
// place of one that is empty for d.
func (r *renderings) renderAll(c *Message, d *Destination) {
	files := len(c.Attachments) > 0
	if files && !d.schema.Attachments {
		r, files = &renderings{m: r.m.withFileLines()}, false
	}
	if r.render(c, d); hasText(c.Body) || files && !d.schema.TextRequired || hasText(c.Title) && d.schema.Limits.Title <= 0 {
		return
	}
	instead := r.m.instead
	if files {
		instead = r.m.withFileLines
	}
	(&renderings{m: instead()}).render(c, d)
}

func (r *renderings) get(key rendering) (title, body string) {
	asIs := key.format == r.m.Format || r.m.dialect() != ""
	if asIs && !key.emojis && !r.m.Foreign && key.dialect == "" {
		return r.m.Title, r.m.Body
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t, ok := r.by[key]; ok {
		return t.title, t.body
	}
	m := *r.m
	title = m.Title
	switch {
	case m.Foreign:
		if key.dialect != "" {
			m.Body, m.Format = key.dialect.Convert(m.Body, HTML, key.zone), HTML
		}
		reads := key.foreign.reads(key.format)
		body = key.foreign.body(&m, reads)
		if key.merged {
			title = key.foreign.title(r.m, reads)
		}
	case m.dialect() != "":
		body = key.dialect.Convert(m.Body, key.reads, key.zone)
		if key.merged && key.dialect != "" {
			title = (*ForeignText)(nil).plain(title, key.reads)
		}
	default:
		body = markup.Convert(m.Body, m.Format, key.format)
		if key.merged {
			title = markup.Convert(title, m.Format, key.format)
		}
	}
	if key.emojis {
		title, body = markup.ReplaceEmojis(title), markup.ReplaceEmojis(body)
	}
	if r.by == nil {
		r.by = map[rendering]renderedText{}
	}
	r.by[key] = renderedText{title, body}
	return title, body
}

// render returns the message in the destination's format and time zone, not
// yet divided.
func (d *delivery) render(t *Destination) *Message {
	m, s := d.message, t.schema
	texts := &d.texts
	if besides := d.target.Missed.toldBesides(m, t.location); besides != "" {
		texts = &renderings{m: m.with(besides)}
	}
	if len(m.Attachments) > 0 && !s.Attachments {
		d.record(LevelWarning, fmt.Sprintf("%s cannot send files; the message has their names in place of them", s.Name))
	}
	c := &d.rendered
	*c = *m
	texts.renderAll(c, t)
	c.Time = m.Time.In(t.location)
	if !t.options.duration {
		c.Incident.OpenFor = 0
	}
	if !s.hasRoomForLink(c, form{}) {
		d.record(LevelWarning, fmt.Sprintf("%s has no room for the link; the message goes without it", s.Name))
		c.Link, c.Choices = Link{}, nil
	}
	if !s.Attachments {
		c.Attachments = nil
	}
	return c
}

// format returns the format that the destination takes.
func (d *Destination) format() Format {
	return cmp.Or(Format(d.options.format), d.schema.Format)
}

// divide returns the parts of a rendered message in the form f. They are in buf if
// they fit.
func (d *Destination) divide(buf []*Message, m *Message, f form) []*Message {
	parts := d.schema.fit(buf[:0], m, markup.Overflow(d.options.overflow), f)
	if f.Overflow != "" && len(parts) == 1 {
		parts = d.schema.fit(nil, m, f.Overflow, f)
	}
	if f.FilesLeft {
		for i, p := range parts {
			parts[i] = p.withoutFiles()
		}
	}
	return parts
}

// fit divides a message into messages within the limits and appends them to
// parts. The last one has the files and the link to acknowledge the incident.
func (s *Schema) fit(parts []*Message, m *Message, mode markup.Overflow, f form) []*Message {
	var one [1]markup.Part // most messages have one part
	link := s.lastLine(m, f)
	limits := s.Limits
	limits.Reads = s.Foreign.reads(m.Format)
	texts := limits.AppendFit(one[:0], m.Title, m.Body, m.Format, m.Source, mode, link)
	if len(texts) == 1 && texts[0].Title == m.Title && texts[0].Body == m.Body {
		return append(parts, m)
	}
	for i, text := range texts {
		c := *m
		c.Title, c.Body, c.Part = text.Title, text.Body, i
		if i < len(texts)-1 {
			c.Attachments, c.Link, c.Choices = nil, Link{}, nil
		}
		if f.LinkInText {
			c.Link, c.Choices = Link{}, nil // the service refuses it elsewhere
		}
		parts = append(parts, &c)
	}
	return parts
}

// A message with a title, a file or a picture in its text has content, even for a service that
// shows none of them. Only after the conversion is it known whether the text is empty. If it is,
// the title, the file or the picture is named in it.

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

// instead returns m with another text, because the destination would show none of its own: the
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
