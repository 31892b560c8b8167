package notifier

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// Target is a destination of one message.
type Target struct {
	*Destination
	Tags []string // tags by which the destination was chosen; copied to the result

	// Targets of the same chain get the message in the order of their numbers. A
	// number is used only if a target with the number before it does not get the
	// message, and its failure does count. Chains do not wait for each other.
	Chain  string
	Number int

	// Apart means that [TagExpr.Select] gives the target a chain of its own beside other chains,
	// unless one of its tags puts it into a chain. It is for destinations that others than the
	// operator can add.
	Apart bool

	// Attempts is the number of attempts to send the message. 0 means the number
	// that the URL asks for.
	Attempts int

	// Progress is the record of earlier attempts at this message, or nil. The delivery continues
	// there and records its own progress in it. A caller that saves deliveries under way passes an
	// empty one, which it can save at any time.
	Progress *Progress

	// Missed is the part of the message's incident that the destination missed. The message reports
	// it.
	Missed Missed

	// Variable is the URL of the destination if it has variables, or nil. Values are the values of
	// the message, each after the name of its variable in lower case; nil if the destination has
	// the defaults.
	Variable *VariableURL
	Values   []string
}

// Options are the options of [Sender.Send].
type Options struct {
	// Timeout is for one destination, for all attempts together. Default: [DefaultTimeout].
	Timeout time.Duration
	// StopWithContext makes the deliveries end with the context of the caller.
	StopWithContext bool
	// Transient means that the destinations are for this message only. Services then keep no
	// session, and sign out of any that they open.
	Transient bool
	// Logger gets an entry for each delivery, an error if it failed. nil means no log.
	Logger *zap.Logger
	// Repeated, if set, means that the caller repeats temporary failures. It is called with the
	// result of each such failure of targets[i], and returns the level of its log entry. It may be
	// called concurrently.
	Repeated func(i int, r *Result) zapcore.Level
	// Held, if set, is called before each attempt. An error means that another process may
	// have taken over the message. The delivery then ends, and has failed temporarily.
	Held func() error
	// ID, if set, is added to each entry of Logger, so that all entries about a message
	// can be found.
	ID fmt.Stringer
	// Observers watch the deliveries.
	Observers []Observer
	// Memory counts the memory that the request holds. If the text is longer
	// than [memory.SmallText], as many deliveries run at once as Memory has room for
	// copies of it, but at least one. nil means no limit.
	Memory *memory.Allocation
	// Limits holds the limits of the message while it is sent. The caller has
	// called [Limits.Check]. nil means no limits.
	Limits *Limits
	// Header returns header fields to add to each HTTP request of a delivery. ctx is the context of
	// the delivery. Fields that the service sets take precedence. nil means none.
	Header func(ctx context.Context) map[string]string
}

// DefaultTimeout is the timeout of a delivery by default.
const DefaultTimeout = 30 * time.Second

// An Observer watches the deliveries of a message. Both functions may be nil.
// They are called by several goroutines at once.
type Observer struct {
	// Begin is called when the delivery to targets[i] begins, and returns the
	// context to deliver under.
	Begin func(ctx context.Context, i int, t Target) context.Context
	// End is called with the result of the delivery to targets[i], as soon as
	// it is known, and with the context of that delivery.
	End func(ctx context.Context, i int, r Result)
}
