package dispatch

import (
	"slices"

	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// A message that escalates has a job for each destination with a number and each round.
// The first step is sent at once. The other jobs are held, and the record of the incident
// knows which step each belongs to.

// setSteps makes the numbers of the targets steps, which are not chains.
func (d *Delivery) setSteps() {
	to := *d.To
	to.Targets = slices.Clone(to.Targets)
	d.Steps = make([]int, len(to.Targets))
	for i := range to.Targets {
		t := &to.Targets[i]
		if d.Steps[i] = t.Number; t.Number == 0 {
			d.Steps[i] = rules.StepOf(t.Tags)
		}
		if !d.Rules.For(t.Tags).IsStep() {
			d.Steps[i] = 0
		}
		t.Chain, t.Number = "", 0
	}
	d.To = &to
}
