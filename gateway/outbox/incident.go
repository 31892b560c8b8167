package outbox

import (
	"context"
	"slices"
	"sync"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// setIncident sets what the queue needs to keep the order of an incident.
func setIncident(d *dispatch.Delivery, j *queue.Job) {
	if j.Incident = d.IncidentOf(); j.Incident == "" {
		return
	}
	state := dispatch.StateOf(d.Message)
	j.NewState = state == notifier.Open || state == notifier.Resolved
	j.Note = queued.Note(state, d.Message.Time, false)
}

// undecidedSends are the messages of incidents that may be sent without being
// stored. Of an incident, they are in the order in which they came. The zero value
// is ready for use.
type undecidedSends struct {
	mu  sync.Mutex
	all map[string][]*submission
}

// add adds a message and returns those before it.
func (u *undecidedSends) add(incident string, s *submission) (before []*submission) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = map[string][]*submission{}
	}
	before = slices.Clone(u.all[incident])
	u.all[incident] = append(u.all[incident], s)
	return before
}

func (u *undecidedSends) remove(incident string, s *submission) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if rest := slices.DeleteFunc(u.all[incident], func(x *submission) bool { return x == s }); len(rest) > 0 {
		u.all[incident] = rest
	} else {
		delete(u.all, incident)
	}
}

// takeTurn reports whether the message can be sent without being stored: it has no incident,
// nothing of the incident is in the queue, or the store cannot tell. Messages of the
// incident that are being sent are stored, so that the queue knows the order. Where several
// gateways share the queue, takeTurn reports false for an incident.
func (s *submission) takeTurn(ctx context.Context) bool {
	incident := s.d.IncidentOf()
	if incident == "" {
		return true
	}
	if s.q.Store == nil {
		return false
	}
	for _, before := range s.q.undecided.add(incident, s) {
		before.storeNow(ctx)
	}
	destinations := make([]string, len(s.d.To.Targets))
	for i := range destinations {
		destinations[i] = site.DestinationName(s.d.To.Targets[i], s.d.To.Limits)
	}
	idle, err := s.q.Queue.Idle(ctx, incident, destinations...)
	if err != nil {
		s.mu.Lock()
		s.bypasses = true
		s.mu.Unlock()
	}
	return idle || err != nil
}

// storeNow stores the message, unless that is decided already, and waits until it is
// stored or known not to be.
func (s *submission) storeNow(ctx context.Context) {
	if s.decideToStore() {
		s.store(ctx)
	}
	s.decided.Wait()
}
