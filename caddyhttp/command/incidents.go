package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// incidentsPage has the fields that the commands use of a page of the incidents in the admin API.
type incidentsPage struct {
	Incidents []incident `json:"incidents"`
	Next      string     `json:"next"` // address of the next page
}

func (p incidentsPage) next() string { return p.Next }

// incident has the fields that the commands use of an incident.
type incident struct {
	ID           string    `json:"id"`
	Key          string    `json:"key"`
	State        string    `json:"state"`
	Type         string    `json:"type"`
	Title        string    `json:"title"`
	Opened       time.Time `json:"opened"`
	Acknowledged *struct {
		By string `json:"by"`
	} `json:"acknowledged"`
	Escalation *struct {
		Step int        `json:"step"`
		Next *time.Time `json:"next"`
	} `json:"escalation"`
	Silenced *time.Time `json:"silenced_until"` // nil if no silence matches it
	For      []string   `json:"silenced_for"`   // the destinations that are silent; none if all are
}

// incidentFlags are the flags of the commands of incidents.
type incidentFlags struct {
	adminFlags
	key, state, by string
}

func incidentsCommand() *cobra.Command {
	f := new(incidentFlags)
	cmd := &cobra.Command{
		Use:   "incidents [--key <key>] [--state open|acknowledged|resolved] [--json]",
		Short: "Lists, acknowledges, resolves and forgets the incidents of a running server",
		Long: `
Lists the incidents of keys with rules, the worst first: what is open, what
somebody has acknowledged, and what is resolved and not forgotten yet. The
subcommands change one of them. They use the admin API of the server.
`,
		Args: cobra.NoArgs,
		RunE: exit.WithCode(f.list),
	}
	cmd.Flags().StringVar(&f.key, "key", "", "List the incidents of a key")
	cmd.Flags().StringVar(&f.state, "state", "", "List those in a state: open, acknowledged or resolved")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "Print the answers of the admin API")
	f.connect(cmd)
	for _, c := range []struct{ name, short, done string }{
		{"acknowledge", "Says that somebody takes care of incidents, so that nobody else is told", "acknowledged"},
		{"resolve", "Says that incidents are over, and tells those who were told of them", "resolved"},
	} {
		change := &cobra.Command{
			Use:   c.name + " <id>... [--by <name>]",
			Short: c.short,
			Args:  cobra.MinimumNArgs(1),
			RunE:  exit.WithCode(func(cmd *cobra.Command, ids []string) error { return f.change(cmd, ids, c.name, c.done) }),
		}
		change.Flags().StringVar(&f.by, "by", userName(), "Who does it")
		f.connect(change)
		cmd.AddCommand(change)
	}
	cmd.AddCommand(f.forgetCommand())
	return cmd
}

func (f *incidentFlags) forgetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forget <id>... | --key <key> [--state open|acknowledged|resolved]",
		Short: "Forgets incidents, so that the queue has room for others",
		Long: `
Forgets incidents, and what destinations know of them. Nobody is told. An
incident of which people are being told, or of which somebody takes care, has to
be resolved first. With --key, all others of the key are forgotten.
`,
		RunE: exit.WithCode(f.forget),
	}
	cmd.Flags().StringVar(&f.key, "key", "", "Forget the incidents of a key")
	cmd.Flags().StringVar(&f.state, "state", "", "Of the key, forget those in a state: open, acknowledged or resolved")
	f.connect(cmd)
	return cmd
}

// forget forgets incidents by their IDs, or all incidents of a key.
func (f *incidentFlags) forget(cmd *cobra.Command, ids []string) error {
	if (len(ids) == 0) == (f.key == "") {
		return errors.New("name either incidents by their ids, which caddy notify incidents lists, or a key with --key")
	}
	for _, id := range ids {
		answer, err := f.ask(http.MethodDelete, "/notify/incidents/"+url.PathEscape(id), nil)
		if err != nil {
			return fmt.Errorf("incident %s: %w", id, err)
		}
		var x incident
		if err := decode(answer, &x); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s: forgotten.\n", markup.Printable(x.Key), markup.Printable(x.Title))
	}
	if f.key == "" {
		return nil
	}
	query := url.Values{"key": {f.key}}
	if f.state != "" {
		query.Set("state", f.state)
	}
	n := 0
	for {
		answer, err := f.ask(http.MethodDelete, "/notify/incidents?"+query.Encode(), nil)
		if err != nil {
			return err
		}
		var x struct {
			Forgotten, Kept int
			More            bool
		}
		if err := decode(answer, &x); err != nil {
			return err
		}
		if n += x.Forgotten; x.More && x.Forgotten > 0 {
			continue
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%d forgotten.\n", n)
		if x.Kept > 0 {
			fmt.Fprintf(cmd.OutOrStdout(), "%d kept: people are being told of them, somebody takes care of them, or they are silenced.\n", x.Kept)
		}
		return nil
	}
}

// userName returns the name of the user who runs the command, or "".
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// change acknowledges or resolves incidents.
func (f *incidentFlags) change(cmd *cobra.Command, ids []string, what, done string) error {
	body, err := json.Marshal(map[string]string{"by": f.by})
	if err != nil {
		return err
	}
	for _, id := range ids {
		answer, err := f.ask(http.MethodPost, "/notify/incidents/"+url.PathEscape(id)+"/"+what, body)
		if err != nil {
			return fmt.Errorf("incident %s: %w", id, err)
		}
		var x struct {
			Changed bool `json:"changed_now"`
			incident
		}
		if err := decode(answer, &x); err != nil {
			return err
		}
		text := done
		if !x.Changed {
			text = "was " + x.State + " before"
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s: %s.\n", markup.Printable(x.Key), markup.Printable(x.Title), text)
	}
	return nil
}

// list prints the incidents.
func (f *incidentFlags) list(cmd *cobra.Command, _ []string) error {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	if f.key != "" {
		query.Set("key", f.key)
	}
	if f.state != "" {
		query.Set("state", f.state)
	}
	return showPages(&f.adminFlags, cmd, "/notify/incidents?"+query.Encode(), func(p incidentsPage) []incident { return p.Incidents })
}

// columns returns what a line of the list has about an incident.
func (x *incident) columns() []string {
	what := ""
	switch {
	case x.State == "acknowledged" && x.Acknowledged != nil && x.Acknowledged.By != "":
		what = "by " + x.Acknowledged.By
	case x.State == "open" && x.Escalation != nil && x.Escalation.Step == 0:
		what = "nobody is told yet" // a silence matches it since it was opened
	case x.State == "open" && x.Escalation != nil:
		what = fmt.Sprintf("step %d", x.Escalation.Step)
		if next := x.Escalation.Next; next != nil && (x.Silenced == nil || len(x.For) > 0 || next.After(*x.Silenced)) {
			what += ", next " + x.Escalation.Next.Local().Format(time.DateTime)
		}
	}
	if x.State == "open" && x.Silenced != nil {
		if what != "" {
			what += ", "
		}
		silenced := "silenced"
		if len(x.For) > 0 {
			silenced = "silent for " + strings.Join(x.For, ", ")
		}
		what += silenced + " until " + x.Silenced.Local().Format(time.DateTime)
	}
	line := []string{x.ID, x.Key, x.State, x.Type, "since " + x.Opened.Local().Format(time.DateTime), what, x.Title}
	for i, text := range line {
		line[i] = markup.Printable(strings.Join(strings.Fields(text), " "))
	}
	return line
}
