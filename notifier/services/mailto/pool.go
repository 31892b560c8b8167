package mailto

import (
	"context"
	"errors"
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// maxConnections is the maximum number of open connections to a server, because
// providers refuse many.
const maxConnections = 4

// pool is the connections to one server. A mail gets the free connection that
// was used last.
type pool struct {
	conns [maxConnections]wire.Persistent[*connection]
	slots chan struct{} // holds a value for each connection in use

	mu   sync.Mutex
	free []*wire.Persistent[*connection] // last used at the end
}

func newPool() *pool {
	p := &pool{slots: make(chan struct{}, maxConnections)}
	for i := range p.conns {
		p.free = append(p.free, &p.conns[i])
	}
	return p
}

// connections returns the pool of m.
func (m *service) connections() *pool {
	if m.pool.Load() == nil {
		m.pool.CompareAndSwap(nil, newPool())
	}
	return m.pool.Load()
}

// do calls use with a connection, see [wire.Persistent.Do].
func (p *pool) do(
	ctx context.Context, open func(context.Context) (*connection, error),
	use func(context.Context, *connection) error,
) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.slots }()
	k := p.take()
	defer p.put(k)
	return k.Do(ctx, wire.IdleTimeout, open, use)
}

func (p *pool) take() *wire.Persistent[*connection] {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	k := p.free[last]
	p.free = p.free[:last]
	return k
}

func (p *pool) put(k *wire.Persistent[*connection]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, k)
}

// Close closes the connections, each when no mail uses it.
func (m *service) Close() error {
	var errs []error
	p := m.connections()
	for i := range p.conns {
		errs = append(errs, p.conns[i].Close())
	}
	return errors.Join(errs...)
}
