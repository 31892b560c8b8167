package command

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// sendFlags are the flags of the command send.
type sendFlags struct {
	messageFlags
	timeout time.Duration
	asJSON  bool
}

func sendCommand() *cobra.Command {
	f := new(sendFlags)
	cmd := &cobra.Command{
		Use:   "send [--title <text>] [--body <text>] [--attach <file>]... <url>...|--key <name>",
		Short: "Sends a message",
		Long: `
Sends a message to notification URLs, or to a key of a configuration.

The text of the message is --body or, without it, standard input. The output
has a line with the outcome for each destination; with --json it is the response
of the HTTP API.

An argument "@file" stands for the URLs in a file, one on each line, and "@-"
for those on standard input. Without arguments, the environment variable
` + urlsVariable + ` has the URLs. In URLs, the placeholders {env.NAME} and
{file./path} are replaced as in a Caddyfile. All of these keep secrets out of
the list of processes.

With --key, the configuration is read but not started: this command sends the
message, with the settings of the place where the key is defined. A key of the
global block takes precedence over one of a site.

If one of the URLs cannot be used, nothing is sent.
`,
		Example: `  caddy notify send --title Backup --body done ntfys://ntfy.sh/topic
  df -h | caddy notify send --type warning @/etc/notify.urls
  caddy notify send --key ops --tag urgent --config /etc/caddy/Caddyfile --body "disk full" --attach disk.log`,
		RunE: exit.WithCode(f.run),
	}
	f.bind(cmd)
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0,
		"How long one destination may take, including all attempts (default: the configuration's, or 30s)")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "Print the results as JSON")
	return cmd
}

func (f *sendFlags) run(cmd *cobra.Command, args []string) error {
	if cmd.Flags().Changed("timeout") && f.timeout <= 0 {
		return errors.New("--timeout: it must be a duration above 0, such as 30s or 2m")
	}
	if err := f.validate(); err != nil {
		return err
	}
	to, err := f.recipients(cmd, args)
	if err != nil {
		return err
	}
	defer to.close()
	spool := f.spool()
	defer spool.Close()
	m, err := f.message(cmd, spool)
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("body") {
		if m.Body, err = f.readBody(cmd, len(m.Attachments) > 0); err != nil {
			return err
		}
	}
	if strings.TrimSpace(m.Body) == "" && len(m.Attachments) == 0 {
		return errors.New("the message is empty; give a text with --body or on standard input, or a file with --attach")
	}
	report := f.send(cmd, m, to)
	if err := f.print(cmd, report); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return undelivered(report)
}

// recipients returns the recipients for the arguments or --key, and an error if
// one of the URLs cannot be used.
func (f *sendFlags) recipients(cmd *cobra.Command, args []string) (*recipients, error) {
	if f.key != "" {
		return f.keyRecipients(cmd, args)
	}
	urls, err := f.urls(cmd, args)
	if err != nil {
		return nil, err
	}
	identity := notifier.DefaultIdentity()
	to := &recipients{identity: &identity, timeout: notifier.DefaultTimeout}
	for i, u := range urls {
		d, err := parseArgument(u)
		if err != nil {
			return nil, fmt.Errorf("nothing was sent: %s%w", urlNumber(i, len(urls)), err)
		}
		for _, w := range d.Warnings() {
			cmd.PrintErrf("Warning: %s%s\n", urlNumber(i, len(urls)), w)
		}
		to.targets = append(to.targets, notifier.Target{Destination: d})
	}
	return to, nil
}

func (f *sendFlags) send(cmd *cobra.Command, m *notifier.Message, to *recipients) *notifier.Report {
	m.Identity = to.identity
	timeout := f.timeout
	if timeout <= 0 {
		timeout = to.timeout
	}
	pool := egress.NewPool(version.Agent)
	defer pool.Close()
	return notifier.NewSender(pool, 0).Send(cmd.Context(), m, to.targets, notifier.Options{Timeout: timeout})
}

func (f *sendFlags) print(cmd *cobra.Command, report *notifier.Report) error {
	out := cmd.OutOrStdout()
	if f.asJSON {
		_, err := out.Write(api.NewResponse(report).JSON())
		return err
	}
	for _, r := range report.Records {
		if r.Level == notifier.LevelWarning {
			cmd.PrintErrf("Warning: %s\n", markup.Printable(r.Text))
		}
	}
	return printResults(out, report.Results)
}

// printResults writes a line for each destination.
func printResults(w io.Writer, results []notifier.Result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%s\t%s", r.Status, r.Service, markup.Printable(r.Destination))
		if r.Err != nil {
			text := markup.Printable(r.Err.Error())
			if r.Optional {
				text += " (optional)"
			}
			fmt.Fprintf(table, "\t%s", text)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// undelivered returns an exit.PartialError if a required destination does not have
// the message.
func undelivered(report *notifier.Report) error {
	failed := 0
	for _, r := range report.Results {
		if !r.OK() {
			failed++
		}
	}
	if failed == 0 {
		return nil
	}
	return &exit.PartialError{Text: fmt.Sprintf("%d of %d notifications could not be sent", failed, len(report.Results))}
}
