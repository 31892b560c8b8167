package caddyhttp

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

	"github.com/caddy-notify/caddy-notify/notifier"
)

func checkCommand() *cobra.Command {
	f := new(messageFlags)
	var requests bool
	cmd := &cobra.Command{
		Use:   "check [--dry-run] [--title <text>] [--body <text>] <url>...|--key <name>",
		Short: "Tells what is understood of notification URLs, and what would be sent",
		Long: `
Reads notification URLs, or those of a key of a configuration, and prints for
each the URL with its secrets masked, the service, what of the URL has no
effect, and a message as the service would get it: in the destination's
format and cut to its limits. Without --title, --body and --attach, that is a
message made up for the purpose.

With --dry-run it prints the HTTP requests, too, with everything secret in
them masked. They are taken down inside this command and answered with 200 and
an access token; nothing leaves the machine. Requests that would depend on
anything more in an answer are left out, and so is what would be said over
connections that are not HTTP.

URLs are given as for "caddy notify send".
`,
		Example: `  caddy notify check discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js
  caddy notify check --dry-run --body "disk full" @/etc/notify.urls
  caddy notify check --key ops --config /etc/caddy/Caddyfile`,
		RunE: exiting(func(cmd *cobra.Command, args []string) error {
			return f.check(cmd, args, requests)
		}),
	}
	f.bind(cmd)
	cmd.Flags().BoolVar(&requests, "dry-run", false, "Print the HTTP requests, with secrets masked, and send nothing")
	return cmd
}

// check tells about each URL, also about those behind an unusable one.
func (f *messageFlags) check(cmd *cobra.Command, args []string, requests bool) error {
	if err := f.checkFlags(); err != nil {
		return err
	}
	spool := f.spool()
	defer spool.Close()
	m, err := f.message(spool)
	if err != nil {
		return err
	}
	if m.Title == "" && m.Body == "" && len(m.Attachments) == 0 {
		m.Title, m.Body = "Test", "This is a test message."
	}
	var checks []urlCheck
	if f.key != "" {
		to, err := f.keyAudience(cmd, args)
		if err != nil {
			return err
		}
		m.Identity = to.settings.identity
		for _, t := range to.targets {
			checks = append(checks, urlCheck{Target: t})
		}
	} else {
		urls, err := f.urls(cmd, args)
		if err != nil {
			return err
		}
		for _, u := range urls {
			d, err := parseArgument(u)
			checks = append(checks, urlCheck{notifier.Target{Destination: d}, err})
		}
	}
	unusable := 0
	out := cmd.OutOrStdout()
	for i, c := range checks {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if c.err != nil {
			fmt.Fprintf(out, "%s\n  error    %v\n", numbered("URL", i, len(checks)), c.err)
			unusable++
			continue
		}
		usable, err := c.write(cmd.Context(), out, m, requests)
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
	case len(checks) == 1:
		return errors.New("nothing can be sent to the URL")
	}
	return fmt.Errorf("nothing can be sent to %d of %d URLs", unusable, len(checks))
}

// urlCheck is one URL of the check command: a destination, or why it is none.
type urlCheck struct {
	notifier.Target
	err error
}

// dryRunTime limits the dry run for one destination, which normally takes a few
// milliseconds.
const dryRunTime = 10 * time.Second

// write tells about a destination, and whether it can send the message.
func (c urlCheck) write(ctx context.Context, w io.Writer, m *notifier.Message, requests bool) (usable bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, dryRunTime)
	defer cancel()
	r := c.DryRun(ctx, userAgent, m)
	usable = r.Err == nil || len(r.Requests) > 0 || len(r.Connections) > 0

	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\n  service\t%s\n", c.String(), c.Service())
	if len(c.Tags) > 0 {
		fmt.Fprintf(table, "  tags\t%s\n", strings.Join(c.Tags, " "))
	}
	if c.Optional() {
		fmt.Fprintf(table, "  optional\tits failure does not count\n")
	}
	for _, text := range slices.Concat(c.Warnings(), r.Warnings) {
		fmt.Fprintf(table, "  warning\t%s\n", oneLine.Replace(text))
	}
	if !usable {
		fmt.Fprintf(table, "  error\t%s\n", oneLine.Replace(r.Err.Error()))
	}
	if err := table.Flush(); err != nil {
		return usable, err
	}
	for i, part := range r.Messages {
		if _, err := io.WriteString(w, "  "+numbered("message", i, len(r.Messages))+" ("+string(part.Format)+")\n"+indent(shown(part), "    ")); err != nil {
			return usable, err
		}
	}
	if !requests {
		return usable, nil
	}
	return usable, writeRequests(w, r)
}

func writeRequests(w io.Writer, r *notifier.DryRun) error {
	var b strings.Builder
	for i, text := range r.Requests {
		b.WriteString("  " + numbered("request", i, len(r.Requests)) + "\n" + indent(text, "    "))
	}
	for _, to := range r.Connections {
		b.WriteString("  connection to " + to + "\n")
	}
	if len(r.Connections) > 0 {
		b.WriteString("  What would be said over a connection that is not HTTP is not shown.\n")
	}
	if r.Err != nil && len(r.Requests) > 0 {
		b.WriteString("  What would depend on the answer to a request is not shown.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func numbered(what string, i, all int) string {
	if all == 1 {
		return what
	}
	return fmt.Sprintf("%s %d of %d", what, i+1, all)
}

// shown is a message for people to read.
func shown(m *notifier.Message) string {
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
