package caddyhttp

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

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
)

// queueFlags are the flags of the commands of the queue.
type queueFlags struct {
	address string
	config  string
	adapter string
	dead    bool
	asJSON  bool
	all     bool
}

func queueCommand() *cobra.Command {
	f := new(queueFlags)
	cmd := &cobra.Command{
		Use:   "queue list|retry|drop",
		Short: "Shows and changes the queue of a running server",
		Long: `
Shows the deliveries that wait in the queue of a running server or that were
given up, tries them again, and removes them. It uses the admin API of the
server.
`,
		Args: cobra.NoArgs,
		RunE: withExitCode(func(cmd *cobra.Command, _ []string) error { return cmd.Help() }),
	}
	list := &cobra.Command{
		Use:   "list [--dead] [--json]",
		Short: "Lists the deliveries that wait, or with --dead those that were given up",
		Args:  cobra.NoArgs,
		RunE:  withExitCode(f.list),
	}
	list.Flags().BoolVar(&f.dead, "dead", false, "List the deliveries that were given up")
	list.Flags().BoolVar(&f.asJSON, "json", false, "Print the answers of the admin API")
	retry := &cobra.Command{
		Use:   "retry <id>...|--all",
		Short: "Tries deliveries again that were given up",
		RunE: withExitCode(func(cmd *cobra.Command, ids []string) error {
			return f.change(cmd, ids, http.MethodPost, "/retry", "queued again")
		}),
	}
	retry.Flags().BoolVar(&f.all, "all", false, "Try all messages again that have such a delivery")
	drop := &cobra.Command{
		Use:   "drop <id>...|--all",
		Short: "Cancels deliveries that wait or were given up",
		RunE: withExitCode(func(cmd *cobra.Command, ids []string) error {
			return f.change(cmd, ids, http.MethodDelete, "", "dropped")
		}),
	}
	drop.Flags().BoolVar(&f.all, "all", false, "Drop all messages with a delivery that was given up")
	for _, c := range []*cobra.Command{list, retry, drop} {
		c.Flags().StringVar(&f.address, "address", "", "The address of the admin API (default: that of the configuration, or localhost:2019)")
		c.Flags().StringVarP(&f.config, "config", "c", "", "The configuration of the server, for the address of its admin API")
		c.Flags().StringVarP(&f.adapter, "adapter", "a", "", "The config adapter for --config")
		cmd.AddCommand(c)
	}
	return cmd
}

// list prints the deliveries.
func (f *queueFlags) list(cmd *cobra.Command, _ []string) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	n := 0
	err := f.pages(cmd, f.dead, func(body []byte, page *adminQueue) error {
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
func (d *adminDelivery) columns() []string {
	key, state, reason := d.Key, "given up", ""
	if key == "" {
		key = "-"
	}
	if d.Status == api.StatusQueued {
		state = "sending"
		if d.NextAttempt != nil && d.NextAttempt.After(time.Now()) {
			state = "next " + d.NextAttempt.Local().Format(time.DateTime)
		}
	}
	if d.Error != nil {
		reason = strings.Join(strings.Fields(*d.Error), " ")
	}
	return []string{d.ID, key, d.Service, d.Destination, fmt.Sprintf("%d attempts", d.Attempts), state, reason}
}

// pages calls f with each page of the deliveries.
func (f *queueFlags) pages(cmd *cobra.Command, dead bool, do func(body []byte, page *adminQueue) error) error {
	path := "/notify/queue"
	if dead {
		path += "/dead"
	}
	for next := fmt.Sprintf("%s?limit=%d", path, maxQueuePage); next != ""; {
		body, err := f.ask(http.MethodGet, next)
		if err != nil {
			return err
		}
		var page adminQueue
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
		err := f.pages(cmd, true, func(_ []byte, page *adminQueue) error {
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
	all := 0
	for _, id := range ids {
		body, err := f.ask(method, "/notify/queue/"+url.PathEscape(id)+suffix)
		if err != nil {
			return fmt.Errorf("message %s: %w", id, err)
		}
		var changed struct {
			Deliveries int `json:"deliveries"`
		}
		if err := json.Unmarshal(body, &changed); err != nil {
			return fmt.Errorf("reading the answer of the admin API: %w", err)
		}
		all += changed.Deliveries
	}
	noun := "deliveries"
	if all == 1 {
		noun = "delivery"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d %s %s.\n", all, noun, done)
	return nil
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
