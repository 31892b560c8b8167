// Package commandtest runs the commands of caddy notify in tests.
package commandtest

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Run runs a command with arguments inside the test, as Caddy does, and returns its output
// and its exit code. cmd is caddy notify, with the subcommands that the test needs.
func Run(t *testing.T, cmd *cobra.Command, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.SilenceUsage = true
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		code = 1
		if n, err := strconv.Atoi(strings.TrimPrefix(err.Error(), "exiting with status ")); err == nil {
			code = n
		}
	}
	return stdout.String(), stderr.String(), code
}
