package notifier

import (
	"container/list"
	"sync"
)

// maxDestinations is how many destinations are kept for their next message.
const maxDestinations = 1000

// destinations keeps those that were used last.
type destinations struct {
	plain bool // only those of services that keep nothing themselves

	mu    sync.Mutex
	by    map[destinationKey]*list.Element
	order list.List // of *cachedDestination, the last used in front
}

type destinationKey struct{ guard, text string }

type cachedDestination struct {
	key destinationKey
	d   *Destination
}

func (c *destinations) get(text string, guard *Egress) (*Destination, error) {
	key := destinationKey{guard.Key(), text}
	c.mu.Lock()
	if e := c.by[key]; e != nil {
		c.order.MoveToFront(e)
		c.mu.Unlock()
		return e.Value.(*cachedDestination).d, nil
	}
	c.mu.Unlock()
	d, err := Parse(text, guard)
	if err != nil {
		return nil, err
	}
	if c.plain && d.kind.keeps {
		return d, nil
	}
	kept, last := c.add(key, d)
	if last != nil {
		last.Close()
	}
	return kept, nil
}

// add keeps a destination, unless somebody was faster, and gives back the one
// that had to make room for it.
func (c *destinations) add(key destinationKey, d *Destination) (kept, last *Destination) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.by[key]; e != nil {
		return e.Value.(*cachedDestination).d, nil
	}
	if c.by == nil {
		c.by = map[destinationKey]*list.Element{}
	}
	c.by[key] = c.order.PushFront(&cachedDestination{key, d})
	if c.order.Len() > maxDestinations {
		oldest := c.order.Remove(c.order.Back()).(*cachedDestination)
		delete(c.by, oldest.key)
		last = oldest.d
	}
	return d, last
}

// clear forgets and closes all destinations.
func (c *destinations) clear() {
	c.mu.Lock()
	all := c.by
	c.by = nil
	c.order.Init()
	c.mu.Unlock()
	for _, e := range all {
		e.Value.(*cachedDestination).d.Close()
	}
}
