package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// destinationsPage is what the commands use of the destinations in the admin API.
type destinationsPage struct {
	Destinations []destination `json:"destinations"`
	Omitted      int           `json:"omitted"`
}

type destination struct {
	ID           string     `json:"id"`
	Keys         []string   `json:"keys"`
	Service      string     `json:"service"`
	Destination  string     `json:"destination"`
	Client       bool       `json:"client"`
	State        string     `json:"state"`
	LastSuccess  *time.Time `json:"last_success"`
	FailingSince *time.Time `json:"failing_since"`
	LastError    string     `json:"last_error"`
	Waiting      int        `json:"waiting"`
}

// destinations prints the destinations, the worst first.
func (f *queueFlags) destinations(cmd *cobra.Command, _ []string) error {
	body, err := f.ask(http.MethodGet, fmt.Sprintf("/notify/destinations?limit=%d", pageSize))
	if err != nil {
		return err
	}
	if f.asJSON {
		_, err := cmd.OutOrStdout().Write(body)
		return err
	}
	var page destinationsPage
	if err := json.Unmarshal(body, &page); err != nil {
		return fmt.Errorf("reading the answer of the admin API: %w", err)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for i := range page.Destinations {
		fmt.Fprintln(w, strings.Join(page.Destinations[i].columns(), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case len(page.Destinations) == 0:
		cmd.PrintErrln("There are none.")
	case page.Omitted > 0:
		cmd.PrintErrf("%d more are left out.\n", page.Omitted)
	}
	return nil
}

// columns returns what a line of the list has about a destination.
func (d *destination) columns() []string {
	keys, when := strings.Join(d.Keys, ","), ""
	if keys == "" {
		keys = "-"
	}
	if d.Client {
		keys += " (client)"
	}
	switch {
	case d.FailingSince != nil:
		when = "since " + d.FailingSince.Local().Format(time.DateTime)
	case d.LastSuccess != nil:
		when = "last " + d.LastSuccess.Local().Format(time.DateTime)
	}
	return []string{d.State, d.ID, keys, d.Service, d.Destination, fmt.Sprintf("%d waiting", d.Waiting), when, markup.Printable(strings.Join(strings.Fields(d.LastError), " "))}
}

// retryDestination asks the admin API to try everything now that waits for one
// destination.
func (f *queueFlags) retryDestination(cmd *cobra.Command, ids []string) error {
	if len(ids) > 0 || f.all {
		return errors.New("give --destination alone, without IDs of messages and --all")
	}
	body, err := f.ask(http.MethodPost, "/notify/destinations/"+url.PathEscape(f.destination)+"/retry")
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
