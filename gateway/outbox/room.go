package outbox

import (
	"context"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Room is what keeps records in an open queue: a package below gateway/ that looks after kinds of its
// own. Package gateway has the list of all rooms, and calls them for the queue. A room that has
// nothing to do on an occasion says so: it embeds one of the types below.
type Room interface {
	// Kinds returns the kinds of its records. No other room has them.
	Kinds() []*Kind

	// Arm begins to wait for what may be due. It is called when the queue is opened, when a
	// configuration takes over, and after a jump of the clock; after an error, again.
	Arm(ctx context.Context, conf *Configuration) error

	// Refresh reads what the room remembers and other gateways may have changed, and does what
	// nothing else begins. It is called each second.
	Refresh(ctx context.Context, conf *Configuration)

	// Punctual returns what reports whether something may be due that cannot wait for half a
	// minute; nil if nothing ever is. It is called each second, and reads no record.
	Punctual(conf *Configuration) func() bool

	// Due does what is due in a record of one of its kinds. After an error it is called again later;
	// [queue.ErrUnknown] leaves the record to a gateway that can read it. crowded means that there
	// are too many records: then it removes the record if that is dispensable.
	Due(ctx context.Context, conf *Configuration, name queue.Hash, record []byte, crowded bool) error

	// Ahead reports whether a record was written when the clock was ahead. It is due then, and
	// Due counts its time from now.
	Ahead(record []byte, now time.Time) bool

	// Turn returns the turn of a record that is due, among those of its kind. Due is called for one
	// record of a turn after the other. See [Spread].
	Turn(name queue.Hash, record []byte) string

	// Ended returns what changes when a job ends, or nil. Its Decide reads the final status.
	Ended(conf *Configuration, j *queue.Job) *queue.Ruled

	// Recheck looks at the jobs that the room holds, after the occasions of Arm, and returns those
	// of others. What the record of a job has lost is made again, or the job is released.
	Recheck(ctx context.Context, conf *Configuration, held []queue.Job) (others []queue.Job)

	// Forget removes what is kept of a key that was deleted, before its time ends. by is the user
	// who has deleted it; "" if nobody is known. No other key gets what is left: a key that is moved
	// keeps its place, and one that is saved again has another one.
	Forget(ctx context.Context, conf *Configuration, of site.Place, by string) error
}

// What a room embeds that has nothing to do on an occasion, by the method of [Room].
type (
	NoArm      struct{} // what is due is known by its time alone
	NoRefresh  struct{} // nothing is remembered that others can change
	NoPunctual struct{} // half a minute does not matter
	NoAhead    struct{} // no time was counted by the clock, or none matters
	NoTurn     struct{} // the records do not depend on one another
	NoEnded    struct{} // no record depends on jobs
	NoRecheck  struct{} // no jobs are held
	NoForget   struct{} // what is left ends by its time
)

func (NoArm) Arm(context.Context, *Configuration) error                           { return nil }
func (NoRefresh) Refresh(context.Context, *Configuration)                         {}
func (NoPunctual) Punctual(*Configuration) func() bool                            { return nil }
func (NoAhead) Ahead([]byte, time.Time) bool                                      { return false }
func (NoTurn) Turn(name queue.Hash, _ []byte) string                              { return Spread(name, "") }
func (NoEnded) Ended(*Configuration, *queue.Job) *queue.Ruled                     { return nil }
func (NoForget) Forget(context.Context, *Configuration, site.Place, string) error { return nil }

func (NoRecheck) Recheck(_ context.Context, _ *Configuration, held []queue.Job) []queue.Job {
	return held
}

// Always is the [Room.Punctual] of a room that always has something to do in time.
func Always() bool { return true }

// spread is the number of turns that the records of one key have.
const spread = 4

// Spread returns the turn of a record of the key with a place: one of several, because the records
// of the key do not depend on one another, and so several of them are worked on at once.
func Spread(name queue.Hash, place string) string { return place + string('0'+name[0]%spread) }
