package rulestest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Finish ends all outages and silences and, if the gateway can be reloaded, the rules that
// hold messages half of the times. It waits until nothing is under way, at most for a
// time, and returns what is wrong.
func (m *Model) Finish(most time.Duration) (problems []string) {
	m.mu.Lock()
	m.killNext = 0
	for _, t := range m.targets {
		t.down = false
	}
	m.mu.Unlock()
	m.revive()
	for len(m.silences) > 0 {
		if err := m.endSilence(0); err != nil {
			return []string{err.Error()}
		}
	}
	if m.Gateway.Restart != nil && (m.Beats || m.Rand.IntN(2) == 0) {
		m.noRules()
		m.ruleless = m.Now()
		m.logf("reload: %s", m.rules)
		m.Gateway.Restart(Reloaded)
	}
	if m.Ruler {
		m.fires = nil
		if err := m.postAlerts(); err != nil {
			return []string{err.Error()}
		}
	}
	m.logf("the end begins")
	pause := most / 1000 // mostly, little is under way
	for end := m.Now().Add(most); ; pause = min(2*pause, most/20) {
		m.Wait(pause)
		waiting, err := m.readResults()
		if err != nil {
			return []string{err.Error()}
		}
		if len(waiting) == 0 {
			break
		}
		if m.Now().After(end) {
			return []string{fmt.Sprintf("still waiting at the end: %v", waiting)}
		}
	}
	for end := m.Now().Add(most); m.missedDigest() && !m.Now().After(end); { // its lines are final before it has arrived
		m.Wait(pause)
	}
	m.Wait(10 * m.Unit) // a message of the gateway may follow
	if m.Beats {
		m.Wait(2 * (beatEvery + 3*beatGrace) * m.Unit)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &check{Model: m}
	c.results()
	for i, t := range m.targets {
		c.order(i, t)
		c.steps(i, t)
		for _, incident := range []string{"inc0", "inc1", "inc2"} {
			c.end(i, t, incident)
			c.silent(i, t, incident)
		}
	}
	c.beatsTold(m.targets[0])
	c.ruledTold(m.targets[0])
	return c.problems
}

// missedDigest reports whether a destination has refused a digest that has not come again.
func (m *Model) missedDigest() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.targets, func(t *target) bool {
		missed := map[told]bool{}
		for _, a := range t.got {
			for _, x := range a.tells {
				if a.taken {
					delete(missed, x)
				} else if x.digest {
					missed[x] = true
				}
			}
		}
		return len(missed) > 0
	})
}

// readResults reads the resources of all messages that are not final, and returns the
// numbers of those.
func (m *Model) readResults() (waiting []int, err error) {
	for _, p := range m.posts {
		if p.id == "" || p.results != nil || p.unknown {
			continue
		}
		status, body, _ := m.request(http.MethodGet, "/notify/messages/"+p.id, nil)
		var a struct {
			State   string
			Results []result
		}
		if status == http.StatusNotFound && m.Gateway.Restart == nil {
			p.unknown = true // see lost
			continue
		}
		if err := json.Unmarshal(body, &a); err != nil || status != http.StatusOK {
			return nil, fmt.Errorf("the resource of m%d: status %d: %s", p.number, status, body)
		}
		if a.State == "queued" {
			waiting = append(waiting, p.number)
			continue
		}
		p.results = a.Results
	}
	return waiting, nil
}

// check compares what has happened with the promises.
type check struct {
	*Model
	problems []string
}

func (c *check) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// of returns what a destination was told of an incident, in order. attempts reports
// whether to include what it did not take.
func (c *check) of(t *target, incident string, attempts bool) (out []told) {
	for _, a := range t.got {
		if !a.taken && !attempts {
			continue
		}
		for _, x := range a.tells {
			if c.posts[x.number-1].incident == incident && c.posts[x.number-1].tellsState() {
				out = append(out, x)
			}
		}
	}
	return out
}

// opens reports whether the state that is told is one of a problem.
func (c *check) opens(x told) bool {
	return !x.resolved && c.posts[x.number-1].typ != "success"
}

// results checks that each message is told, or that its resource says why it is not.
func (c *check) results() {
	byID := map[string]*post{}
	for _, p := range c.posts {
		byID[p.id] = p
	}
	for _, p := range c.posts {
		if p.unknown {
			c.lost(p)
		}
		c.notBefore(p)
		for i, r := range p.results {
			if i >= len(c.targets) {
				break // another round
			}
			where := fmt.Sprintf("m%d at %d is %+v", p.number, i, r)
			arrived := slices.ContainsFunc(c.targets[i].got, func(a arrival) bool {
				return a.taken && slices.ContainsFunc(a.tells, func(x told) bool { return x.number == p.number && !x.resolved })
			})
			switch r.Status {
			case "delivered":
				if p.incident != "" && !arrived {
					c.problem("%s, but did not arrive", where)
				}
			case "failed":
			case "skipped":
				switch r.Rule {
				case "suppressed", "superseded", "digested":
					resolved := p.escalated && c.targets[i].step != 0 // when an attempt was due
					if r.By == "" && !resolved {
						c.problem("%s: nobody tells it", where)
					}
				case "held": // it resolves what nobody was told of; see end
					if p.typ != "success" || r.By == "" {
						c.problem("%s, and resolves nothing that was held", where)
					}
				case "silenced", "acknowledged", "escalating":
				default:
					if !p.cancelled {
						c.problem("%s, without a reason", where)
					}
				}
			case "cancelled":
				if !p.cancelled {
					c.problem("%s, but was not cancelled", where)
				}
			default:
				c.problem("%s: not final", where)
			}
			c.chain(p, i, byID)
		}
	}
}

// notBefore checks that a planned message is not told before its time, and not at all if it
// was cancelled before that.
func (c *check) notBefore(p *post) {
	if p.planned.IsZero() {
		return
	}
	for i, t := range c.targets {
		for _, a := range t.got {
			if !slices.ContainsFunc(a.tells, func(x told) bool { return x.number == p.number }) {
				continue
			}
			if a.at.Before(p.planned.Add(-c.Slack)) {
				c.problem("m%d was told %d at %s, before it was due", p.number, i, a.at.UTC().Format(time.TimeOnly))
			}
			if p.unsent {
				c.problem("m%d was told %d, although it was cancelled", p.number, i)
			}
		}
	}
}

// ruledTold checks that who was told of alerts of the ruler is told that they are over.
func (c *check) ruledTold(t *target) {
	last := ""
	for _, a := range t.got {
		if a.ruled != "" && a.taken {
			last = a.ruled
		}
	}
	if last == "open" {
		c.problem("told last of the ruler that its alerts are open, and they are over")
	}
}

// lost checks that a message has arrived that no rule concerns, and whose results were
// lost.
func (c *check) lost(p *post) {
	for i, t := range c.targets {
		if !slices.ContainsFunc(t.got, func(a arrival) bool { return a.taken && a.title == p.title }) {
			c.problem("m%d is lost for %d", p.number, i)
		}
	}
}

// chain follows a message to the one that tells it.
func (c *check) chain(p *post, i int, byID map[string]*post) {
	at := p
	for range len(c.posts) + 1 {
		r := at.results[i]
		if r.Status != "skipped" || r.By == "" || r.Rule == "silenced" || r.Rule == "held" {
			return
		}
		next := byID[r.By]
		if next == nil || next.results == nil || i >= len(next.results) {
			return // a digest, or a message of the gateway
		}
		if next.number == at.number {
			c.problem("m%d at %d tells itself", p.number, i)
			return
		}
		at = next
	}
	c.problem("m%d at %d is told by messages in a circle", p.number, i)
}

// order checks that no state is told after a newer one, and how often each is told.
func (c *check) order(i int, t *target) {
	for _, incident := range []string{"inc0", "inc1", "inc2"} {
		var last told
		for _, x := range c.of(t, incident, false) {
			if x.before(last) && !c.paged(t, x, last) {
				c.problem("destination %d was told m%d of %s after m%d", i, x.number, incident, last.number)
			}
			last = x
		}
	}
	times := map[told]int{}
	for _, a := range t.got {
		for _, x := range a.tells {
			if t.step == 0 && a.taken && !a.killed && !x.again {
				times[x]++
			}
		}
	}
	for x, n := range times {
		if n > 1 && c.Gateway.Snapshot != nil { // otherwise it is not known what was under way
			c.problem("destination %d was told m%d %d times", i, x.number, n)
		}
	}
}

// paged reports whether a destination may be told x, a line of a digest, after last: a step
// did not wait for the digest, which was under way.
func (c *check) paged(t *target, x, last told) bool {
	return t.step != 0 && x.digest && slices.ContainsFunc(c.posts[x.number:last.number], func(p *post) bool {
		return p.escalated && p.incident == c.posts[x.number-1].incident
	})
}

// end checks that what was told last is the present state.
func (c *check) end(i int, t *target, incident string) {
	present := c.present(incident)
	if present == nil {
		return
	}
	told := c.of(t, incident, false)
	cancelled := slices.ContainsFunc(c.posts, func(p *post) bool { return p.incident == incident && p.cancelled })
	r := result{}
	if i < len(present.results) {
		r = present.results[i]
	}
	if cancelled || r.Status == "failed" {
		return
	}
	switch {
	case !present.isOpen():
		if n := len(told); n > 0 && c.opens(told[n-1]) {
			c.problem("destination %d was told m%d of %s, and not that it is resolved by m%d", i, told[n-1].number, incident, present.number)
		}
	case c.Escalates && t.step != 0: // see steps
	case len(told) == 0:
		c.problem("destination %d does not know that %s is open since m%d", i, incident, present.number)
	default:
		last := told[len(told)-1]
		if !c.opens(last) || c.posts[last.number-1].typ != present.typ {
			c.problem("destination %d was told m%d of %s last, which is not m%d", i, last.number, incident, present.number)
		}
	}
}

// silent checks that no resolution is told of an incident that silences have kept from a
// destination since it began.
func (c *check) silent(i int, t *target, incident string) {
	if t.step != 0 && c.abandoned {
		return // what a silence has kept from a step is forgotten with the rule
	}
	got := c.of(t, incident, true)
	var opening []*post
	for _, p := range c.posts {
		if p.incident != incident || !p.tellsState() {
			continue
		}
		if p.id == "" {
			if p.typ == "success" { // it may have been accepted, so that the next one is of nothing known
				opening = nil
			}
			continue
		}
		if p.typ != "success" {
			opening = append(opening, p)
			if !p.closed {
				continue
			}
		}
		silenced := len(opening) > 0
		for _, o := range opening {
			silenced = silenced && i < len(o.results) && o.results[i].Status == "skipped" && o.results[i].Rule == "silenced"
		}
		if silenced && p.typ == "success" {
			knows := false
			for _, x := range got {
				if x.number < p.number {
					knows = c.opens(x)
				} else if x.number == p.number && !knows {
					c.problem("destination %d was told m%d, although all of %s before was silenced", i, p.number, incident)
				}
			}
		}
		opening = nil
	}
}

// steps checks that no step tells of an incident that somebody takes care of, and that no
// step is lost.
func (c *check) steps(i int, t *target) {
	if t.step == 0 {
		return
	}
	for _, a := range t.got {
		for _, x := range a.tells {
			p := c.posts[x.number-1]
			if !p.escalated || !c.opens(x) {
				continue
			}
			for _, y := range c.cared {
				after := a.at.After(y.from.Add(c.Slack)) && (y.until.IsZero() || a.at.Before(y.until.Add(-c.Slack)))
				if y.incident == p.name() && after && (y.last == 0 || x.number <= y.last) {
					c.problem("step %d was told m%d at %s, after somebody took care of %s at %s", t.step,
						p.number, a.at.UTC().Format(time.TimeOnly), p.name(), y.from.UTC().Format(time.TimeOnly))
				}
			}
		}
	}
}

// beatsTold checks what was told of the beat: none comes any more. Only a run that has begun
// takes too long, and one that takes too long when no rule holds messages is told.
func (c *check) beatsTold(t *target) {
	if !c.Beats {
		return
	}
	late, last := false, time.Time{} // last is when a run was told last
	for _, a := range t.got {
		if a.beat == "has not ended" {
			last = a.at
			if longest := a.at.Add(c.Slack - beatRun*c.Unit); !slices.ContainsFunc(c.runs, longest.After) {
				c.problem("told at %s that a run takes too long, and none began %s before", a.at.UTC().Format(time.TimeOnly), beatRun*c.Unit)
			}
		}
		if a.beat != "" && a.taken {
			late = a.beat != "is back" // dedupe may have left out that it is late after a run that took too long
		}
	}
	if !late {
		c.problem("not told that the beat is late, but none comes any more")
	}
	if !c.running {
		return
	}
	if began := c.runs[len(c.runs)-1]; began.Add(beatRun*c.Unit).After(c.ruleless) && last.Before(began) {
		c.problem("not told that the run takes too long that began at %s", began.UTC().Format(time.TimeOnly))
	}
}
