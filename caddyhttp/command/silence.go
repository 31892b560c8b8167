package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	silenceapi "github.com/caddy-notify/caddy-notify/gateway/httpapi/silence"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// silence has the fields that the commands use of a silence.
type silence struct {
	ID       string    `json:"id"`
	State    string    `json:"state"`
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"`
	Resolved bool      `json:"until_resolved"`
	Incident string    `json:"incident"`
	Tag      string    `json:"tag"`
	Title    string    `json:"title"`
	Reason   string    `json:"reason"`
	Who      string    `json:"who"`
	Messages int       `json:"messages"`

	Configured bool `json:"configured"`
}

// silenceFlags are the flags of the command for silences.
type silenceFlags struct {
	adminFlags
	fields map[string]*string // of the silence to make
	tell   bool
	list   bool
	end    string
	extend string
	space  string
}

func silenceCommand() *cobra.Command {
	f := &silenceFlags{fields: map[string]*string{}}
	cmd := &cobra.Command{
		Use: "silence <key> --for <duration>|--until <time> --incident|--tag|--title <text> | --list | --extend <id> --for <duration> | " +
			"--delete <id>",
		Short: "Keeps messages of a key silent for a time",
		Long: `
Makes a silence of a key, lists those that hold or are planned, extends or ends one. A saved
key is found by its name, too; --space names its space if several have one.
What opens or gets worse during a silence waits until it ends, and is told then if
it is still open. Other messages that match are not sent. It uses the admin API of
the server.

  caddy notify silence ops --for 2h --title "disk" --reason "new disks"
  caddy notify silence ops --for 30m --tag all
  caddy notify silence ops --from 2026-03-28T02:00:00+01:00 --for 2h --tag all --tell
  caddy notify silence ops --until resolved --incident db1
  caddy notify silence ops --list
  caddy notify silence alarms --space home --for 8h --tag all
`,
		Args: cobra.ExactArgs(1),
		RunE: exit.WithCode(f.run),
	}
	for name, usage := range map[string]string{
		"from":     "When it begins, such as 2026-03-28T02:00:00Z; default is now, at most a year ahead",
		"for":      "How long from then on, such as 30m, 2h or 3d; at most 30 days",
		"until":    "When it ends, such as 2026-03-28T07:00:00Z, 08:00, or resolved for an incident",
		"incident": "The name of an incident",
		"tag":      "A tag of URLs; all stands for every URL",
		"title":    "What the title of the messages begins with; * stands for any text",
		"reason":   "Why, for others who read the list",
	} {
		f.fields[name] = cmd.Flags().String(name, "", usage)
	}
	cmd.Flags().BoolVar(&f.tell, "tell", false, "Send a message when it begins, and another one when it ends")
	cmd.Flags().BoolVar(&f.list, "list", false, "List the silences of the key, also the configuration's")
	cmd.Flags().StringVar(&f.extend, "extend", "", "Let the silence with this ID last longer: by --for, or until --until")
	cmd.Flags().StringVar(&f.end, "delete", "", "End the silence with this ID, which --list shows")
	cmd.Flags().StringVar(&f.space, "space", "", "The space of a saved key; default is the one without a name")
	f.connectJSON(cmd)
	return cmd
}

func (f *silenceFlags) run(cmd *cobra.Command, args []string) error {
	path, query := "/notify/keys/"+url.PathEscape(args[0])+"/silences", ""
	if f.space != "" {
		query = "?space=" + url.QueryEscape(f.space)
	}
	fields := map[string]any{}
	for name, value := range f.fields {
		if *value != "" {
			fields[name] = *value
		}
	}
	if f.tell {
		fields["tell"] = true
	}
	switch {
	case f.list && f.end != "", (f.list || f.end != "") && len(fields)+len(f.extend) > 0:
		return errors.New("give --list or --delete alone")
	case f.extend != "":
		return f.change(cmd, http.MethodPost, path+"/"+url.PathEscape(f.extend)+query, fields)
	case f.list:
		body, err := f.ask(http.MethodGet, path+query, nil)
		if err != nil {
			return err
		}
		return showRows[silence](&f.adminFlags, cmd, body, "There are none.")
	case f.end != "":
		return f.change(cmd, http.MethodDelete, path+"/"+url.PathEscape(f.end)+query, nil)
	case fields["for"] == nil && fields["until"] == nil:
		return errors.New("a silence needs an end; add --for with a duration, such as 2h, or --until with a time")
	}
	if who := userName(); who != "" {
		fields["who"] = who
	}
	request, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	body, err := f.ask(http.MethodPost, path+query, request)
	if err != nil {
		return err
	}
	return showRows[silence](&f.adminFlags, cmd, body, "There are none.")
}

// change sends a request that changes one silence, and shows the silence.
func (f *silenceFlags) change(cmd *cobra.Command, method, path string, fields map[string]any) error {
	var request []byte
	if fields != nil {
		var err error
		if request, err = json.Marshal(fields); err != nil {
			return err
		}
	}
	body, err := f.ask(method, path, request)
	if err != nil {
		return err
	}
	return showRows[silence](&f.adminFlags, cmd, append(append([]byte{'['}, body...), ']'), "There are none.")
}

// columns returns what a line of the list has about a silence.
func (s *silence) columns() []string {
	var what []string
	for _, x := range [][2]string{{"incident", s.Incident}, {"tag", s.Tag}, {"title", s.Title}} {
		if x[1] != "" {
			what = append(what, x[0]+" "+markup.Printable(x[1]))
		}
	}
	at := "until " + s.Until.Local().Format(time.DateTime)
	if s.Resolved {
		at = "until it is resolved"
	}
	if s.State == silenceapi.Planned {
		at = "from " + s.From.Local().Format(time.DateTime) + " " + at
	}
	if s.Configured {
		what = append(what, "in the configuration")
	}
	return []string{
		s.ID, at, strings.Join(what, ", "), fmt.Sprintf("%d messages", s.Messages),
		markup.Printable(s.Who), markup.Printable(s.Reason),
	}
}
