package command

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// destinationsPage has the fields that the commands use of the destinations in the admin API.
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
	body, err := f.ask(http.MethodGet, fmt.Sprintf("/notify/destinations?limit=%d", pageSize), nil)
	if err != nil {
		return err
	}
	var page destinationsPage
	return f.show(cmd, body, &page, func() error {
		err := printRows(cmd, page.Destinations)
		switch {
		case len(page.Destinations) == 0:
			cmd.PrintErrln("There are none.")
		case page.Omitted > 0:
			cmd.PrintErrf("%d more are left out.\n", page.Omitted)
		}
		return err
	})
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
	return []string{
		d.State, d.ID, keys, d.Service, d.Destination, fmt.Sprintf("%d waiting", d.Waiting),
		when, markup.Printable(strings.Join(strings.Fields(d.LastError), " ")),
	}
}

// retryDestination asks the admin API to try everything now that waits for one
// destination or was given up.
func (f *queueFlags) retryDestination(cmd *cobra.Command, ids []string) error {
	if len(ids) > 0 || f.all {
		return errors.New("give --destination alone, without IDs of messages and --all")
	}
	return f.retryAll(cmd, "/notify/destinations/"+url.PathEscape(f.destination)+"/retry")
}
