package services

import (
	"context"
	"errors"
	"sync"
)

// mailtoConnections is how many connections to a server there are at a time;
// providers refuse many.
const mailtoConnections = 4

// mailtoPool is the connections to one server. A mail gets the one, of those
// that are free, that was used last.
type mailtoPool struct {
	conns [mailtoConnections]kept[*mailtoConn]
	room  chan struct{}

	mu   sync.Mutex
	free []*kept[*mailtoConn] // the one that was used last at the end
}

func (p *mailtoPool) init() {
	p.room = make(chan struct{}, mailtoConnections)
	for i := range p.conns {
		p.free = append(p.free, &p.conns[i])
	}
}

// with runs use on a connection, as that of kept does.
func (p *mailtoPool) with(ctx context.Context, open func(context.Context) (*mailtoConn, error), use func(context.Context, *mailtoConn) error) error {
	select {
	case p.room <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.room }()
	k := p.take()
	defer p.put(k)
	return k.with(ctx, idleTime, open, use)
}

func (p *mailtoPool) take() *kept[*mailtoConn] {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	k := p.free[last]
	p.free = p.free[:last]
	return k
}

func (p *mailtoPool) put(k *kept[*mailtoConn]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, k)
}

// Close ends the connections, each when it is idle.
func (m *mailto) Close() error {
	var errs []error
	for i := range m.pool.conns {
		errs = append(errs, m.pool.conns[i].Close())
	}
	return errors.Join(errs...)
}
