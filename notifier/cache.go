package notifier

import (
	"container/list"
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// operators holds the destinations of the configurations that are loaded, so
// that two of them, before and after a reload, share what they both have.
type operators struct {
	mu    sync.Mutex
	by    map[destinationKey]*sharedDestination
	ofURL map[*Destination]destinationKey
}

type destinationKey struct{ guard, text string }

type sharedDestination struct {
	d    *Destination
	uses int
}

// acquire gives the destination of a URL, which has one more use then.
func (o *operators) acquire(text string, guard *egress.Policy) (*Destination, error) {
	key := destinationKey{guard.Key(), text}
	if d := o.use(key, nil); d != nil {
		return d, nil
	}
	d, err := Parse(text, guard)
	if err != nil {
		return nil, err
	}
	return o.use(key, d), nil
}

// use takes a use of the destination that is there, or else of the fresh one.
func (o *operators) use(key destinationKey, fresh *Destination) *Destination {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.by[key]
	if s == nil {
		if fresh == nil {
			return nil
		}
		if o.by == nil {
			o.by, o.ofURL = map[destinationKey]*sharedDestination{}, map[*Destination]destinationKey{}
		}
		s = &sharedDestination{d: fresh}
		o.by[key], o.ofURL[fresh] = s, key
	}
	s.uses++
	return s.d
}

// release gives back a use, and closes the destination with the last.
func (o *operators) release(d *Destination) {
	o.mu.Lock()
	key, known := o.ofURL[d]
	last := false
	if known {
		s := o.by[key]
		s.uses--
		if last = s.uses == 0; last {
			delete(o.by, key)
			delete(o.ofURL, d)
		}
	}
	o.mu.Unlock()
	if last {
		d.Close()
	}
}

// clear forgets and closes all destinations.
func (o *operators) clear() {
	o.mu.Lock()
	all := o.ofURL
	o.by, o.ofURL = nil, nil
	o.mu.Unlock()
	for d := range all {
		d.Close()
	}
}

// What is remembered of clients' URLs. Longer ones are rare, and a destination
// takes several times as much memory as its URL.
const (
	maxRemembered  = 1000
	maxRememberURL = 1 << 10 // bytes of each
)

// clients remembers the destinations that clients used last, of those
// services that keep nothing between messages.
type clients struct {
	mu    sync.Mutex
	by    map[destinationKey]*list.Element
	order list.List // of rememberedDestination, the last used in front
}

type rememberedDestination struct {
	key destinationKey
	d   *Destination
}

func (c *clients) get(text string, guard *egress.Policy) (*Destination, error) {
	key := destinationKey{guard.Key(), text}
	if d := c.remembered(key); d != nil {
		return d, nil
	}
	d, err := Parse(text, guard)
	if err == nil && !d.entry.hasState && len(text) <= maxRememberURL {
		c.remember(key, d)
	}
	return d, err
}

func (c *clients) remembered(key destinationKey) *Destination {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.by[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(rememberedDestination).d
}

func (c *clients) remember(key destinationKey, d *Destination) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by[key] != nil {
		return // somebody was faster
	}
	if c.by == nil {
		c.by = map[destinationKey]*list.Element{}
	}
	c.by[key] = c.order.PushFront(rememberedDestination{key, d})
	if c.order.Len() > maxRemembered {
		delete(c.by, c.order.Remove(c.order.Back()).(rememberedDestination).key)
	}
}
