package caddyhttp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/source"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// previewFlags are the flags of the command preview.
type previewFlags struct {
	from, key, config, adapter string
	path, contentType          string
	tags, headers              []string
	asJSON                     bool
}

func previewCommand() *cobra.Command {
	f := new(previewFlags)
	cmd := &cobra.Command{
		Use:   "preview --from <source> [--key <name>] [@<file>]",
		Short: "Shows the message that a source makes of a payload",
		Long: `
Shows the message that a source makes of a payload, and sends nothing.

The payload is the file after "@", or standard input for "@-" and without an
argument. The source is a built-in one or, with --config or --key, that of the
configuration. Signatures and tokens are not checked.

With --key, the output also lists the destinations of the key that would get the
message.
`,
		Example: `  caddy notify preview --from grafana @payload.json
  caddy notify preview --from backup --config /etc/caddy/Caddyfile --key ops @payload.json
  caddy notify preview --from github --header "X-GitHub-Event: push" --json @push.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: withExitCode(f.run),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "Name of the source (required)")
	flags.StringVarP(&f.key, "key", "k", "", "Key of the configuration whose destinations are listed")
	flags.StringVarP(&f.config, "config", "c", "", "Configuration file with the source or the key (default: Caddyfile, if it is needed)")
	flags.StringVar(&f.adapter, "adapter", "", "Config adapter to apply (default: caddyfile, unless the file is JSON)")
	flags.StringArrayVar(&f.tags, "tag", nil, "Tag expression of the address, as in ?tag= (repeated: or)")
	flags.StringArrayVar(&f.headers, "header", nil, "Header of the request, such as \"X-GitHub-Event: push\" (may be repeated)")
	flags.StringVar(&f.contentType, "type", "application/json", "Content-Type of the payload")
	flags.StringVar(&f.path, "path", "", "What follows the source in the address, such as a topic of ntfy")
	flags.BoolVar(&f.asJSON, "json", false, "Print the message as JSON")
	// It fails only if the flag does not exist.
	_ = cmd.RegisterFlagCompletionFunc("from", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []cobra.Completion
		for _, format := range source.Formats() {
			names = append(names, format.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// previewMessage is the output of the command.
type previewMessage struct {
	Source       string   `json:"source"`
	Skipped      bool     `json:"skipped"`
	Title        string   `json:"title"`
	Body         string   `json:"body"`
	Type         string   `json:"type"`
	Format       string   `json:"format"`
	Tags         []string `json:"tags"`
	Attach       []string `json:"attach"`
	Warnings     []string `json:"warnings"`
	Destinations []string `json:"destinations,omitempty"`
}

func (f *previewFlags) run(cmd *cobra.Command, args []string) error {
	if f.from == "" {
		return errors.New("--from is missing; name a source, such as --from grafana")
	}
	if f.key == "" && len(f.tags) > 0 {
		return errors.New("--tag has no effect without --key; add --key <name>")
	}
	payload, err := f.payload(cmd, args)
	if err != nil {
		return err
	}
	var config []byte
	if f.config != "" || f.key != "" || source.Lookup(f.from) == nil {
		if config, err = readConfig(cmd.InOrStdin(), f.config, f.adapter); err != nil {
			return err
		}
	}
	src, err := f.source(config)
	if err != nil {
		return err
	}
	req := &source.Request{Header: http.Header{"Content-Type": {f.contentType}}, Query: url.Values{}, Path: strings.Trim(f.path, "/"), Body: payload, Time: time.Now()}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return errors.New("--header: write a name and a value, such as \"X-GitHub-Event: push\"")
		}
		req.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	m, err := src.Read(req)
	if err != nil {
		return err
	}
	out := previewMessage{
		Source: f.from, Skipped: m.Skip, Title: markup.OneLine(m.Title), Body: m.Body, Type: cmp.Or(m.Type, string(notifier.Info)), Format: cmp.Or(m.Format, string(markup.Text)),
		// never nil, which would be null in JSON
		Tags: append([]string{}, m.Tags...), Attach: append(append([]string{}, m.Attach...), m.Images...), Warnings: append([]string{}, m.Warnings...),
	}
	if f.key != "" {
		if out.Destinations, err = f.destinations(config, m.Tags); err != nil {
			return err
		}
	}
	if f.asJSON {
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(out)
	}
	return out.print(cmd.OutOrStdout())
}

// payload returns the content of the file that the argument names, or standard
// input.
func (f *previewFlags) payload(cmd *cobra.Command, args []string) ([]byte, error) {
	if len(args) == 0 || args[0] == "@-" {
		if f.config == "-" {
			return nil, errors.New("standard input cannot be both the payload and the configuration; use files")
		}
		return io.ReadAll(cmd.InOrStdin())
	}
	name, ok := strings.CutPrefix(args[0], "@")
	if !ok {
		return nil, errors.New("the argument must be a file with the payload, such as @payload.json")
	}
	return os.ReadFile(name)
}

// source returns the source that --from names: that of a site before that of
// the app before a built-in one.
func (f *previewFlags) source(config []byte) (*source.Source, error) {
	var found *Source
	if config != nil {
		app, sites, err := findSettings(config)
		if err != nil {
			return nil, err
		}
		found = app.Sources[f.from]
		for _, s := range sites {
			_, hasKey := s.Keys[f.key]
			if own := s.Sources[f.from]; own != nil && (hasKey || found == nil) {
				found = own
			}
		}
	}
	if found == nil {
		found = &Source{}
	}
	c := *found
	c.Sign, c.Secret, c.Token = "", "", "" // the preview checks none, and their placeholders may have no value here
	src, err := c.load(f.from)
	if err != nil {
		return nil, prefixError("from "+f.from, err)
	}
	return src, nil
}

// destinations returns the destinations of the key that get a message which
// has preferred tags.
func (f *previewFlags) destinations(config []byte, preferred []string) (out []string, err error) {
	r, err := loadKey(config, f.key)
	if err != nil {
		return nil, err
	}
	k := r.keys[f.key]
	e, err := notifier.ParseTags(strings.Join(f.tags, ","))
	if err != nil {
		return nil, prefixError("--tag", err)
	}
	targets := k.match(e)
	if e.Empty() && len(preferred) > 0 {
		has := func(t notifier.Target) bool {
			return slices.ContainsFunc(t.Tags, func(tag string) bool {
				_, tag = notifier.SplitTag(strings.ToLower(tag))
				return slices.Contains(preferred, tag)
			})
		}
		if expr, err := notifier.ParseTags(strings.Join(preferred, ",")); err == nil && slices.ContainsFunc(k.targets, has) {
			targets = k.match(expr)
		}
	}
	for _, t := range targets {
		out = append(out, t.String())
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("none of the %d destinations of the key %s has the tag", len(k.targets), f.key)
	}
	return out, nil
}

// print writes the message with a line for each of its properties.
func (m previewMessage) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if m.Skipped {
		fmt.Fprintf(table, "%s\tnothing to send\n", m.Source)
		return table.Flush()
	}
	row := func(name string, values ...string) {
		for _, v := range values {
			if v != "" {
				fmt.Fprintf(table, "%s\t%s\n", name, markup.OneLine(v))
			}
		}
	}
	row("title", m.Title)
	row("type", m.Type)
	row("format", m.Format)
	row("tag", m.Tags...)
	row("attach", m.Attach...)
	row("warning", m.Warnings...)
	row("to", m.Destinations...)
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s", indent(m.Body, "  "))
	return err
}
