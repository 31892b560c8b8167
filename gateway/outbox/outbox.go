package outbox

import (
	"context"
	"crypto/sha256"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/internal/loglimit"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Outbox stores what cannot be sent now, and delivers it later. It outlives configurations.
type Outbox struct {
	NoTurn
	NoRecheck
	NoForget

	Queue      *queue.Queue
	Dispatcher *dispatch.Dispatcher // makes the deliveries, of all configurations
	LogName    string               // without a password
	Secret     [sha256.Size]byte
	Store      *bolt.Store // nil if it is shared
	Shared     bool        // other gateways can use the store
	KeyFile    string      // of the store, unless the configuration has a secret
	Log        *zap.Logger
	slow       slowDestinations
	usages     usageSet
	givenUp    givenUpMemory
	room       room
	crowd      crowd

	cancelling cancellations

	OpenAlerts *dispatch.OpenAlerts // of keys that use the queue; see [Outbox.NewOpenAlerts]

	undecided undecidedSends
	Policy    Policy
	unstored  loglimit.Limiter // messages that were sent without the queue, because it was full

	Failures *FailureLog     // of deliveries that are tried again
	dead     loglimit.Budget // of lines about deliveries that were given up
	writes   storeCheck

	current atomic.Pointer[Configuration]
}

// Use lets a configuration make the deliveries from now on.
func (q *Outbox) Use(conf *Configuration) { q.current.Store(conf) }

// Current returns the configuration that was started last. Only what begins something calls it,
// once: a request, an attempt, a look at what is due. It hands the configuration down.
func (q *Outbox) Current() *Configuration { return q.current.Load() }

// Policy is what the packages above have to do with a message that is stored. None of its
// functions is nil.
type Policy struct {
	// Plan returns what rules decide about a message, or nil if they decide nothing. asked
	// means that a message came in from outside, which silences may keep.
	Plan func(d *dispatch.Delivery, asked bool) *Plan

	// Before is called before an attempt. It returns the incident whose link the message
	// shows, or nil. An outcome that is not nil takes the place of the attempt.
	Before func(context.Context, *queue.Job) (*rules.Incident, *queue.Outcome)

	// Ask is called before an attempt of a question to the destination with a hash. It adds its
	// links, which begin with publicURL, to the message. An outcome that is not nil takes the place
	// of the attempt.
	Ask func(ctx context.Context, j *queue.Job, m *notifier.Message, target, publicURL string) *queue.Outcome

	// Later is called for a message that is planned, once it is due and could not be sent: its
	// key or its destinations were gone. It returns the outcome.
	Later func(ctx context.Context, conf *Configuration, m *queue.Message, j *queue.Job) *queue.Outcome

	// Hurry makes a planned message due now. It returns how many deliveries that are.
	Hurry func(ctx context.Context, id uuid.UUID) (int, error)

	// Cancelled is called when deliveries of a message were cancelled.
	Cancelled func(ctx context.Context, id uuid.UUID)

	// Callback returns the destination that is told the outcome of the question with an ID,
	// under a policy.
	Callback func(ctx context.Context, id string, policy *egress.Policy) (*notifier.Destination, error)

	// MakeRoom removes what is dispensable from a queue that was full at a time, and reports
	// whether it has removed something. Trim does so with what does not take long.
	MakeRoom func(ctx context.Context, full time.Time) bool
	Trim     func(ctx context.Context) bool

	// Keep adds the message to the inbox of its key, when the entry is stored. stored is
	// called after that; it is nil if the key has none.
	Keep func(*Draft) (stored func())
}

// Plan is what rules decide about one message.
type Plan struct {
	Decide func(*Draft)             // is called before the message is stored, and adds what they decide to an entry
	Stored func(*dispatch.Delivery) // is called when the entry is stored

	// Tells reports whether a message has to be told at once that cannot be stored, because
	// the queue is full.
	Tells func(context.Context) bool

	// Silent returns which of its targets a silence keeps a message from that cannot be
	// stored. It reads no record.
	Silent func() []bool
}
