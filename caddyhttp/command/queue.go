package command

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/words"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// queuePage has the fields that the commands use of a page of the queue in the admin API.
type queuePage struct {
	Deliveries []delivery `json:"deliveries"`
	Next       string     `json:"next"` // address of the next page

	OldSecrets       string `json:"old_secrets"` // as in [admin.Queue]
	OldSecretRecords int    `json:"old_secret_records"`
}

func (p queuePage) next() string { return p.Next }

// delivery has the fields that the commands use of a delivery in the queue.
type delivery struct {
	ID  string `json:"id"` // of the message
	Key string `json:"key"`
	message.QueuedResult
}

// pageSize is the most deliveries that a page can have.
const pageSize = 1000

// queueFlags are the flags of the commands of the queue.
type queueFlags struct {
	adminFlags
	dead        bool
	all         bool
	destination string
}

func queueCommand() *cobra.Command {
	f := new(queueFlags)
	cmd := &cobra.Command{
		Use:   "queue list|show|destinations|retry|drop|backup",
		Short: "Shows and changes the queue of a running server",
		Long: `
Shows the deliveries that wait in the queue of a running server or that were
given up and the states of the destinations, tries deliveries again, removes them,
and makes a back-up. It uses the admin
API of the server.
`,
		Args: cobra.NoArgs,
		RunE: exit.WithCode(func(cmd *cobra.Command, _ []string) error { return cmd.Help() }),
	}
	list := &cobra.Command{
		Use:   "list [--dead] [--json]",
		Short: "Lists the deliveries that wait, or with --dead those that were given up",
		Args:  cobra.NoArgs,
		RunE:  exit.WithCode(f.list),
	}
	list.Flags().BoolVar(&f.dead, "dead", false, "List the deliveries that were given up")
	list.Flags().BoolVar(&f.asJSON, "json", false, "Print the answers of the admin API")
	show := &cobra.Command{
		Use:   "show <id> [--json]",
		Short: "Shows a message with all its deliveries",
		Args:  cobra.ExactArgs(1),
		RunE:  exit.WithCode(f.showMessage),
	}
	show.Flags().BoolVar(&f.asJSON, "json", false, "Print the answer of the admin API")
	destinations := &cobra.Command{
		Use:   "destinations [--json]",
		Short: "Lists the destinations with their states, the worst first",
		Args:  cobra.NoArgs,
		RunE:  exit.WithCode(f.destinations),
	}
	destinations.Flags().BoolVar(&f.asJSON, "json", false, "Print the answer of the admin API")
	retry := &cobra.Command{
		Use:   "retry <id>...|--all|--destination <id>",
		Short: "Tries deliveries now that wait or were given up",
		RunE: exit.WithCode(func(cmd *cobra.Command, ids []string) error {
			if f.destination != "" {
				return f.retryDestination(cmd, ids)
			}
			if f.all && len(ids) == 0 {
				return f.retryAll(cmd, "/notify/queue/retry")
			}
			return f.change(cmd, ids, http.MethodPost, "/retry", "due now", "all that wait or were given up")
		}),
	}
	retry.Flags().StringVar(&f.destination, "destination", "",
		"Try everything now that waits for the destination with this ID, which caddy notify queue destinations shows, or was given up")
	retry.Flags().BoolVar(&f.all, "all", false, "Try all deliveries now that wait or were given up, except those that a rule holds")
	drop := &cobra.Command{
		Use:   "drop <id>...|--all",
		Short: "Cancels the deliveries of messages, or with --all those that were given up",
		RunE: exit.WithCode(func(cmd *cobra.Command, ids []string) error {
			return f.change(cmd, ids, http.MethodDelete, "", "dropped", "all that was given up")
		}),
	}
	drop.Flags().BoolVar(&f.all, "all", false, "Drop all deliveries that were given up; what waits is dropped by the ID of its message")
	for _, c := range []*cobra.Command{list, show, destinations, retry, drop, f.backupCommand()} {
		f.connect(c)
		cmd.AddCommand(c)
	}
	return cmd
}

// list prints the deliveries.
func (f *queueFlags) list(cmd *cobra.Command, _ []string) error {
	secrets := ""
	err := showPages(&f.adminFlags, cmd, firstPage(f.dead), func(p queuePage) []delivery {
		if secrets = p.OldSecrets; p.OldSecretRecords > 0 {
			secrets += " by " + words.Count(p.OldSecretRecords, "record")
		}
		return p.Deliveries
	})
	if err == nil && secrets != "" && !f.asJSON {
		cmd.PrintErrln("The old secrets of the queue are " + secrets + ".")
	}
	return err
}

// showMessage prints a message, and a line for each of its deliveries.
func (f *queueFlags) showMessage(cmd *cobra.Command, ids []string) error {
	body, err := f.ask(http.MethodGet, "/notify/queue/"+url.PathEscape(ids[0]), nil)
	if err != nil {
		return err
	}
	var m message.QueuedMessage
	return f.show(cmd, body, &m, func() error {
		fmt.Fprintf(cmd.OutOrStdout(), "%s, came in at %s\n", m.State, m.Created.Local().Format(time.DateTime))
		rows := make([]shownDelivery, len(m.Results))
		for i, r := range m.Results {
			rows[i] = shownDelivery{r}
		}
		return printRows[shownDelivery](cmd, rows)
	})
}

// shownDelivery is a delivery of a message that is shown.
type shownDelivery struct{ message.QueuedResult }

// columns returns what a line has about a delivery.
func (d *shownDelivery) columns() []string {
	state := string(d.Status)
	switch {
	case d.Rule != "" && d.Until != nil:
		state += ", " + string(d.Rule) + " until " + d.Until.Local().Format(time.DateTime)
	case d.Rule != "" && d.By != "":
		state += ", " + string(d.Rule) + " by " + d.By
	case d.Rule != "":
		state += ", " + string(d.Rule)
	case d.NextAttempt != nil:
		state += ", next " + d.NextAttempt.Local().Format(time.DateTime)
	}
	reason := ""
	if d.Error != nil {
		reason = markup.Printable(strings.Join(strings.Fields(*d.Error), " "))
	}
	return []string{d.Service, d.Destination, words.Count(d.Attempts, "attempt"), state, reason}
}

// firstPage returns the address of the first page of the deliveries.
func firstPage(dead bool) string {
	path := "/notify/queue"
	if dead {
		path += "/dead"
	}
	return fmt.Sprintf("%s?limit=%d", path, pageSize)
}

// columns returns what a line of the list has about a delivery.
func (d *delivery) columns() []string {
	key, state, reason := d.Key, "given up", ""
	if key == "" {
		key = "-"
	}
	if d.Status == message.StatusQueued {
		state = "sending"
		switch {
		case d.Rule == notifier.RulePlanned && d.Until != nil:
			state = "planned for " + d.Until.Local().Format(time.DateTime)
		case d.Rule != "" && d.Until != nil:
			state = "held by a rule until " + d.Until.Local().Format(time.DateTime)
		case d.Rule != "":
			state = "held by a rule"
		case d.NextAttempt == nil:
			state = "waits for an older message"
		case d.NextAttempt.After(time.Now()):
			state = "next " + d.NextAttempt.Local().Format(time.DateTime)
		}
	}
	if d.Error != nil {
		reason = markup.Printable(strings.Join(strings.Fields(*d.Error), " "))
	}
	return []string{d.ID, key, d.Service, d.Destination, words.Count(d.Attempts, "attempt"), state, reason}
}

// change asks the admin API to change messages, and prints how many deliveries
// were changed. all says what --all stands for.
func (f *queueFlags) change(cmd *cobra.Command, ids []string, method, suffix, done, all string) error {
	if (len(ids) == 0) != f.all {
		return fmt.Errorf("name messages by their IDs, or give --all for %s; caddy notify queue list shows the IDs", all)
	}
	if f.all {
		seen := map[string]bool{}
		err := pages(&f.adminFlags, firstPage(true), func(_ []byte, p queuePage) error {
			for _, d := range p.Deliveries {
				if !seen[d.ID] {
					seen[d.ID] = true
					ids = append(ids, d.ID)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	var total changed
	for _, id := range ids {
		body, err := f.ask(method, "/notify/queue/"+url.PathEscape(id)+suffix, nil)
		if err != nil {
			return fmt.Errorf("message %s: %w", id, err)
		}
		if err := total.add(body); err != nil {
			return err
		}
	}
	total.print(cmd, done)
	return nil
}

// retryAll asks the admin API to make several deliveries due at an address of it.
func (f *queueFlags) retryAll(cmd *cobra.Command, address string) error {
	body, err := f.ask(http.MethodPost, address, nil)
	if err != nil {
		return err
	}
	var all changed
	if err := all.add(body); err != nil {
		return err
	}
	all.print(cmd, "due now")
	return nil
}

// changed has the fields that the commands use of the admin API's answer to a change.
type changed struct {
	Deliveries int `json:"deliveries"`
	Waiting    int `json:"waiting"`
	Dead       int `json:"dead"`
}

// add adds an answer.
func (c *changed) add(body []byte) error {
	var more changed
	if err := decode(body, &more); err != nil {
		return err
	}
	c.Deliveries, c.Waiting, c.Dead = c.Deliveries+more.Deliveries, c.Waiting+more.Waiting, c.Dead+more.Dead
	return nil
}

// print prints how many deliveries were changed.
func (c *changed) print(cmd *cobra.Command, done string) {
	noun, of := "deliveries", ""
	if c.Deliveries == 1 {
		noun = "delivery"
	}
	if c.Waiting+c.Dead > 0 {
		of = fmt.Sprintf(" (%d waiting, %d given up)", c.Waiting, c.Dead)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d %s %s%s.\n", c.Deliveries, noun, done, of)
}
