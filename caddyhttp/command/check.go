package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/trial"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/words"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// checkFlags are the flags of the command check.
type checkFlags struct {
	messageFlags
	dryRun bool

	loaded *trial.Config // the whole configuration; nil if it is not checked
}

func checkCommand() *cobra.Command {
	f := new(checkFlags)
	cmd := &cobra.Command{
		Use:   "check [--dry-run] [--title <text>] [--body <text>] <url>...|--key <name>|--config <file>",
		Short: "Shows how notification URLs are understood and what would be sent",
		Long: `
Reads notification URLs, or those of a key of a configuration, and prints for
each the URL with its secrets masked, the service, what in the URL has no
effect, and the message as the service would get it: in the destination's format
and within its limits. Without --title, --body and --attach, that is an example
message.

With --config and neither --key nor URLs, it loads the whole configuration as Caddy
would, without starting it, and prints what the gateway would warn of and the URLs of
all keys. "caddy notify doctor" checks the server, too.

With --dry-run it also prints the HTTP requests, with their secrets masked. This
command answers them itself, with 200 and an access token; nothing leaves the
machine. Requests that need anything else from an answer are not shown, nor is
what is sent over connections other than HTTP.

URLs are given as for "caddy notify send".
`,
		Example: `  caddy notify check discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js
  caddy notify check --dry-run --body "disk full" @/etc/notify.urls
  caddy notify check --key ops --config /etc/caddy/Caddyfile
  caddy notify check --config /etc/caddy/Caddyfile`,
		RunE: exit.WithCode(f.run),
	}
	f.bind(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "Print the HTTP requests, with secrets masked, and send nothing")
	return cmd
}

func (f *checkFlags) run(cmd *cobra.Command, args []string) error {
	whole := f.key == "" && len(args) == 0 && f.config != "" && len(f.tags) == 0
	if whole {
		if err := f.load(cmd); err != nil {
			return err
		}
		defer f.loaded.Close()
	} else if err := f.validate(); err != nil {
		return err
	}
	spool := f.spool()
	defer spool.Close()
	m, err := f.message(cmd, spool)
	if err != nil {
		return err
	}
	if m.Title == "" && m.Body == "" && len(m.Attachments) == 0 {
		m.Title, m.Body = "Test", "This is a test message."
	}
	checks, err := f.checks(cmd, args, m)
	if err != nil {
		return err
	}
	unusable := 0
	out := cmd.OutOrStdout()
	for i, c := range checks {
		if i > 0 || whole {
			fmt.Fprintln(out)
		}
		if c.err != nil {
			fmt.Fprintf(out, "%s\n  error    %v\n", words.Numbered("URL", i, len(checks)), c.err)
			unusable++
			continue
		}
		usable, err := c.print(cmd.Context(), out, m, f.dryRun)
		if err != nil {
			return fmt.Errorf("writing the results: %w", err)
		}
		if !usable {
			unusable++
		}
	}
	switch {
	case unusable == 0:
		return nil
	case whole:
	case len(checks) == 1:
		return errors.New("nothing can be sent to the URL")
	}
	return fmt.Errorf("nothing can be sent to %d of %d URLs", unusable, len(checks))
}

// urlCheck is one URL of the command check: a destination, or the error of a URL
// that has none.
type urlCheck struct {
	target notifier.Target
	err    error

	key    string             // "" unless all keys are checked
	sender *notifier.Identity // of a message to it; nil for the message's own
}

// load loads the whole configuration, and prints what it has.
func (f *checkFlags) load(cmd *cobra.Command) (err error) {
	if f.config == "-" {
		if err := f.claimStdin("the configuration (--config -)"); err != nil {
			return err
		}
	}
	if f.loaded, err = trial.Load(cmd.InOrStdin(), f.config, f.adapter); err != nil {
		return err
	}
	if f.loaded.Conf == nil {
		f.loaded.Close()
		return fmt.Errorf("%s loads, but has no notify", trial.NameOf(f.config))
	}
	for _, w := range f.loaded.Warnings {
		cmd.PrintErrln("Warning:", w.Text)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s loads: %s\n", trial.NameOf(f.config), f.loaded.Summary())
	return nil
}

// checks returns the URLs to check. With --key, it also sets the sender of m.
func (f *checkFlags) checks(cmd *cobra.Command, args []string, m *notifier.Message) (out []urlCheck, err error) {
	if f.loaded != nil {
		for _, k := range f.loaded.Keys() {
			for _, t := range k.Targets {
				out = append(out, urlCheck{target: t, key: k.Name, sender: k.Site.Identity})
			}
		}
		return out, nil
	}
	if f.key != "" {
		to, err := f.keyRecipients(cmd, args)
		if err != nil {
			return nil, err
		}
		m.Identity = to.identity
		for _, t := range to.targets {
			out = append(out, urlCheck{target: t})
		}
		return out, nil
	}
	urls, err := f.urls(cmd, args)
	if err != nil {
		return nil, err
	}
	for _, u := range urls {
		d, err := parseArgument(u)
		out = append(out, urlCheck{target: notifier.Target{Destination: d}, err: err})
	}
	return out, nil
}

// dryRunTimeout bounds the dry run for one destination. It takes almost no
// time, because nothing is waited for.
const dryRunTimeout = 10 * time.Second

// print writes what is known about the destination and what would be sent to
// it. It reports whether anything would be sent.
func (c urlCheck) print(ctx context.Context, w io.Writer, m *notifier.Message, requests bool) (usable bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	t := c.target
	if c.sender != nil {
		own := *m
		own.Identity, m = c.sender, &own
	}
	r := t.DryRun(ctx, version.Agent, m)
	usable = r.Err == nil || len(r.Requests) > 0 || len(r.Connections) > 0

	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\n  service\t%s\n", t.String(), t.Service())
	if c.key != "" {
		fmt.Fprintf(table, "  key\t%s\n", c.key)
	}
	if len(t.Tags) > 0 {
		fmt.Fprintf(table, "  tags\t%s\n", strings.Join(t.Tags, " "))
	}
	if t.Optional() {
		fmt.Fprintf(table, "  optional\tits failure does not count\n")
	}
	for _, text := range slices.Concat(t.Warnings(), r.Warnings) {
		fmt.Fprintf(table, "  warning\t%s\n", markup.Printable(text))
	}
	if !usable {
		fmt.Fprintf(table, "  error\t%s\n", markup.Printable(r.Err.Error()))
	}
	if err := table.Flush(); err != nil {
		return usable, err
	}
	for i, part := range r.Messages {
		if _, err := io.WriteString(w, "  "+words.Numbered("message", i, len(r.Messages))+" ("+
			string(part.Format)+")\n"+words.Indent(formatMessage(part), "    ")); err != nil {
			return usable, err
		}
	}
	if !requests {
		return usable, nil
	}
	return usable, printRequests(w, r)
}

func printRequests(w io.Writer, r *notifier.DryRun) error {
	var b strings.Builder
	for i, text := range r.Requests {
		b.WriteString("  " + words.Numbered("request", i, len(r.Requests)) + "\n" + words.Indent(text, "    "))
	}
	for _, to := range r.Connections {
		b.WriteString("  connection to " + to + "\n")
	}
	if len(r.Connections) > 0 {
		b.WriteString("  What is sent over a connection other than HTTP is not shown.\n")
	}
	if r.Err != nil && len(r.Requests) > 0 {
		b.WriteString("  Requests that need more of the answer to an earlier one are not shown.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// formatMessage returns a message as text for people.
func formatMessage(m *notifier.Message) string {
	var b strings.Builder
	if m.Title != "" {
		b.WriteString("Title: " + m.Title + "\n")
	}
	for _, a := range m.Attachments {
		fmt.Fprintf(&b, "File: %s (%s, %s)\n", a.Name, a.ContentType, humanize.IBytes(uint64(a.Size)))
	}
	if m.Body != "" {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(m.Body)
	}
	return b.String()
}
