// Package doctor is `caddy notify doctor`: it looks at a configuration, and at the server
// that runs it, and says in one line each what is wrong and what to do.
package doctor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/admin"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/trial"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/words"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// state is the outcome of a check.
type state string

const (
	stateOK   state = "ok"
	stateWarn state = "warn" // it works, but probably not as the operator wants
	stateFail state = "fail"
)

// finding is a line of the output.
type finding struct {
	State  state  `json:"state"`
	Check  string `json:"check"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// report is the output as JSON.
type report struct {
	OK     bool      `json:"ok"` // nothing fails
	Checks []finding `json:"checks"`
}

// flags are the flags of the command doctor.
type flags struct {
	config, adapter, address string
	key                      string
	send, asJSON             bool
}

// doctor makes the checks.
type doctor struct {
	flags
	cmd    *cobra.Command
	client *http.Client // for public_url and the clock

	config  *trial.Config // nil if it does not load
	stopped bool          // no server runs here
	running *admin.Doctor // what the server says; nil if none answers
	ahead   time.Duration // how far the server's clock is ahead of this one's
	dates   []date        // by the clocks of other machines

	found []finding
}

// answerTime is how long one machine may take to answer.
const answerTime = 10 * time.Second

// Command returns the command doctor.
func Command() *cobra.Command { return command(&http.Client{Timeout: answerTime}) }

func command(client *http.Client) *cobra.Command {
	f := new(flags)
	cmd := &cobra.Command{
		Use:   "doctor [--config <file>] [--send [--key <name>]] [--json]",
		Short: "Says what is wrong with a configuration and the server that runs it",
		Long: `
Checks a configuration, and the server that runs it if its admin API answers, and
prints a line for each check: ok, warn or fail, what was found, and what to do.

  configuration  Does it load, and does a request reach each notify?
  server         Does a server run, and which version?
  queue          Can it be written, is a destination down, was something given up?
  destinations   With --send: which of them take a test message?
  public_url     Can it be reached, and does it lead to this gateway?
  addresses      Does a request to a mistyped address fail?
  strangers      What can those do who have no password?
  clock          Is it right, compared with a destination, PostgreSQL or public_url?

Without --send no message leaves the machine. Besides the server, PostgreSQL and
public_url, at most three https destinations are asked for their time, with a HEAD
request without a path. Saved keys and devices get no test message.

Exit codes:

  0  nothing fails
  1  something fails
`,
		Example: `  caddy notify doctor
  caddy notify doctor --config /etc/caddy/Caddyfile --send --key ops`,
		Args: cobra.NoArgs,
		RunE: exit.WithCode(func(cmd *cobra.Command, _ []string) error {
			if f.key != "" && !f.send {
				return errors.New("--key has no effect without --send; add --send")
			}
			d := &doctor{flags: *f, cmd: cmd, client: client}
			return d.run()
		}),
	}
	cmd.Flags().StringVarP(&f.config, "config", "c", "", "Configuration file, or - for standard input (default: Caddyfile)")
	cmd.Flags().StringVarP(&f.adapter, "adapter", "a", "", "Config adapter to apply (default: caddyfile, unless the file is JSON)")
	cmd.Flags().StringVar(&f.address, "address", "", "The address of the admin API (default: the configuration's, or localhost:2019)")
	cmd.Flags().BoolVar(&f.send, "send", false, "Send a test message to each destination")
	cmd.Flags().StringVarP(&f.key, "key", "k", "", "With --send: only to the destinations of this key")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "Print the checks as JSON")
	return cmd
}

func (d *doctor) run() error {
	d.checkConfig()
	if d.config != nil {
		defer d.config.Close()
	}
	d.checkServer()
	d.checkQueue()
	if d.config != nil && d.config.Conf != nil {
		d.checkDestinations()
		d.checkPublicURLs()
		d.checkAddresses()
		d.checkStrangers()
		d.askDestinations()
	}
	d.checkClock()
	return d.print()
}

// add adds a finding. text and remedy may quote other machines.
func (d *doctor) add(s state, check, text, remedy string) {
	clean := func(text string) string { return markup.Printable(strings.Join(strings.Fields(text), " ")) }
	d.found = append(d.found, finding{s, check, clean(text), clean(remedy)})
}

func (d *doctor) print() error {
	failed := 0
	for _, f := range d.found {
		if f.State == stateFail {
			failed++
		}
	}
	out := d.cmd.OutOrStdout()
	if d.asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(report{failed == 0, d.found}); err != nil {
			return fmt.Errorf("writing the checks: %w", err)
		}
	} else {
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, f := range d.found {
			text := f.Text
			if f.Remedy != "" {
				text += "; " + f.Remedy
			}
			fmt.Fprintf(table, "%s\t%s\t%s\n", f.State, f.Check, text)
		}
		if err := table.Flush(); err != nil {
			return fmt.Errorf("writing the checks: %w", err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s failed", failed, words.Count(len(d.found), "check"))
	}
	return nil
}

// checkConfig loads the configuration.
func (d *doctor) checkConfig() {
	name := trial.NameOf(cmp.Or(d.flags.config, "Caddyfile"))
	c, err := trial.Load(d.cmd.InOrStdin(), d.flags.config, d.adapter)
	if err != nil {
		text, remedy := err.Error(), "correct that, then load it with caddy reload, or start Caddy"
		if before, after, ok := strings.Cut(text, "; "); ok && errors.Is(err, fs.ErrNotExist) { // the error has a remedy of its own
			text, remedy = before, after
		}
		d.add(stateFail, "configuration", name+" does not load: "+text, remedy)
		return
	}
	d.config = c
	if c.Conf == nil {
		d.add(stateFail, "configuration", name+" loads, but has no notify",
			"name the right file with --config, or write one with caddy notify init")
		return
	}
	d.add(stateOK, "configuration", name+" loads: "+c.Summary(), "")
}
