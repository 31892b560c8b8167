// Package journal is a store of the queue of caddy-notify, as a module of another repository has it:
// it imports only what this one publishes. It keeps the queue in memory, and writes each change into
// a file, so that the queue survives the end of the process. It suits some ten thousand messages.
//
//	{
//		notify {
//			queue {
//				store journal /var/lib/caddy/queue.journal
//				secret {file./run/secrets/queue}
//			}
//		}
//	}
package journal

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/caddyhttp/queuestore"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

func init() { caddy.RegisterModule(new(Journal)) }

// Journal keeps the queue in a file.
type Journal struct {
	// The file, which is created if it does not exist. Placeholders are replaced. Required.
	Path string `json:"path,omitempty"`

	file string
}

// CaddyModule returns the Caddy module information.
func (*Journal) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: queuestore.Namespace + ".journal", New: func() caddy.Module { return new(Journal) }}
}

// UnmarshalCaddyfile reads
//
//	journal <path>
func (m *Journal) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	for d.Next() {
		if !d.AllArgs(&m.Path) {
			return d.ArgErr()
		}
	}
	return nil
}

// Provision implements caddy.Provisioner.
func (m *Journal) Provision(caddy.Context) error {
	path, err := caddy.NewReplacer().ReplaceOrErr(m.Path, true, true)
	if err != nil {
		return err
	}
	if path == "" {
		return errors.New("path is missing; write the path of a file")
	}
	m.file, err = filepath.Abs(path)
	return err
}

// Name implements queuestore.Guest.
func (m *Journal) Name() string { return m.file }

// Open implements queuestore.Guest.
func (m *Journal) Open(_ context.Context, log *zap.Logger) (queue.Store, error) {
	return Open(m.file, log)
}

// Interface guards.
var (
	_ queuestore.Guest      = (*Journal)(nil)
	_ caddy.Provisioner     = (*Journal)(nil)
	_ caddyfile.Unmarshaler = (*Journal)(nil)
)
