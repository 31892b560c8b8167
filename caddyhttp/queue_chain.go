package caddyhttp

import (
	"context"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// queuedSummary is the summary of a message, which the queue stores and keeps
// with the results.
type queuedSummary struct {
	Site     string // the ID of the site that the message came to
	Incident string // the name of the incident; "" for none
	Key      string
	Source   string
	Type     notifier.Type

	// Known is what the record of the incident is named by (see [openQueue.incidentName]);
	// "" for a message to a key without rules.
	Known string

	queuedChains
}

// queuedChains are the chains of a message (see [notifier.TagExpr.Select]). They
// are stored so that the queue tries the numbers in their order, after a crash
// and when all numbers have failed.
type queuedChains struct {
	// Chains has the indexes of the jobs of each chain, by number, the lowest
	// number first. Chains of one number are left out.
	Chains [][][]int

	// Optional has the indexes of the jobs in chains whose failure does not
	// count.
	Optional []int
}

// The fields of a summary, of a chain and of a number.
const (
	summaryChain    wire.Field = 1 // one for each
	summaryOptional wire.Field = 2 // one for each job
	summarySite     wire.Field = 3
	summaryIncident wire.Field = 4
	summaryKey      wire.Field = 5
	summarySource   wire.Field = 6
	summaryType     wire.Field = 7
	summaryKnown    wire.Field = 8

	chainNumber wire.Field = 1 // one for each

	numberJob wire.Field = 1 // one for each
)

// encode is the inverse of decode.
func (c *queuedSummary) encode() (b []byte) {
	for _, numbers := range c.Chains {
		var chain []byte
		for _, jobs := range numbers {
			var number []byte
			for _, i := range jobs {
				number = wire.AppendNumberItem(number, numberJob, i)
			}
			chain = wire.AppendItem(chain, chainNumber, number)
		}
		b = wire.AppendItem(b, summaryChain, chain)
	}
	for _, i := range c.Optional {
		b = wire.AppendNumberItem(b, summaryOptional, i)
	}
	b = wire.AppendText(b, summarySite, c.Site)
	b = wire.AppendText(b, summaryIncident, c.Incident)
	b = wire.AppendText(b, summaryKey, c.Key)
	b = wire.AppendText(b, summarySource, c.Source)
	b = wire.AppendText(b, summaryType, c.Type)
	return wire.AppendText(b, summaryKnown, c.Known)
}

// decode decodes the summary of a message.
func (c *queuedSummary) decode(b []byte) error {
	r := wire.NewReader(b)
	for r.Next() {
		switch r.Field {
		case summaryChain:
			var chain [][]int
			numbers := wire.NewReader(r.Bytes())
			for numbers.Next() {
				var number []int
				jobs := wire.NewReader(numbers.Bytes())
				for jobs.Next() {
					number = append(number, jobs.Int())
				}
				if jobs.Err() != nil {
					return jobs.Err()
				}
				chain = append(chain, number)
			}
			if numbers.Err() != nil {
				return numbers.Err()
			}
			c.Chains = append(c.Chains, chain)
		case summaryOptional:
			c.Optional = append(c.Optional, r.Int())
		case summarySite:
			c.Site = r.Text()
		case summaryIncident:
			c.Incident = r.Text()
		case summaryKey:
			c.Key = r.Text()
		case summarySource:
			c.Source = r.Text()
		case summaryKnown:
			c.Known = r.Text()
		case summaryType:
			c.Type = notifier.Type(r.Text())
		}
	}
	return r.Err()
}

// summary returns the summary of a message.
func (d *delivery) summary() []byte {
	s := d.finalSummary()
	s.queuedChains = d.chains()
	s.Known = d.knownIncident()
	return s.encode()
}

// finalSummary returns the summary of a message that needs no chains, because it is
// final.
func (d *delivery) finalSummary() queuedSummary {
	return queuedSummary{Site: d.site, Incident: d.message.Incident.Name, Key: d.key, Source: d.source, Type: d.message.Type}
}

// siteOfMessage returns the ID of the site that a stored message came to. A
// damaged one came to no site of HTTP.
func siteOfMessage(m *queue.Message) string {
	var s queuedSummary
	if s.decode(m.Summary) != nil {
		return ""
	}
	return s.Site
}

// chains returns the chains of a message.
func (d *delivery) chains() (c queuedChains) {
	if !notifier.Chained(d.to.Targets) {
		return c
	}
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
	return c
}

// readChains returns the chains of a stored message. A message that is damaged
// has none.
func readChains(e *queue.Entry) queuedChains {
	var s queuedSummary
	if s.decode(e.Message.Summary) != nil {
		return queuedChains{}
	}
	for _, chain := range s.Chains {
		for _, group := range chain {
			if len(group) == 0 || slices.Min(group) < 0 || slices.Max(group) >= len(e.Jobs) {
				return queuedChains{}
			}
		}
	}
	return s.queuedChains
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
	var s queuedSummary
	if s.decode(m.Summary) != nil || s.Chains == nil {
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
	now := q.Now()
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
	if lower.Status == queue.Held && lower.Rule == string(notifier.RuleSilenced) && lower.Due.After(now) {
		return false // the next number is used in place of one that is silenced
	}
	return lower.Attempts == 0 || lower.Status == queue.Sending || !lower.Due.After(now)
}

// notNeeded returns the outcome of a job whose message another number of the
// chain has.
func notNeeded(j *queue.Job) *queue.Outcome {
	r := jobResult(j).Result
	if j.Attempts == 0 {
		r.Status, r.Error = notifier.Skipped, nil
		return &queue.Outcome{Status: queue.Delivered, Result: appendResult(nil, &r), NotSent: true}
	}
	r.Status, r.Optional = notifier.Failed, true
	return &queue.Outcome{Status: queue.Failed, Result: appendResult(nil, &r), NotSent: true}
}
