// Package command adds `caddy notify` with its subcommands to Caddy. Import it for
// its effect.
package command

import (
	"errors"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/doctor"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/migrate"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "notify",
		Usage: "init|send|services|check|doctor|preview|migrate|ask|queue|incidents|silence|invite|devices|beats|version",
		Short: "Sends notifications and explains notification URLs",
		Long: `
Writes a first Caddyfile, sends a message to notification URLs or to a key of a
Caddy configuration, lists the services, shows how a URL is understood, what would be sent to it and which
message a source makes of a payload, says what is wrong with a configuration and its server, and moves the configuration of an Apprise
API. Only the commands ask, queue, incidents, silence, invite, devices and
beats need a running server.

Exit codes:

  0  success: every destination that is not optional has the message
  1  nothing was sent or written; the error tells what to correct
  2  the message was sent, but a destination failed; or not everything was moved
`,
		CobraFunc: addCommands,
	})
}

// addCommands adds the subcommands to cmd, the command notify.
func addCommands(cmd *cobra.Command) {
	cmd.RunE = exit.WithCode(func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		text := "unknown command of notify; use init, send, services, check, doctor, preview, " +
			"migrate, ask, queue, incidents, silence, invite, devices, beats or version"
		if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
			text += "; did you mean " + s[0] + "?"
		}
		return errors.New(text)
	})
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(initCommand(), sendCommand(), servicesCommand(), checkCommand(), doctor.Command(),
		previewCommand(), migrate.Command(), askCommand(), queueCommand(), incidentsCommand(),
		silenceCommand(), inviteCommand(), devicesCommand(), beatsCommand(), versionCommand())
}
