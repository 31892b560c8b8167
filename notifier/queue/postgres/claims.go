package postgres

import (
	"sync"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// claims are the jobs that a handle has claimed, and the messages that were read with them.
type claims struct {
	mu       sync.Mutex
	jobs     map[queue.JobID]*claim
	messages map[uuid.UUID]*loaded
}

// claim is a job that this handle has claimed.
type claim struct {
	settling bool
	turn     bool // its destination had its turn

	// tokens identify settlements that failed after the server may have
	// committed them.
	tokens []uuid.UUID
}

// loaded is a message that was read together with claimed jobs.
type loaded struct {
	head, body []byte // sealed
	jobs       int    // claimed jobs that it was read with
}

func newClaims() claims {
	return claims{jobs: map[queue.JobID]*claim{}, messages: map[uuid.UUID]*loaded{}}
}

// hold adds the jobs of an entry that are Sending.
func (c *claims) hold(e *queue.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range e.Jobs {
		if e.Jobs[i].Status == queue.Sending {
			c.add(queue.JobID{Message: e.Message.ID, Index: i})
		}
	}
}

// take adds a job. head and body are of its message; body is nil if it was not read.
func (c *claims) take(id queue.JobID, turn bool, head, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(id).turn = turn
	if body == nil {
		return
	}
	m := c.messages[id.Message]
	if m == nil {
		m = &loaded{head: head, body: body}
		c.messages[id.Message] = m
	}
	m.jobs++
}

// add adds a job. The caller holds the lock.
func (c *claims) add(id queue.JobID) *claim {
	// The job can be claimed already: a call queued it again, and another call
	// claimed it before the first one recorded that.
	c.remove(id, c.jobs[id])
	c.jobs[id] = &claim{}
	return c.jobs[id]
}

// remove removes a job, unless it has been claimed again since. The caller holds the lock.
func (c *claims) remove(id queue.JobID, old *claim) {
	if old == nil || c.jobs[id] != old {
		return
	}
	delete(c.jobs, id)
	if m := c.messages[id.Message]; m != nil {
		if m.jobs--; m.jobs <= 0 {
			delete(c.messages, id.Message)
		}
	}
}

// settle begins the settlement of a job and returns its claim, or nil if the job is not claimed or
// is being settled. [claims.settled] ends the settlement.
func (c *claims) settle(id queue.JobID) *claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.jobs[id]
	if old == nil || old.settling {
		return nil
	}
	old.settling = true
	return old
}

// settled ends a settlement. over means that the job is not claimed any more.
func (c *claims) settled(id queue.JobID, old *claim, tokens []uuid.UUID, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old.settling, old.tokens = false, tokens
	if over {
		c.remove(id, old)
	}
}

// has reports whether a job is claimed.
func (c *claims) has(id queue.JobID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jobs[id] != nil
}

// all returns the jobs.
func (c *claims) all() (ids []queue.JobID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.jobs {
		ids = append(ids, id)
	}
	return ids
}

// message returns a message that was read with a job, or nil.
func (c *claims) message(id uuid.UUID) (head, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.messages[id]; m != nil {
		return m.head, m.body
	}
	return nil, nil
}
