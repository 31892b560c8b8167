package caddyhttp

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// queuedChains are the chains of a message (see [notifier.TagExpr.Select]). The
// queue stores them as the summary of the message, so that it tries the numbers
// in their order, after a crash and when all numbers have failed.
type queuedChains struct {
	// Chains has the indexes of the jobs of each chain, by number, the lowest
	// number first. Chains of one number are left out.
	Chains [][][]int `json:"chains,omitempty"`

	// Optional has the indexes of the jobs in chains whose failure does not
	// count.
	Optional []int `json:"optional,omitempty"`
}

// chains returns the chains of a message as its summary, or nil if it has none.
func (d *delivery) chains() []byte {
	if !notifier.Chained(d.to.Targets) {
		return nil
	}
	var c queuedChains
	positions := d.to.Positions()
	for _, numbers := range notifier.Chains(d.to.Targets) {
		if len(numbers) == 1 {
			continue
		}
		for _, group := range numbers {
			for k, i := range group {
				group[k] = positions[i]
				if d.to.Targets[i].Optional() {
					c.Optional = append(c.Optional, positions[i])
				}
			}
		}
		c.Chains = append(c.Chains, numbers)
	}
	if c.Chains == nil {
		return nil
	}
	return mustJSON(c)
}

// readChains returns the chains of a stored message. A message that is damaged,
// or of a version that did not store chains, has none.
func readChains(e *queue.Entry) (c queuedChains) {
	if len(e.Message.Summary) == 0 || json.Unmarshal(e.Message.Summary, &c) != nil {
		return queuedChains{}
	}
	for _, chain := range c.Chains {
		for _, group := range chain {
			if len(group) == 0 || slices.Min(group) < 0 || slices.Max(group) >= len(e.Jobs) {
				return queuedChains{}
			}
		}
	}
	return c
}

// chainOf returns the chain of a job, and the index of the number of the job in
// it. A job without a chain has a nil chain.
func (c *queuedChains) chainOf(job int) (chain [][]int, number int) {
	for _, chain := range c.Chains {
		for n, group := range chain {
			if slices.Contains(group, job) {
				return chain, n
			}
		}
	}
	return nil, 0
}

// complete reports whether all destinations of a number have the message, so
// that its chain ends.
func (c *queuedChains) complete(jobs []queue.Job, group []int) bool {
	return !slices.ContainsFunc(group, func(i int) bool {
		j := &jobs[i]
		tried := !j.Status.Waits() || j.Attempts > 0
		return j.Status != queue.Delivered && !(tried && slices.Contains(c.Optional, i))
	})
}

// anyComplete reports whether all destinations of some number of a chain have
// the message.
func (c *queuedChains) anyComplete(jobs []queue.Job, chain [][]int) bool {
	return slices.ContainsFunc(chain, func(group []int) bool { return c.complete(jobs, group) })
}

// setOptional marks the failed results of a chain as optional if a number of
// the chain has the message.
func (c *queuedChains) setOptional(jobs []queue.Job, results []api.QueuedResult) {
	for _, chain := range c.Chains {
		if !c.anyComplete(jobs, chain) {
			continue
		}
		for _, i := range slices.Concat(chain...) {
			results[i].Optional = results[i].Optional || results[i].Status == notifier.Failed
		}
	}
}

// chainTurn describes whether a job of a chain can be attempted now.
type chainTurn struct {
	// outcome is the outcome of the job without an attempt, or nil if the attempt
	// can be made.
	outcome *queue.Outcome

	// laterDecides reports whether a later number still waits. If that one fails
	// as well, its failure is reported instead of this one.
	laterDecides bool
}

// postponeChain is how long a delivery is postponed while lower numbers of its
// chain are to be tried.
const postponeChain = 2 * time.Second

// turn returns whether the job can be attempted: no number of its chain has the
// message, and no lower number is to be tried before it.
func (q *openQueue) turn(ctx context.Context, m *queue.Message, j *queue.Job) (turn chainTurn) {
	if len(m.Summary) == 0 {
		return turn
	}
	e, err := q.Get(ctx, m.ID)
	if err != nil {
		turn.outcome = &queue.Outcome{Postponed: true, RetryAfter: postponeChain}
		return turn
	}
	c := readChains(e)
	chain, number := c.chainOf(j.Index)
	if c.anyComplete(e.Jobs, chain) {
		turn.outcome = notNeeded(j)
		return turn
	}
	now := time.Now()
	for _, i := range slices.Concat(chain[:number]...) {
		if lower := &e.Jobs[i]; goesBefore(lower, j, now) {
			turn.outcome = &queue.Outcome{Postponed: true, RetryAfter: postponeChain}
			return turn
		}
	}
	for _, i := range slices.Concat(chain[number+1:]...) {
		turn.laterDecides = turn.laterDecides || e.Jobs[i].Status.Waits()
	}
	return turn
}

// goesBefore reports whether lower, a job with a lower number, is attempted
// before j. After the first attempts, j does not wait for an attempt that is
// due later.
func goesBefore(lower, j *queue.Job, now time.Time) bool {
	if !lower.Status.Waits() || lower.Attempts > j.Attempts {
		return false
	}
	return lower.Attempts == 0 || lower.Status == queue.Sending || !lower.Due.After(now)
}

// notNeeded returns the outcome of a job whose message another number of the
// chain has.
func notNeeded(j *queue.Job) *queue.Outcome {
	r := jobResult(j).Result
	if j.Attempts == 0 {
		r.Status, r.Error = notifier.Skipped, nil
		return &queue.Outcome{Status: queue.Delivered, Result: mustJSON(r)}
	}
	r.Status, r.Optional = notifier.Failed, true
	return &queue.Outcome{Status: queue.Failed, Result: mustJSON(r)}
}
