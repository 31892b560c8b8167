package caddyhttp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "notify",
		Usage: "send|services|check|version",
		Short: "Sends notifications and explains notification URLs",
		Long: `
Sends a message to notification URLs, or to a key of a Caddy configuration, and
tells how such URLs are written and what is sent to them. No server need run.

Exit codes:

  0  done: every destination that is not optional has the message
  1  nothing was sent, or a URL is unusable; the error says what to mend
  2  sent, but a destination has failed
`,
		CobraFunc: addCommands,
	})
}

// addCommands makes the notify command of cmd.
func addCommands(cmd *cobra.Command) {
	cmd.RunE = exiting(func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		text := "notify has no such command; use send, services, check or version"
		if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
			text += "; did you mean " + s[0] + "?"
		}
		return errors.New(text)
	})
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(sendCommand(), servicesCommand(), checkCommand(), versionCommand())
}

// exitUndelivered is the exit code of a command whose message has not reached
// all destinations. For every other error it is 1, as everywhere in Caddy.
const exitUndelivered = 2

// errUndelivered is an error with that exit code.
type errUndelivered struct{ failed, all int }

func (e *errUndelivered) Error() string {
	return fmt.Sprintf("%d of %d notifications could not be sent", e.failed, e.all)
}

// exiting sees to the exit code. Caddy takes one above 1 only from its own
// kind of command.
func exiting(run func(cmd *cobra.Command, args []string) error) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if _, ok := errors.AsType[*errUndelivered](err); !ok {
			return err
		}
		cmd.SilenceErrors = true
		cmd.PrintErrln("Error:", err)
		return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return exitUndelivered, nil })(cmd, args)
	}
}

// indent puts spaces before every line of a text that is not empty.
func indent(text, spaces string) string {
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	for i, line := range lines {
		if line = strings.TrimRight(line, "\r"); line != "" {
			line = spaces + line
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n") + "\n"
}
