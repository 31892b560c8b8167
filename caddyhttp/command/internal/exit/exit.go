// Package exit gives the commands of caddy notify their exit codes.
package exit

import (
	"cmp"
	"errors"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// PartialCode is the exit code for a [PartialError]. Every other error has the exit code 1, as in
// all commands of Caddy.
const PartialCode = 2

// PartialError is returned when a command has done its work in part: a message
// was sent but not every required destination has it, or not everything was
// moved.
type PartialError struct{ Text string } // what the command prints behind "Error:"

// Error implements error.
func (e *PartialError) Error() string { return e.Text }

// WithCode returns run with the exit code of a [PartialError] that it returns.
func WithCode(run func(cmd *cobra.Command, args []string) error) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if partial, ok := errors.AsType[*PartialError](err); ok {
			return Code(cmd, PartialCode, partial)
		}
		return err
	}
}

// Code prints err, unless it is nil, and returns an error that ends the program with an exit
// code. Caddy takes exit codes above 1 only from its own type of command functions.
func Code(cmd *cobra.Command, code int, err error) error {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err != nil {
		cmd.PrintErrln("Error:", err)
	}
	if code == 1 {
		return cmp.Or(err, errors.New("exit code 1")) // which nothing prints
	}
	return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return code, nil })(cmd, nil)
}
