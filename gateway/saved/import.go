package saved

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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

// KeyReport is the outcome of Import for a KeyText.
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

// ImportOptions are options of [Keys.Import].
type ImportOptions struct {
	// DefaultTag confirms what a message without a tag reaches, which is default_tag
	// in configs, or "all" where that is not set; "" for no confirmation.
	DefaultTag string

	Replace bool            // saved keys of the same names
	Fixed   map[string]bool // the keys of the configuration, which take precedence
}

// nameKeys returns "the key ops" or "the keys home, ops".
func nameKeys(names []string) string {
	if len(names) == 1 {
		return "the key " + names[0]
	}
	return "the keys " + strings.Join(names, ", ")
}

// Import saves keys for a command, possibly while a gateway uses them, and returns a report for each.
// It saves nothing and returns an error if there would be more than max_keys saved keys, or if a key
// has tags and neither configs nor the options have a default tag.
func (s *Keys) Import(ctx context.Context, keys []KeyText, o ImportOptions) ([]KeyReport, error) {
	if set := cmp.Or(s.DefaultTag, site.AllTag); o.DefaultTag != "" && !strings.EqualFold(o.DefaultTag, set) {
		return nil, fmt.Errorf("--default-tag is not what the configuration has; "+
			"write default_tag %s into %s, or give --default-tag %s", o.DefaultTag, s.Shared.Owner.Place(), set)
	}
	reports := make([]KeyReport, len(keys))
	configs := map[string]configstore.Config{}
	var tagged []string // names of keys
	for i, k := range keys {
		if o.Fixed[k.Name] {
			reports[i].Refused = errors.New("the configuration of --config has a key of this name, which takes precedence")
			continue
		}
		text := s.checkText(ctx, k, &reports[i])
		if reports[i].Refused != nil {
			continue
		}
		configs[k.Name] = text
		if reports[i].Tagged {
			tagged = append(tagged, k.Name)
		}
	}
	if len(tagged) > 0 && s.DefaultTag == "" && o.DefaultTag == "" {
		slices.Sort(tagged)
		return nil, fmt.Errorf("nothing is saved, because URLs of %s have tags, and it is not decided "+
			"where a message without a tag goes: write default_tag untagged into %s to send it to the "+
			"URLs without tags, as Apprise API does, or give --default-tag all to send it to every URL",
			nameKeys(tagged), s.Shared.Owner.Place())
	}
	existing, err := s.Store.Import(ctx, configs, s.MaxKeys, o.Replace)
	if errors.Is(err, configstore.ErrTooMany) {
		return nil, fmt.Errorf("nothing is saved, because there would be more than %d saved keys; raise max_keys in configs", s.MaxKeys)
	}
	if err != nil {
		return nil, err
	}
	for i, k := range keys {
		if reports[i].Refused == nil && slices.Contains(existing, k.Name) {
			reports[i].Refused = errors.New("it is saved already; replace it with --force")
		}
	}
	return reports, nil
}

// checkText fills the report about k, and returns the configuration to save: the text byte for byte
// or, if a part of it cannot be used, the rest in text format.
func (s *Keys) checkText(ctx context.Context, k KeyText, report *KeyReport) (out configstore.Config) {
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
