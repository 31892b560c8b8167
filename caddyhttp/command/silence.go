package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/user"
	"strings"
	"text/tabwriter"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// silence is what the commands use of a silence.
type silence struct {
	ID       string    `json:"id"`
	Until    time.Time `json:"until"`
	Incident string    `json:"incident"`
	Tag      string    `json:"tag"`
	Title    string    `json:"title"`
	Reason   string    `json:"reason"`
	Who      string    `json:"who"`
	Messages int       `json:"messages"`
}

// silenceFlags are the flags of the command for silences.
type silenceFlags struct {
	queueFlags
	fields map[string]*string // of the silence to make
	list   bool
	end    string
	space  string
}

func silenceCommand() *cobra.Command {
	f := &silenceFlags{fields: map[string]*string{}}
	cmd := &cobra.Command{
		Use:   "silence <key> --for <duration>|--until <time> --incident|--tag|--title <text> | --list | --delete <id>",
		Short: "Keeps messages of a key silent for a time",
		Long: `
Makes a silence of a key, lists those that hold, or ends one. A saved key is found by
its name, too; --space names its space if several have one.
What opens or gets worse during a silence waits until it ends, and is told then if
it is still open. Other messages that match are not sent. It uses the admin API of
the server.

  caddy notify silence ops --for 2h --title "disk" --reason "new disks"
  caddy notify silence ops --for 30m --tag all
  caddy notify silence ops --list
  caddy notify silence alarms --space home --for 8h --tag all
`,
		Args: cobra.ExactArgs(1),
		RunE: exit.WithCode(f.run),
	}
	for name, usage := range map[string]string{
		"for":      "How long, such as 30m, 2h or 3d; at most 30 days",
		"until":    "When it ends, such as 2026-03-28T07:00:00Z",
		"incident": "The name of an incident",
		"tag":      "A tag of URLs; all stands for every URL",
		"title":    "What the title of the messages begins with",
		"reason":   "Why, for others who read the list",
	} {
		f.fields[name] = cmd.Flags().String(name, "", usage)
	}
	cmd.Flags().BoolVar(&f.list, "list", false, "List the silences of the key")
	cmd.Flags().StringVar(&f.end, "delete", "", "End the silence with this ID, which --list shows")
	cmd.Flags().StringVar(&f.space, "space", "", "The space of a saved key; default is the one without a name")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "Print the answer of the admin API")
	f.connect(cmd)
	return cmd
}

func (f *silenceFlags) run(cmd *cobra.Command, args []string) error {
	path, query := "/notify/keys/"+url.PathEscape(args[0])+"/silences", ""
	if f.space != "" {
		query = "?space=" + url.QueryEscape(f.space)
	}
	fields := map[string]string{}
	for name, value := range f.fields {
		if *value != "" {
			fields[name] = *value
		}
	}
	switch {
	case f.list && f.end != "", (f.list || f.end != "") && len(fields) > 0:
		return errors.New("give --list or --delete alone")
	case f.list:
		body, err := f.askWith(http.MethodGet, path+query, nil)
		if err != nil {
			return err
		}
		return f.print(cmd, body)
	case f.end != "":
		body, err := f.askWith(http.MethodDelete, path+"/"+url.PathEscape(f.end)+query, nil)
		if err != nil {
			return err
		}
		return f.print(cmd, append(append([]byte{'['}, body...), ']'))
	}
	if u, err := user.Current(); err == nil {
		fields["who"] = u.Username
	}
	request, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	body, err := f.askWith(http.MethodPost, path+query, request)
	if err != nil {
		return err
	}
	return f.print(cmd, body)
}

// print prints silences.
func (f *silenceFlags) print(cmd *cobra.Command, body []byte) error {
	if f.asJSON {
		_, err := cmd.OutOrStdout().Write(body)
		return err
	}
	var all []silence
	if err := json.Unmarshal(body, &all); err != nil {
		return fmt.Errorf("reading the answer of the admin API: %w", err)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for i := range all {
		fmt.Fprintln(w, strings.Join(all[i].columns(), "\t"))
	}
	if len(all) == 0 {
		cmd.PrintErrln("There are none.")
	}
	return w.Flush()
}

// columns returns what a line of the list has about a silence.
func (s *silence) columns() []string {
	var what []string
	for _, x := range [][2]string{{"incident", s.Incident}, {"tag", s.Tag}, {"title", s.Title}} {
		if x[1] != "" {
			what = append(what, x[0]+" "+markup.Printable(x[1]))
		}
	}
	return []string{s.ID, "until " + s.Until.Local().Format(time.DateTime), strings.Join(what, ", "), fmt.Sprintf("%d messages", s.Messages), markup.Printable(s.Who), markup.Printable(s.Reason)}
}

// askWith sends a request with a JSON body to the admin API, and returns the body of the
// answer.
func (f *queueFlags) askWith(method, path string, body []byte) ([]byte, error) {
	address, err := caddycmd.DetermineAdminAPIAddress(f.address, nil, f.config, f.adapter)
	if err != nil {
		return nil, fmt.Errorf("finding the admin API: %w; set --address", err)
	}
	resp, err := caddycmd.AdminAPIRequest(address, method, path, http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking the admin API: %w", err)
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}
