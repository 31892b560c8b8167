package queued

import (
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Chains are the chains of a message (see [notifier.TagExpr.Select]). They are stored so that the
// queue keeps the order of the numbers after a crash, and when all numbers have failed.
type Chains struct {
	// All has the indexes of the jobs of each chain, by number, the lowest number
	// first. Chains of one number are left out.
	All [][][]int

	// Optional has the indexes of the jobs in chains whose failure does not
	// count.
	Optional []int
}

// NewChains returns the chains of a message to targets. positions has the index of the
// job of each target.
func NewChains(targets []notifier.Target, positions []int) (c Chains) {
	if !notifier.Chained(targets) {
		return c
	}
	for _, numbers := range notifier.Chains(targets) {
		if len(numbers) == 1 {
			continue
		}
		for _, group := range numbers {
			for k, i := range group {
				group[k] = positions[i]
				if targets[i].Optional() {
					c.Optional = append(c.Optional, positions[i])
				}
			}
		}
		c.All = append(c.All, numbers)
	}
	return c
}

// chainsOf returns the chains of a stored message. A damaged one has none.
func chainsOf(e *queue.Entry) Chains {
	var s Summary
	if s.Decode(e.Message.Summary) != nil {
		return Chains{}
	}
	for _, chain := range s.Chains.All {
		for _, group := range chain {
			if len(group) == 0 || slices.Min(group) < 0 || slices.Max(group) >= len(e.Jobs) {
				return Chains{}
			}
		}
	}
	return s.Chains
}

// chainOf returns the chain of a job and the index of its number in the chain. The chain is nil if
// the job has none.
func (c *Chains) chainOf(job int) (chain [][]int, number int) {
	for _, chain := range c.All {
		for n, group := range chain {
			if slices.Contains(group, job) {
				return chain, n
			}
		}
	}
	return nil, 0
}

// complete reports whether all destinations of a number have the message, which ends the chain.
func (c *Chains) complete(jobs []queue.Job, group []int) bool {
	return !slices.ContainsFunc(group, func(i int) bool {
		j := &jobs[i]
		tried := !j.Status.Waits() || j.Attempts > 0
		return j.Status != queue.Delivered && !(tried && slices.Contains(c.Optional, i))
	})
}

// anyComplete reports whether all destinations of some number of a chain have the message.
func (c *Chains) anyComplete(jobs []queue.Job, chain [][]int) bool {
	return slices.ContainsFunc(chain, func(group []int) bool { return c.complete(jobs, group) })
}

// setOptional marks the failed results of a chain as optional if a number of
// the chain has the message.
func (c *Chains) setOptional(jobs []queue.Job, results []message.QueuedResult) {
	for _, chain := range c.All {
		if !c.anyComplete(jobs, chain) {
			continue
		}
		for _, i := range slices.Concat(chain...) {
			results[i].Optional = results[i].Optional || results[i].Status == notifier.Failed
		}
	}
}

// Turn tells whether the turn of a job in its chain has come. The zero value is for a job without a
// chain, which always can.
type Turn struct {
	// Wait means that a lower number is tried first.
	Wait bool

	// Outcome is the outcome without an attempt, because another number has the message; else nil.
	Outcome *queue.Outcome

	// LaterDecides means that a later number still waits. If that fails as well, its failure is
	// reported instead of this one.
	LaterDecides bool
}

// TurnOf reports whether a job of e can be attempted: no number of its chain has the message, and
// no lower number is tried first.
func TurnOf(e *queue.Entry, j *queue.Job, now time.Time) (turn Turn) {
	c := chainsOf(e)
	chain, number := c.chainOf(j.Index)
	if chain == nil {
		return turn
	}
	if c.anyComplete(e.Jobs, chain) {
		turn.Outcome = notNeeded(j)
		return turn
	}
	for _, i := range slices.Concat(chain[:number]...) {
		if goesBefore(&e.Jobs[i], j, now) {
			turn.Wait = true
			return turn
		}
	}
	for _, i := range slices.Concat(chain[number+1:]...) {
		turn.LaterDecides = turn.LaterDecides || e.Jobs[i].Status.Waits()
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
	if lower.Status == queue.Held && lower.Rule == string(notifier.RuleSilenced) && lower.Due.After(now) {
		return false // the next number is used in place of a silenced one
	}
	return lower.Attempts == 0 || lower.Status == queue.Sending || !lower.Due.After(now)
}

// notNeeded returns the outcome of a job if another number of its chain has the message.
func notNeeded(j *queue.Job) *queue.Outcome {
	r := JobResult(j).Result
	if j.Attempts == 0 {
		r.Status, r.Error = notifier.Skipped, nil
		return &queue.Outcome{Status: queue.Delivered, Result: appendResult(nil, &r), NotSent: true}
	}
	r.Status, r.Optional = notifier.Failed, true
	return &queue.Outcome{Status: queue.Failed, Result: appendResult(nil, &r), NotSent: true}
}
