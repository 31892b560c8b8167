package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/internal/qrcode"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// inviteFlags are the flags of the command that makes an invitation.
type inviteFlags struct {
	adminFlags
	tags []string
}

func inviteCommand() *cobra.Command {
	f := new(inviteFlags)
	cmd := &cobra.Command{
		Use:   "invite <key> [--tag <tag>...]",
		Short: "Makes an invitation with which a phone subscribes to a key",
		Long: `
Prints a link and its QR code. A phone or browser that opens the link can subscribe to
the key: it becomes a destination of it, with the tags. The link is for one device and
24 hours. It needs push in the configuration, and uses the admin API of the server.

  caddy notify invite ops
  caddy notify invite ops --tag 1:oncall
`,
		Args: cobra.ExactArgs(1),
		RunE: exit.WithCode(f.run),
	}
	cmd.Flags().StringArrayVar(&f.tags, "tag", nil, "A tag of the device, such as ops, 1:oncall or always; may be repeated")
	f.connectJSON(cmd)
	return cmd
}

func (f *inviteFlags) run(cmd *cobra.Command, args []string) error {
	request, err := json.Marshal(map[string][]string{"tags": append([]string{}, f.tags...)})
	if err != nil {
		return err
	}
	body, err := f.ask(http.MethodPost, "/notify/keys/"+url.PathEscape(args[0])+"/invitations", request)
	if err != nil {
		return err
	}
	var made struct {
		URL   string    `json:"url"`
		Until time.Time `json:"until"`
	}
	return f.show(cmd, body, &made, func() error {
		code, err := qrcode.New(made.URL)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n%s\n\nFor one device, until %s.\n",
			code.Terminal(), made.URL, made.Until.Local().Format(time.DateTime))
		return err
	})
}

// deviceLine has the fields that the commands use of a device.
type deviceLine struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Tags    []string   `json:"tags"`
	Created time.Time  `json:"created"`
	Service string     `json:"service"`
	Seen    *time.Time `json:"seen"`
	Missing int        `json:"missing"`
}

// columns returns what a line of the list has about a device.
func (d *deviceLine) columns() []string {
	seen := "never seen"
	if d.Seen != nil {
		seen = "seen " + d.Seen.Local().Format(time.DateTime)
	}
	if d.Missing > 0 {
		seen += fmt.Sprintf(", %d not confirmed", d.Missing)
	}
	return []string{
		d.ID, markup.Printable(d.Name), strings.Join(d.Tags, " "),
		"added " + d.Created.Local().Format(time.DateTime), seen, d.Service,
	}
}

func devicesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "devices list|revoke",
		Short: "Lists the phones and browsers that have subscribed to a key, or revokes one",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(devicesListCommand(), devicesRevokeCommand())
	return cmd
}

func devicesListCommand() *cobra.Command {
	f := new(adminFlags)
	cmd := &cobra.Command{
		Use:   "list <key>",
		Short: "Lists the devices of a key",
		Args:  cobra.ExactArgs(1),
		RunE: exit.WithCode(func(cmd *cobra.Command, args []string) error {
			body, err := f.ask(http.MethodGet, "/notify/keys/"+url.PathEscape(args[0])+"/devices", nil)
			if err != nil {
				return err
			}
			return showRows[deviceLine](f, cmd, body, "There are none.")
		}),
	}
	f.connectJSON(cmd)
	return cmd
}

func devicesRevokeCommand() *cobra.Command {
	f := new(adminFlags)
	all := false
	cmd := &cobra.Command{
		Use:   "revoke <key> <id>|--all",
		Short: "Removes a device, which gets no more messages; list shows the IDs",
		Args: func(cmd *cobra.Command, args []string) error {
			if all {
				return cobra.ExactArgs(1)(cmd, args)
			}
			return cobra.ExactArgs(2)(cmd, args)
		},
		RunE: exit.WithCode(func(cmd *cobra.Command, args []string) error {
			path := "/notify/keys/" + url.PathEscape(args[0]) + "/devices"
			if !all {
				path += "/" + url.PathEscape(args[1])
			}
			body, err := f.ask(http.MethodDelete, path, nil)
			if err != nil {
				return err
			}
			if !all {
				body = append(append([]byte{'['}, body...), ']')
			}
			return showRows[deviceLine](f, cmd, body, "There was none that the gateway could read. The key has no devices any more.")
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "Remove all devices of the key, also if the gateway cannot read them")
	f.connectJSON(cmd)
	return cmd
}
