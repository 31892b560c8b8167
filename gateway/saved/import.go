package saved

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// KeyText is the text to save under the name of a key.
type KeyText struct {
	Name   string
	Format string // configstore.FormatText or configstore.FormatYAML
	Text   string
}

// KeyReport is the outcome of SaveKeys for a KeyText.
type KeyReport struct {
	Refused  error    // why the key is not saved; nil if it is
	Mistakes []string // what in the text cannot be used, with the lines
	Warnings []string // what in the text has no effect, with the lines
	URLs     int      // the number of URLs that can be used
	Tagged   bool     // one of these URLs has a tag

	// Rewritten means that the key is saved as text without its mistakes, and so
	// without its comments and groups.
	Rewritten bool
}

// SaveOptions are options of [Config.SaveKeys].
type SaveOptions struct {
	// Space is a space of saved keys, configstore.DefaultSpace, or "" if there is only
	// one.
	Space string

	// DefaultTag confirms what a message without a tag reaches, which is default_tag
	// in configs, or "all" where that is not set; "" for no confirmation.
	DefaultTag string

	Replace bool // saved keys of the same names
}

// NameKeys returns "the key ops" or "the keys home, ops".
func NameKeys(names []string) string {
	if len(names) == 1 {
		return "the key " + names[0]
	}
	return "the keys " + strings.Join(names, ", ")
}

// CheckText fills the report about k, and returns the configuration to save: the text byte for byte
// or, if a part of it cannot be used, the rest in text format.
func (s *Keys) CheckText(ctx context.Context, k KeyText, report *KeyReport) (out configstore.Config) {
	if report.Refused = site.CheckKeyName(k.Name); report.Refused != nil {
		return out
	}
	if int64(len(k.Text)) > s.MaxSize {
		report.Refused = fmt.Errorf("it has %d bytes; at most %d are allowed (max_size)", len(k.Text), s.MaxSize)
		return out
	}
	entries, mistakes, warnings := parser{s}.entries(ctx, k.Format, k.Text, parser{s}.fetch)
	if n := len(entries); n > s.MaxURLs {
		report.Refused = fmt.Errorf("it has %d URLs; at most %d are allowed (max_urls)", n, s.MaxURLs)
		return out
	}
	for _, w := range warnings {
		report.Warnings = append(report.Warnings, w.Error())
	}
	var lines strings.Builder
	template := false
	for _, e := range entries {
		template = template || e.Template != nil
		t, err := s.Target(e)
		if err != nil {
			mistakes = append(mistakes, newLineError(e.Line, e.Include, err))
			continue
		}
		s.Sender.Release(t.Destination)
		report.URLs++
		if len(e.Tags) > 0 {
			report.Tagged = true
			lines.WriteString(strings.Join(e.Tags, ",") + "=")
		}
		lines.WriteString(e.URL + "\n")
	}
	sortMistakes(mistakes)
	for _, e := range mistakes {
		text := e.Text()
		if e.Line > 0 {
			text = fmt.Sprintf("line %d: %s", e.Line, text)
		}
		report.Mistakes = append(report.Mistakes, text)
	}
	switch {
	case report.URLs == 0:
		report.Refused = errors.New("it has no URL that can be used")
	case len(mistakes) > 0 && template:
		report.Refused = errors.New("it has a template, and mistakes; correct these first, and move it again")
	case len(mistakes) > 0:
		report.Rewritten = true
		return configstore.Config{Format: configstore.FormatText, Text: lines.String()}
	}
	return configstore.Config{Format: k.Format, Text: k.Text}
}
