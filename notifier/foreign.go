package notifier

import (
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// ForeignText says how a service reads a text, so that a message of another
// program ([Message.Foreign]) is shown as it is: without mentions, and without a
// link whose text hides its address. A service describes it if its texts can
// mention people, or if they are markup where the format does not say so. What is
// markup by its format needs no description: plain text is escaped in Markdown and
// HTML, and a link is followed by its address.
type ForeignText struct {
	// Markdown means that the service reads every text as Markdown, whatever its
	// format is.
	Markdown bool

	// Title means that the service also reads its markup in a title that is not part
	// of the body.
	Title bool

	// Escape returns a plain text as Markdown that shows it, for a message that is
	// plain text. It is for services whose Markdown is a dialect. Default:
	// [markup.EscapeMarkdown], which makes the Markdown of other messages, too.
	Escape func(text string) string

	// Mentions returns a text, in any format, so that it mentions nobody. nil means
	// that no text mentions anybody, or that Send sees to it.
	Mentions func(text string) string
}

// reads returns the format that the service reads a text of a format as. f may be
// nil, as for all methods.
func (f *ForeignText) reads(format Format) Format {
	if f != nil && f.Markdown {
		return Markdown
	}
	return format
}

// hasTitle reports whether a service with these limits reads the title as it reads
// the body.
func (f *ForeignText) hasTitle(l markup.Limits) bool {
	return l.Title <= 0 || l.InBody || f != nil && f.Title
}

// plain returns a plain text as the service reads it in a format.
func (f *ForeignText) plain(text string, format Format) string {
	switch {
	case format == Markdown && f != nil && f.Escape != nil:
		text = f.Escape(text)
	case format == Markdown:
		text = markup.EscapeMarkdown(text)
	default:
		text = markup.Convert(text, Text, format)
	}
	return f.quiet(text)
}

// title returns the title of m, which is plain, as the service reads it in a format.
func (f *ForeignText) title(m *Message, format Format) string {
	if m.Format != Text && format == Markdown {
		return f.quiet(markup.EscapeMarkdown(m.Title))
	}
	return f.plain(m.Title, format)
}

// quiet returns a text that mentions nobody.
func (f *ForeignText) quiet(text string) string {
	if f == nil || f.Mentions == nil {
		return text
	}
	return f.Mentions(text)
}

// body returns the body of m as the service reads it in a format.
func (f *ForeignText) body(m *Message, format Format) string {
	switch {
	case m.Format == Text:
		return f.plain(m.Body, format)
	case format == Text:
		return f.plain(markup.Convert(m.Body, m.Format, Text), Text)
	}
	return f.quiet(markup.ConvertForeign(m.Body, m.Format, format, f == nil))
}
