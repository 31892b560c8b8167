package ask

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Kind is the kind of the records of questions. Only open questions count for the limit. Decided
// ones are kept as long as results.
var Kind = outbox.CountedKind('Q', "open questions", 8, 100, 8*outbox.Day,
	"wait until one is answered or forgotten, or withdraw one with DELETE")

// State is the state of a question.
type State string

// The states of a question. All but Open are final.
const (
	Open      State = "open"
	Answered  State = "answered"
	Expired   State = "expired"
	Cancelled State = "cancelled" // the client has withdrawn it
)

// Question is the question of a message.
type Question struct {
	message.Ask
	ID         uuid.UUID // of the message
	Site       string    // the ID of the message's site
	Place      site.Place
	Key        string // the name of the key when it was asked
	Title      string
	Body       string // plain text
	Type       notifier.Type
	Created    time.Time
	Until      time.Time
	Escalates  bool     // it has an incident with steps
	Targets    []Target // who can answer
	Outcome    Outcome
	ToCall     bool // the callback has to be made
	ToTell     bool // those who were asked have to be told
	linkSecret [16]byte
}

// Target is a destination of a question.
type Target struct {
	Hash string
	URL  string // with its secrets masked, for clients that may send or manage
	Name string // with its tags, for everybody who has a link; "" if an earlier version has asked
}

// Outcome is how a question was decided. The zero value is the outcome of an open question.
type Outcome struct {
	State   State
	Answer  string
	By      string // as it is shown; "" if nobody is known
	Through string // the URL of the destination, with its secrets masked
	At      time.Time
}

// The errors by which callers decide.
var (
	// ErrNone is returned for a question that does not exist, or no longer does.
	ErrNone = message.Errorf(message.NotFound, "there is no such question, or it was forgotten; nothing was answered")

	// ErrNoQueue is returned for a question to a key that has no queue.
	ErrNoQueue = &message.Error{Kind: message.Invalid, Field: "ask", Err: errors.New("the field ask needs a queue, " +
		"which keeps the question; the operator can add queue to the global option notify, and the key must not have queue off")}

	// ErrNoURL is returned for a question at a site that does not know its address.
	ErrNoURL = &message.Error{Kind: message.Invalid, Field: "ask", Err: errors.New("the field ask needs public_url, " +
		"because messages get links; the operator can set it in the global option notify or in the site")}
)

// IsOpen reports whether the question can be answered.
func (x *Question) IsOpen() bool { return x.Outcome.State == Open }

// JSON returns the question as clients see it. full is for clients that may send to the key or
// manage.
func (x *Question) JSON(full bool) *message.AskState {
	out := &message.AskState{State: string(x.Outcome.State), Until: x.Until.UTC()}
	if !full || x.IsOpen() {
		return out
	}
	if o := x.Outcome; o.State == Answered || o.State == Expired && x.Default != "" {
		out.Answer = &o.Answer
	}
	at := x.Outcome.At.UTC()
	out.By, out.Through, out.At = x.Outcome.By, x.Outcome.Through, &at
	return out
}

// GuestJSON returns the question for a client that only has a link to it. It leaves out the
// destination through which it was answered.
func (x *Question) GuestJSON() *message.AskState {
	out := x.JSON(true)
	out.Through = ""
	return out
}

// Message returns the message of the question as clients see it when the queue has forgotten the
// message.
func (x *Question) Message() *message.QueuedMessage {
	return &message.QueuedMessage{ID: x.ID.String(), State: message.StateDelivered, Created: x.Created, Results: []message.QueuedResult{}}
}

// expire ends the question if its time is over, and reports whether it did.
func (x *Question) expire(now time.Time) bool {
	if !x.IsOpen() || now.Before(x.Until) {
		return false
	}
	x.decide(Outcome{State: Expired, Answer: x.Default, At: x.Until})
	return true
}

// decide sets the outcome and whom to tell.
func (x *Question) decide(o Outcome) {
	o.At = o.At.Truncate(time.Microsecond) // as in the record, so that all gateways show the same
	x.Outcome = o
	x.ToCall = x.Callback != "" && o.State != Cancelled
	x.ToTell = x.Tell
}

func (x *Question) fields(c *wire.Codec) {
	wire.Array(c, 1, x.ID[:])
	wire.Text(c, 2, &x.Site)
	wire.Text(c, 3, &x.Place.Home)
	wire.Text(c, 4, &x.Place.Key)
	wire.Text(c, 5, &x.Key)
	wire.Text(c, 6, &x.Title)
	wire.Text(c, 7, &x.Body)
	wire.Text(c, 8, &x.Type)
	wire.Time(c, 9, &x.Created)
	wire.Time(c, 10, &x.Until)
	wire.True(c, 11, &x.Escalates)
	wire.Records(c, 12, &x.Targets, (*Target).fields)
	wire.Record(c, 13, &x.Outcome, (*Outcome).fields)
	wire.True(c, 14, &x.ToCall)
	wire.True(c, 15, &x.ToTell)
	wire.Array(c, 16, x.linkSecret[:])
	wire.Texts(c, 17, &x.Options)
	wire.True(c, 18, &x.Text)
	wire.Text(c, 19, &x.Default)
	wire.True(c, 20, &x.Login)
	wire.True(c, 21, &x.Tell)
	wire.Text(c, 22, &x.Callback)
	wire.Text(c, 23, &x.Secret)
}

func (t *Target) fields(c *wire.Codec) {
	wire.Text(c, 1, &t.Hash)
	wire.Text(c, 2, &t.URL)
	wire.Text(c, 3, &t.Name)
}

func (o *Outcome) fields(c *wire.Codec) {
	wire.Text(c, 1, &o.State)
	wire.Text(c, 2, &o.Answer)
	wire.Text(c, 3, &o.By)
	wire.Text(c, 4, &o.Through)
	wire.Time(c, 5, &o.At)
}

// questions are the records of questions.
var questions = outbox.Typed[Question]{Kind: Kind, Fields: (*Question).fields}

// keepDecided is the minimum time for which a decided question is kept, for clients that read the
// outcome and for people who open the page late.
const keepDecided = 24 * time.Hour

// put stores a question. Its record is due when the question expires, when something has to be
// told, and when it can be removed.
func (q *Questions) put(tx *queue.Tx, name queue.Hash, x *Question, now time.Time) {
	due, group := now, q.decidedGroup(x.Place.String())
	switch {
	case x.IsOpen():
		due, group = x.Until, q.group(x.Place.String())
	case !x.ToCall && !x.ToTell:
		due = x.forget(q.outbox.Queue.Keep())
	}
	questions.Put(tx, name, x, due, group)
}

// forget returns when a decided question can be removed. keep is how long the queue keeps results.
func (x *Question) forget(keep time.Duration) time.Time {
	return x.Outcome.At.Add(max(keep, keepDecided))
}

func (q *Questions) name(id uuid.UUID) queue.Hash {
	return q.outbox.Queue.Hash("question\x00" + id.String())
}

// group returns the group of the open questions of a key.
func (q *Questions) group(place string) queue.Hash {
	return q.outbox.Queue.Hash("open questions\x00" + place)
}

// decidedGroup returns the group of the decided questions of a key.
func (q *Questions) decidedGroup(place string) queue.Hash {
	return q.outbox.Queue.Hash("decided questions\x00" + place)
}

// ahead reports whether an open question was asked when the clock was ahead. Its time then starts
// again.
func (x *Question) ahead(now time.Time) bool { return x.IsOpen() && queue.WrittenAhead(x.Created, now) }

// Ahead reports whether a record has an open question that was asked when the clock was ahead.
func (q *Questions) Ahead(record []byte, now time.Time) bool {
	x := questions.Decode(record)
	return x != nil && x.ahead(now)
}

// decideFunc returns the question to store in a transaction. x is the stored one, or nil.
type decideFunc func(x *Question, now time.Time) (*Question, error)

// ruled returns the change of a record to the question that decide returns.
func (q *Questions) ruled(name queue.Hash, decide decideFunc) *queue.Ruled {
	return &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
		now := q.outbox.Queue.Now()
		x, err := decide(questions.Get(tx, name), now)
		if err != nil {
			return err
		}
		q.put(tx, name, x, now)
		return nil
	}}
}

// moveBack starts the time of a question again if it was asked when the clock was ahead.
func (q *Questions) moveBack(ctx context.Context, name queue.Hash) error {
	return q.outbox.Queue.Records.Apply(ctx, q.ruled(name, func(x *Question, now time.Time) (*Question, error) {
		if x == nil || !x.ahead(now) {
			return nil, errDecided
		}
		x.Created, x.Until = now, now.Add(x.Until.Sub(x.Created))
		return x, nil
	}))
}

// Turn returns the turn of a question: one of its key.
func (q *Questions) Turn(name queue.Hash, record []byte) string {
	if x := questions.Decode(record); x != nil {
		return outbox.Spread(name, x.Place.String())
	}
	return outbox.Spread(name, "")
}

// CheckAnswer returns an error of one sentence if text does not answer the question.
func (x *Question) CheckAnswer(text string) error { return message.CheckAnswer(text, x.Options) }
