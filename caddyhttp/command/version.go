package command

import (
	"fmt"
	"runtime"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/internal/version"
)

// versionCommand returns `caddy notify version`.
func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Prints the version of caddy-notify, Caddy and Go",
		Args:  cobra.NoArgs,
		RunE: exit.WithCode(func(cmd *cobra.Command, _ []string) error {
			ofCaddy, _ := caddy.Version()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s (Caddy %s, %s %s/%s)\n",
				version.Current, ofCaddy, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		}),
	}
}
