package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/words"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/source"
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
		RunE: exit.WithCode(f.run),
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
	Incident     string   `json:"incident,omitempty"`
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
	config := new(caddyhttp.Config)
	if f.config != "" || f.key != "" || source.Lookup(f.from) == nil {
		config, err = caddyhttp.ReadConfig(cmd.InOrStdin(), f.config, f.adapter)
		if f.config == "" && f.key == "" && errors.Is(err, fs.ErrNotExist) { // then the name of the source is wrong
			config, err = new(caddyhttp.Config), nil
		}
		if err != nil {
			return err
		}
	}
	src, err := config.Source(f.from, f.key)
	if err != nil {
		return err
	}
	req := &source.Request{
		Header: http.Header{"Content-Type": {f.contentType}}, Query: url.Values{},
		Path: strings.Trim(f.path, "/"), Body: payload, Time: time.Now(),
	}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return errors.New("--header: write a name and a value, such as \"X-GitHub-Event: push\"")
		}
		req.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	m, err := src.Read(cmd.Context(), req)
	if err != nil {
		return err
	}
	attach := []string{} // never nil, which would be null in JSON
	for _, file := range m.Attach {
		attach = append(attach, file.URL)
	}
	out := previewMessage{
		Source: f.from, Skipped: m.Skip, Incident: m.Incident,
		Title: markup.OneLine(m.Title), Body: m.Dialect.Convert(m.Body, markup.Markdown, time.UTC),
		Type: cmp.Or(m.Type, string(notifier.Info)), Format: cmp.Or(m.Format, string(markup.Text)),
		Tags: append([]string{}, m.Tags...), Attach: append(attach, m.Images...), Warnings: append([]string{}, m.Warnings...),
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

// destinations returns the destinations of the key that get a message which
// has preferred tags.
func (f *previewFlags) destinations(config *caddyhttp.Config, preferred []string) (out []string, err error) {
	k, err := config.Key(f.key)
	if err != nil {
		return nil, err
	}
	e, err := notifier.ParseTags(strings.Join(f.tags, ","))
	if err != nil {
		return nil, fmt.Errorf("--tag: %w", err)
	}
	var targets []notifier.Target
	if e.Empty() {
		targets = message.PreferredTargets(preferred, k.Choose)
	}
	if targets == nil {
		if targets, err = k.Choose(e); err != nil {
			return nil, fmt.Errorf("none of the %d destinations of the key %s has the tag", len(k.Targets), f.key)
		}
	}
	for _, t := range targets {
		out = append(out, t.String())
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
				fmt.Fprintf(table, "%s\t%s\n", name, markup.Printable(v))
			}
		}
	}
	row("title", m.Title)
	row("type", m.Type)
	row("format", m.Format)
	row("incident", m.Incident)
	row("tag", m.Tags...)
	row("attach", m.Attach...)
	row("warning", m.Warnings...)
	row("to", m.Destinations...)
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s", words.Indent(m.Body, "  "))
	return err
}
