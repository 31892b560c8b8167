package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/adminapi"
)

// adminFlags are the flags of the commands that ask the admin API of a running server.
type adminFlags struct {
	address string
	config  string
	adapter string
	asJSON  bool
}

// connect adds the flags that say where the admin API is.
func (f *adminFlags) connect(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.address, "address", "", "The address of the admin API (default: the configuration's, or localhost:2019)")
	cmd.Flags().StringVarP(&f.config, "config", "c", "", "The configuration of the server, for the address of its admin API")
	cmd.Flags().StringVarP(&f.adapter, "adapter", "a", "", "The config adapter for --config")
}

// connectJSON is connect, with a flag that prints the answer as it is.
func (f *adminFlags) connectJSON(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "Print the answer of the admin API")
	f.connect(cmd)
}

// open sends a request, with a body in JSON or nil, to the admin API. The caller closes the
// body of the response.
func (f *adminFlags) open(method, path string, body []byte) (*http.Response, error) {
	address, err := caddycmd.DetermineAdminAPIAddress(f.address, nil, f.config, f.adapter)
	if err != nil {
		return nil, fmt.Errorf("finding the admin API: %w; set --address", err)
	}
	resp, err := caddycmd.AdminAPIRequest(address, method, path, http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(body))
	if err != nil {
		return nil, adminapi.Error(err)
	}
	return resp, nil
}

// ask returns the body of the answer to a request.
func (f *adminFlags) ask(method, path string, body []byte) ([]byte, error) {
	resp, err := f.open(method, path, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// decode reads the body of an answer into v.
func decode(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("reading the answer of the admin API: %w", err)
	}
	return nil
}

// show prints the body of an answer as it is with --json; otherwise it reads it into v, and calls print.
func (f *adminFlags) show(cmd *cobra.Command, body []byte, v any, print func() error) error {
	if f.asJSON {
		_, err := cmd.OutOrStdout().Write(body)
		return err
	}
	if err := decode(body, v); err != nil {
		return err
	}
	return print()
}

// showRows shows the body of an answer that is a list. It prints a line for each item, or
// none to standard error if there are none.
func showRows[T any, R row[T]](f *adminFlags, cmd *cobra.Command, body []byte, none string) error {
	var all []T
	return f.show(cmd, body, &all, func() error {
		if len(all) == 0 {
			cmd.PrintErrln(none)
		}
		return printRows[T, R](cmd, all)
	})
}

// row is an item that a line of a table shows.
type row[T any] interface {
	*T
	columns() []string
}

// printRows prints a table.
func printRows[T any, R row[T]](cmd *cobra.Command, rows []T) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for i := range rows {
		fmt.Fprintln(w, strings.Join(R(&rows[i]).columns(), "\t"))
	}
	return w.Flush()
}

// page is a page of a list in the admin API.
type page interface{ next() string }

// pages calls do with each page of a list that begins at an address.
func pages[P page](f *adminFlags, address string, do func(body []byte, p P) error) error {
	for address != "" {
		body, err := f.ask(http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		var p P
		if err := decode(body, &p); err != nil {
			return err
		}
		if err := do(body, p); err != nil {
			return err
		}
		address = p.next()
	}
	return nil
}

// showPages shows the pages of a list that begins at an address, as [showRows] does.
func showPages[P page, T any, R row[T]](f *adminFlags, cmd *cobra.Command, address string, rows func(P) []T) error {
	n := 0
	err := pages(f, address, func(body []byte, p P) error {
		n += len(rows(p))
		if f.asJSON {
			_, err := cmd.OutOrStdout().Write(body)
			return err
		}
		return printRows[T, R](cmd, rows(p))
	})
	if err == nil && n == 0 && !f.asJSON {
		cmd.PrintErrln("There are none.")
	}
	return err
}
