package migrate

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
)

// report tells what was moved, and what was not.
type report struct {
	moved   []string // the keys
	notes   []string // what is different
	unmoved []string // what is missing in the Caddyfile, and why
}

// note adds what is different to the report.
func (r *report) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// skip adds what is not moved, and why, to the report.
func (r *report) skip(format string, args ...any) {
	r.unmoved = append(r.unmoved, fmt.Sprintf(format, args...))
}

// write writes where the keys are, what was moved, the notes, and what was not
// moved. It returns an exit.PartialError if something was not moved.
func (r *report) write(w io.Writer, where string) error {
	var b strings.Builder
	b.WriteString(where + "\n\n")
	for _, line := range r.moved {
		b.WriteString("  " + line + "\n")
	}
	if len(r.moved) == 0 {
		b.WriteString("  no key and no default URL\n")
	}
	for _, list := range []struct {
		title string
		lines []string
	}{{"Notes", r.notes}, {"Not moved", r.unmoved}} {
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
	if n := len(r.unmoved); n > 0 {
		return &exit.PartialError{Text: fmt.Sprintf("not moved: %d, see the list above", n)}
	}
	return nil
}

// nothingFound returns the error for an Apprise API without anything to move.
func (r *report) nothingFound() error {
	err := errors.New("nothing was found that could be moved")
	if reasons := slices.Concat(r.unmoved, r.notes); len(reasons) > 0 {
		err = fmt.Errorf("%w: %s", err, strings.Join(reasons, "; "))
	}
	return err
}
