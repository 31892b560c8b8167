package command

import (
	"fmt"
	"io"
	"strings"
)

// note adds what is different to the report.
func (m *migration) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

// skip adds what is not moved, and why, to the report.
func (m *migration) skip(format string, args ...any) {
	m.unmoved = append(m.unmoved, fmt.Sprintf(format, args...))
}

// report writes where the keys are, what was moved, the notes, and what was not
// moved. It returns a partialError if something was not moved.
func (m *migration) report(w io.Writer, where string) error {
	var b strings.Builder
	b.WriteString(where + "\n\n")
	if n := len(m.defaultURLs); n > 0 {
		m.moved = append(m.moved, "default_urls: "+count(n, "URL"))
	}
	for _, line := range m.moved {
		b.WriteString("  " + line + "\n")
	}
	if len(m.moved) == 0 {
		b.WriteString("  no key and no default URL\n")
	}
	for _, list := range []struct {
		title string
		lines []string
	}{{"Notes", m.notes}, {"Not moved", m.unmoved}} {
		if len(list.lines) > 0 {
			b.WriteString("\n" + list.title + ":\n\n")
		}
		for _, line := range list.lines {
			b.WriteString("  - " + line + "\n")
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if n := len(m.unmoved); n > 0 {
		return &partialError{fmt.Sprintf("not moved: %d, see the list above", n)}
	}
	return nil
}
