package notifier

import (
	"cmp"
	"fmt"
	"sync"

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
	format Format
	emojis bool
	merged bool // the title becomes part of the body
}

type renderedText struct{ title, body string }

func (r *renderings) get(key rendering) (title, body string) {
	if key.format == r.m.Format && !key.emojis {
		return r.m.Title, r.m.Body
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t, ok := r.by[key]; ok {
		return t.title, t.body
	}
	title, body = r.m.Title, markup.Convert(r.m.Body, r.m.Format, key.format)
	if key.merged {
		title = markup.Convert(title, r.m.Format, key.format)
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
func (d *delivery) render(t *Destination) (*Message, error) {
	m, s := d.message, t.schema
	if m.Body == "" && !s.Attachments && len(m.Attachments) > 0 {
		return nil, errOnlyFiles
	}
	if len(m.Attachments) > 0 && !s.Attachments {
		d.record(LevelWarning, fmt.Sprintf("%s cannot send files; the message goes without them", s.Name))
	}
	c := &d.rendered
	*c = *m
	c.Title, c.Body = d.texts.get(t.rendering())
	c.Format = t.format()
	c.Time = m.Time.In(t.location)
	if !s.Attachments {
		c.Attachments = nil
	}
	return c, nil
}

// format returns the format that the destination takes.
func (d *Destination) format() Format {
	return cmp.Or(Format(d.options.format), d.schema.Format)
}

// rendering returns how texts are rendered for the destination.
func (d *Destination) rendering() rendering {
	return rendering{d.format(), d.options.emojis, d.schema.Limits.Title <= 0}
}

// divide returns the parts of a rendered message in the form f. They are in buf if
// they fit.
func (d *Destination) divide(buf []*Message, m *Message, f form) []*Message {
	parts := d.schema.fit(buf[:0], m, markup.Overflow(d.options.overflow))
	if f.Overflow != "" && len(parts) == 1 {
		parts = d.schema.fit(nil, parts[0], f.Overflow)
	}
	if f.FilesLeft {
		for i, p := range parts {
			parts[i] = p.withoutFiles()
		}
	}
	return parts
}

// fit divides a message into messages within the limits and appends them to
// parts. The last one has the files.
func (s *Schema) fit(parts []*Message, m *Message, mode markup.Overflow) []*Message {
	var one [1]markup.Part // most messages have one part
	texts := s.Limits.AppendFit(one[:0], m.Title, m.Body, m.Format, m.Source, mode)
	if len(texts) == 1 && texts[0].Title == m.Title && texts[0].Body == m.Body {
		return append(parts, m)
	}
	for i, text := range texts {
		c := *m
		c.Title, c.Body = text.Title, text.Body
		if i < len(texts)-1 {
			c.Attachments = nil
		}
		parts = append(parts, &c)
	}
	return parts
}
