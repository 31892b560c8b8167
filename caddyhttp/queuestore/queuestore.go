// Package queuestore has the modules of the namespace notify.queue: each is a place where the queue
// keeps what it has accepted. The modules of this package are notify.queue.bolt, a folder, and
// notify.queue.postgres, a database that several gateways share.
//
// A module of another repository is a [Guest]. It is built into Caddy with xcaddy and
// chosen by its name:
//
//	{
//		notify {
//			queue {
//				store example …
//				secret {file./run/secrets/queue}
//			}
//		}
//	}
package queuestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/postgres"
)

// Namespace is the namespace of the modules.
const Namespace = "notify.queue"

// Guest is a module of the namespace notify.queue that another repository has. Package queuetest,
// below package queue, tests the stores that it opens. The folder test/integration/modules/journal
// of this repository has a complete one: a Go module of its own with a store in a file.
//
// The gateway seals what it gives to the store, with the secret of the queue, so that the store
// gets no text: IDs, times, sizes, statuses and counts are as package queue documents them,
// and texts are keyed hashes or sealed. [queue.Job.Result] has the content of a job, and is
// there in every status. If the store was used with another secret, the gateway refuses the
// configuration, and closes the store.
//
// A Caddyfile can choose a module that implements [caddyfile.Unmarshaler]. The module is
// provisioned and validated as all modules are. It is cleaned up with its
// configuration, which a store can outlive: a reload keeps the store open if the name
// stays the same.
type Guest interface {
	caddy.Module

	// Name identifies what the store uses, for example a folder or an address. It can contain a
	// password: it is never shown.
	Name() string

	// Open opens the store. An error means that the configuration is refused. The queue
	// closes the store.
	Open(ctx context.Context, log *zap.Logger) (queue.Store, error)
}

func init() {
	caddy.RegisterModule(new(Bolt))
	caddy.RegisterModule(new(Postgres))
}

// Bolt keeps the queue in a folder of this machine, in a bbolt database. Only one process can use
// it at a time.
type Bolt struct {
	// The folder. Placeholders are replaced. Default: `notify/queue` in Caddy's data directory.
	Path string `json:"path,omitempty"`

	folder string
}

// CaddyModule returns the Caddy module information.
func (*Bolt) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: Namespace + ".bolt", New: func() caddy.Module { return new(Bolt) }}
}

// Provision implements caddy.Provisioner.
func (m *Bolt) Provision(caddy.Context) error {
	path, err := placeholder.Resolve(m.Path)
	if err != nil {
		return fmt.Errorf("path: %w", err)
	}
	if path == "" {
		path = filepath.Join(caddy.AppDataDir(), "notify", "queue")
	}
	if m.folder, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("path: %w", err)
	}
	return nil
}

// Folder returns the absolute path of the folder.
func (m *Bolt) Folder() string { return m.folder }

// UnmarshalCaddyfile reads
//
//	bolt [<path>]
func (m *Bolt) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return readOne(d, &m.Path, false, "bolt [<path>]")
}

// Postgres keeps the queue in tables of a PostgreSQL database, which several gateways with the same
// configuration share.
type Postgres struct {
	// The connection string. Placeholders are replaced. Example: `{env.DATABASE_URL}`. Required.
	DSN string `json:"dsn,omitempty"`

	resolved string
}

// CaddyModule returns the Caddy module information.
func (*Postgres) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: Namespace + ".postgres", New: func() caddy.Module { return new(Postgres) }}
}

// Provision implements caddy.Provisioner.
func (m *Postgres) Provision(caddy.Context) (err error) {
	if m.DSN == "" {
		return errors.New("dsn is missing; write the connection string of a database")
	}
	if m.resolved, err = placeholder.Resolve(m.DSN); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}

// Validate implements caddy.Validator.
func (m *Postgres) Validate() error { return postgres.Check(m.resolved) }

// Address returns the connection string with placeholders replaced.
func (m *Postgres) Address() string { return m.resolved }

// UnmarshalCaddyfile reads
//
//	postgres <dsn>
func (m *Postgres) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return readOne(d, &m.DSN, true, "postgres <dsn>")
}

// readOne reads the only argument of a module.
func readOne(d *caddyfile.Dispenser, to *string, required bool, usage string) error {
	for d.Next() {
		args := d.RemainingArgs()
		if len(args) > 1 || required && len(args) == 0 {
			return d.Errf("wrong arguments; expected store %s", usage)
		}
		if len(args) == 1 {
			*to = args[0]
		}
		if d.NextBlock(0) {
			return d.Errf("the store takes no block; expected store %s", usage)
		}
	}
	if err := placeholder.Check(*to); err != nil {
		return d.WrapErr(err)
	}
	return nil
}

// Interface guards.
var (
	_ caddy.Provisioner     = (*Bolt)(nil)
	_ caddyfile.Unmarshaler = (*Bolt)(nil)
	_ caddy.Provisioner     = (*Postgres)(nil)
	_ caddy.Validator       = (*Postgres)(nil)
	_ caddyfile.Unmarshaler = (*Postgres)(nil)
)
