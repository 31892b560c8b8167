package notifier

import "context"

// computeSlots limit the calls of [Client.Compute] under way in a process: one
// for clients and one for the operator, so that clients cannot take the
// operator's.
type computeSlots struct{ client, operator slots }

func newComputeSlots() computeSlots { return computeSlots{make(slots, 1), make(slots, 1)} }

// Compute runs f, a long computation, such as one with a key of the URL. One
// such call runs at a time for all URLs of clients, and one for all URLs of the
// operator. Compute waits for its turn until ctx ends, and then returns the
// cause without a call of f. It returns when f has returned, also if ctx has
// ended meanwhile. The caller limits the work of f beforehand, and f must not
// use the network.
func (c *Client) Compute(ctx context.Context, f func() error) error {
	if c.compute != nil {
		slots := c.compute.operator
		if c.ForClient() {
			slots = c.compute.client
		}
		if !slots.take(ctx) {
			return context.Cause(ctx)
		}
		defer func() { <-slots }()
		if ctx.Err() != nil { // take also takes a free slot when ctx has ended
			return context.Cause(ctx)
		}
	}
	return f()
}

// ForClient reports whether the URL is a client's. The operator's URLs have no
// egress policy.
func (c *Client) ForClient() bool { return c.policy() != nil }
