package caddyhttp

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"
)

func init() {
	caddy.RegisterModule(App{})
}

// App holds what all sites share: the keys that every site may use, and the
// settings of those sites that do not set them.
//
// In a Caddyfile it is the global option `notify`, which takes the same block
// as the directive.
type App struct {
	Settings

	engine engineRef
	rules  *rules
}

// CaddyModule returns the Caddy module information.
func (App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "notify",
		New: func() caddy.Module { return new(App) },
	}
}

// Provision implements caddy.Provisioner.
func (a *App) Provision(ctx caddy.Context) error {
	if err := a.engine.load(); err != nil {
		return fmt.Errorf("starting the sender: %w", err)
	}
	defaults, err := defaultRules()
	if err != nil {
		return err
	}
	a.rules, err = a.over(defaults, a.engine.sender, ctx.Logger())
	return err
}

// Start implements caddy.App. There is nothing to start: messages are sent
// while their requests wait.
func (a *App) Start() error { return nil }

// Stop implements caddy.App. Requests that are under way finish.
func (a *App) Stop() error { return nil }

// Cleanup implements caddy.CleanerUpper.
func (a *App) Cleanup() error { return a.engine.release() }

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
