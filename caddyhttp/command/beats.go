package command

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// beatsPage has the fields that the command uses of the answer of the admin API about beats.
type beatsPage struct {
	Beats    []beat    `json:"beats"`
	Watchdog *watchdog `json:"watchdog"`
}

// beat has the fields that the command uses of a beat.
type beat struct {
	Key   string     `json:"key"`
	Name  string     `json:"name"`
	Every string     `json:"every"`
	Cron  string     `json:"cron"`
	Zone  string     `json:"zone"`
	State string     `json:"state"`
	Since *time.Time `json:"since"`
	Last  *time.Time `json:"last"`
	Ran   string     `json:"ran"`
	Exit  int64      `json:"exit"`
	Due   *time.Time `json:"due"`
	Late  *time.Time `json:"late"`

	Started *time.Time `json:"started"`
}

// watchdog has the fields that the command uses of the calls of the watchdog.
type watchdog struct {
	State        string     `json:"state"`
	Interval     string     `json:"interval"`
	LastSuccess  *time.Time `json:"last_success"`
	FailingSince *time.Time `json:"failing_since"`
	LastError    string     `json:"last_error"`
}

func beatsCommand() *cobra.Command {
	f := new(adminFlags)
	cmd := &cobra.Command{
		Use:   "beats [--json]",
		Short: "Lists the beats that keys of a running server expect",
		Long: `
Lists the beats that keys expect: the key, the name, the state, how often it comes,
when the last one came, with its run time and exit code, when the next one is due and
when it is late, and since when the job runs. The last line is about the watchdog
that queue beat calls. It uses the admin API of the server.
`,
		Args: cobra.NoArgs,
		RunE: exit.WithCode(f.beats),
	}
	f.connectJSON(cmd)
	return cmd
}

// beats prints the beats.
func (f *adminFlags) beats(cmd *cobra.Command, _ []string) error {
	body, err := f.ask(http.MethodGet, "/notify/beats", nil)
	if err != nil {
		return err
	}
	var page beatsPage
	return f.show(cmd, body, &page, func() error {
		if len(page.Beats) == 0 {
			cmd.PrintErrln("No key expects a beat.")
		}
		err := printRows(cmd, page.Beats)
		if page.Watchdog != nil {
			fmt.Fprintln(cmd.OutOrStdout(), page.Watchdog.line())
		}
		return err
	})
}

// columns returns what a line of the list has about a beat.
func (b *beat) columns() []string {
	state := strings.ReplaceAll(b.State, "_", " ")
	if b.Since != nil {
		state += " since " + at(b.Since)
	}
	how := "every " + b.Every
	if b.Cron != "" {
		how = strings.TrimSpace("cron " + b.Cron + " " + b.Zone)
	}
	last := "last " + at(b.Last)
	if b.Ran != "" {
		last += " after " + b.Ran
	}
	if b.Exit != 0 {
		last += fmt.Sprintf(", exit %d", b.Exit)
	}
	late := "late " + at(b.Late)
	if b.Started != nil {
		late += ", runs since " + at(b.Started)
	}
	return []string{b.Key, b.Name, state, how, last, "due " + at(b.Due), late}
}

// line returns the line about the watchdog.
func (x *watchdog) line() string {
	text := "watchdog " + x.State
	if x.FailingSince != nil {
		text += " since " + at(x.FailingSince)
	}
	text += ", every " + x.Interval + ", last success " + at(x.LastSuccess)
	if x.LastError != "" {
		text += ": " + markup.Printable(strings.Join(strings.Fields(x.LastError), " "))
	}
	return text
}

// at returns a time as the lists have it.
func at(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}
