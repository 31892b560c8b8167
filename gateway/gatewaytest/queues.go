package gatewaytest

import (
	"sync"

	"github.com/caddy-notify/caddy-notify/gateway"
)

// openQueues are the open queues of a process by name. Gateways of one process with the same queue
// share it, so that one can replace another as in a reload: the next one starts before the first
// one stops.
type openQueues struct {
	mu     sync.Mutex
	byName map[string]*sharedQueue
}

type sharedQueue struct {
	rooms    *gateway.Rooms
	gateways int // gateways that use it
}

// use returns the queue with a name. It calls open if the queue is not open yet.
func (q *openQueues) use(name string, open func() (*gateway.Rooms, error)) (rooms *gateway.Rooms, opened bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s := q.byName[name]; s != nil {
		s.gateways++
		return s.rooms, false, nil
	}
	if rooms, err = open(); err != nil {
		return nil, false, err
	}
	if q.byName == nil {
		q.byName = map[string]*sharedQueue{}
	}
	q.byName[name] = &sharedQueue{rooms, 1}
	return rooms, true, nil
}

// leave ends a gateway's use of a queue. The last one closes the queue.
func (q *openQueues) leave(name string) error {
	q.mu.Lock()
	s := q.byName[name]
	s.gateways--
	last := s.gateways == 0
	if last {
		delete(q.byName, name)
	}
	q.mu.Unlock()
	if !last {
		return nil
	}
	return s.rooms.Destruct()
}
