package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// queuePage is what the commands use of a page of the queue in the admin API.
type queuePage struct {
	Deliveries []delivery `json:"deliveries"`
	Next       string     `json:"next"` // address of the next page
}

// delivery is what the commands use of a delivery in the queue.
type delivery struct {
	ID  string `json:"id"` // of the message
	Key string `json:"key"`
	api.QueuedResult
}

// pageSize is the most deliveries that a page can have.
const pageSize = 1000

// queueFlags are the flags of the commands of the queue.
type queueFlags struct {
	address string
	config  string
	adapter string
	dead    bool
	asJSON  bool
	all     bool

	destination string
}

func queueCommand() *cobra.Command {
	f := new(queueFlags)
	cmd := &cobra.Command{
		Use:   "queue list|destinations|retry|drop|backup",
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
			return f.change(cmd, ids, http.MethodPost, "/retry", "due now")
		}),
	}
	retry.Flags().StringVar(&f.destination, "destination", "", "Try everything now that waits for the destination with this ID, which caddy notify queue destinations shows")
	retry.Flags().BoolVar(&f.all, "all", false, "Try all messages again that have such a delivery")
	drop := &cobra.Command{
		Use:   "drop <id>...|--all",
		Short: "Cancels deliveries that wait or were given up",
		RunE: exit.WithCode(func(cmd *cobra.Command, ids []string) error {
			return f.change(cmd, ids, http.MethodDelete, "", "dropped")
		}),
	}
	drop.Flags().BoolVar(&f.all, "all", false, "Drop all messages with a delivery that was given up")
	for _, c := range []*cobra.Command{list, destinations, retry, drop, f.backupCommand()} {
		f.connect(c)
		cmd.AddCommand(c)
	}
	return cmd
}

// connect adds the flags that say where the admin API is.
func (f *queueFlags) connect(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.address, "address", "", "The address of the admin API (default: that of the configuration, or localhost:2019)")
	cmd.Flags().StringVarP(&f.config, "config", "c", "", "The configuration of the server, for the address of its admin API")
	cmd.Flags().StringVarP(&f.adapter, "adapter", "a", "", "The config adapter for --config")
}

// list prints the deliveries.
func (f *queueFlags) list(cmd *cobra.Command, _ []string) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	n := 0
	err := f.pages(cmd, f.dead, func(body []byte, page *queuePage) error {
		if f.asJSON {
			_, err := cmd.OutOrStdout().Write(body)
			return err
		}
		for _, d := range page.Deliveries {
			n++
			fmt.Fprintln(w, strings.Join(d.columns(), "\t"))
		}
		return w.Flush()
	})
	if err == nil && n == 0 && !f.asJSON {
		cmd.PrintErrln("There are none.")
	}
	return err
}

// columns returns what a line of the list has about a delivery.
func (d *delivery) columns() []string {
	key, state, reason := d.Key, "given up", ""
	if key == "" {
		key = "-"
	}
	if d.Status == api.StatusQueued {
		state = "sending"
		switch {
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
	return []string{d.ID, key, d.Service, d.Destination, fmt.Sprintf("%d attempts", d.Attempts), state, reason}
}

// pages calls f with each page of the deliveries.
func (f *queueFlags) pages(cmd *cobra.Command, dead bool, do func(body []byte, page *queuePage) error) error {
	path := "/notify/queue"
	if dead {
		path += "/dead"
	}
	for next := fmt.Sprintf("%s?limit=%d", path, pageSize); next != ""; {
		body, err := f.ask(http.MethodGet, next)
		if err != nil {
			return err
		}
		var page queuePage
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("reading the answer of the admin API: %w", err)
		}
		if err := do(body, &page); err != nil {
			return err
		}
		next = page.Next
	}
	return nil
}

// change asks the admin API to change messages, and prints how many deliveries
// were changed.
func (f *queueFlags) change(cmd *cobra.Command, ids []string, method, suffix, done string) error {
	if (len(ids) == 0) != f.all {
		return errors.New("name messages by their IDs, or give --all for those with a delivery that was given up; caddy notify queue list shows the IDs")
	}
	if f.all {
		seen := map[string]bool{}
		err := f.pages(cmd, true, func(_ []byte, page *queuePage) error {
			for _, d := range page.Deliveries {
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
	var all changed
	for _, id := range ids {
		body, err := f.ask(method, "/notify/queue/"+url.PathEscape(id)+suffix)
		if err != nil {
			return fmt.Errorf("message %s: %w", id, err)
		}
		if err := all.add(body); err != nil {
			return err
		}
	}
	all.print(cmd, done)
	return nil
}

// changed is what the commands use of the admin API's answer to a change.
type changed struct {
	Deliveries int `json:"deliveries"`
	Waiting    int `json:"waiting"`
	Dead       int `json:"dead"`
}

// add adds an answer.
func (c *changed) add(body []byte) error {
	var more changed
	if err := json.Unmarshal(body, &more); err != nil {
		return fmt.Errorf("reading the answer of the admin API: %w", err)
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

// ask sends a request to the admin API.
func (f *queueFlags) ask(method, path string) ([]byte, error) {
	address, err := caddycmd.DetermineAdminAPIAddress(f.address, nil, f.config, f.adapter)
	if err != nil {
		return nil, fmt.Errorf("finding the admin API: %w; set --address", err)
	}
	resp, err := caddycmd.AdminAPIRequest(address, method, path, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the admin API: %w", err)
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}
