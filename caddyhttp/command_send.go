package caddyhttp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

func sendCommand() *cobra.Command {
	f := new(messageFlags)
	var timeout time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "send [--title <text>] [--body <text>] [--attach <file>]... <url>...|--key <name>",
		Short: "Sends a message",
		Long: `
Sends a message to notification URLs, or to a key of a configuration.

The text of the message is that of --body, or else what comes from standard
input. One line tells what became of it at each destination; --json tells it
as the HTTP API does.

An argument "@file" stands for the URLs in a file, one on each line, and "@-"
for those on standard input; without any argument, the environment variable
` + urlsVariable + ` has the URLs. In URLs the placeholders {env.NAME} and
{file./path} work as in a Caddyfile. All of these keep secrets out of the list
of processes.

With --key the configuration is read, and nothing of it is started: the
message goes out from this command, under the settings of the place where the
key stands. A key of the global block comes before one of a site.

Nothing is sent where one of the URLs is unusable.
`,
		Example: `  caddy notify send --title Backup --body done ntfys://ntfy.sh/topic
  df -h | caddy notify send --type warning @/etc/notify.urls
  caddy notify send --key ops --tag urgent --config /etc/caddy/Caddyfile --body "disk full" --attach disk.log`,
		RunE: exiting(func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("timeout") && timeout <= 0 {
				return errors.New("--timeout: a duration longer than 0 is expected, such as 30s or 2m")
			}
			return f.send(cmd, args, timeout, asJSON)
		}),
	}
	f.bind(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "How long one destination may take, all tries together (default: the configuration's, or 30s)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print the results as JSON")
	return cmd
}

func (f *messageFlags) send(cmd *cobra.Command, args []string, timeout time.Duration, asJSON bool) error {
	if err := f.checkFlags(); err != nil {
		return err
	}
	to, err := f.audience(cmd, args)
	if err != nil {
		return err
	}
	defer to.close()
	spool := f.spool()
	defer spool.Close()
	m, err := f.message(spool)
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("body") {
		if m.Body, err = f.readBody(cmd, len(m.Attachments) > 0); err != nil {
			return err
		}
	}
	if strings.TrimSpace(m.Body) == "" && len(m.Attachments) == 0 {
		return errors.New("there is nothing to send; give a text with --body or on standard input, or a file with --attach")
	}
	m.Identity = to.settings.identity
	if timeout <= 0 {
		timeout = to.settings.timeout
	}
	pool := egress.NewPool(userAgent)
	defer pool.Close()
	report := notifier.NewSender(pool, 0).Send(cmd.Context(), m, to.targets, notifier.Options{Timeout: timeout})
	out := cmd.OutOrStdout()
	if asJSON {
		_, err = out.Write(api.NewResponse(report).JSON())
	} else {
		warnOf(cmd.ErrOrStderr(), report)
		err = writeResults(out, report.Results)
	}
	if err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	if !report.OK() {
		e := &errUndelivered{all: len(report.Results)}
		for _, r := range report.Results {
			if !r.OK() {
				e.failed++
			}
		}
		return e
	}
	return nil
}

// audience is who the message goes to. One unusable URL makes it fail.
func (f *messageFlags) audience(cmd *cobra.Command, args []string) (*audience, error) {
	if f.key != "" {
		return f.keyAudience(cmd, args)
	}
	urls, err := f.urls(cmd, args)
	if err != nil {
		return nil, err
	}
	to := new(audience)
	if to.settings, err = defaultSettings(); err != nil {
		return nil, err
	}
	for i, u := range urls {
		d, err := parseArgument(u)
		if err != nil {
			return nil, fmt.Errorf("nothing was sent: %s%w", whichURL(i, len(urls)), err)
		}
		for _, w := range d.Warnings() {
			cmd.PrintErrf("Warning: %s%s\n", whichURL(i, len(urls)), w)
		}
		to.targets = append(to.targets, notifier.Target{Destination: d})
	}
	return to, nil
}

// readBody reads the text from standard input. A message with files needs no
// text, so that nobody is asked for one.
func (f *messageFlags) readBody(cmd *cobra.Command, files bool) (string, error) {
	in := cmd.InOrStdin()
	file, ok := in.(*os.File)
	terminal := ok && term.IsTerminal(int(file.Fd()))
	if files && (terminal || f.stdin != "") {
		return "", nil
	}
	if err := f.takeInput("the text of the message"); err != nil {
		return "", err
	}
	if terminal {
		cmd.PrintErrln("Type the message; Ctrl+D on a line of its own ends it.")
	}
	b, err := io.ReadAll(io.LimitReader(in, defaultMaxBody+1))
	if err != nil {
		return "", fmt.Errorf("reading the text of the message: %w", err)
	}
	if len(b) > defaultMaxBody {
		return "", fmt.Errorf("the text of the message is longer than %s; send it as a file with --attach", humanize.IBytes(defaultMaxBody))
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), nil
}

// warnOf prints what of a message was lost on its way.
func warnOf(w io.Writer, report *notifier.Report) {
	for _, r := range report.Records {
		if r.Level == notifier.LevelWarning {
			fmt.Fprintf(w, "Warning: %s\n", oneLine.Replace(r.Text))
		}
	}
}

// writeResults writes a line for each destination.
func writeResults(w io.Writer, results []notifier.Result) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%s\t%s", r.Status, r.Service, r.Destination)
		if r.Err != nil {
			text := oneLine.Replace(r.Err.Error())
			if r.Optional {
				text += " (optional)"
			}
			fmt.Fprintf(table, "\t%s", text)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
