package heartbeat

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/event"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Signal is what a request says about a run of the job, beside its message.
type Signal struct {
	Start bool   // the run begins; otherwise it has ended
	Exit  string // the exit code; "" for 0 or none

	// Partial means that the payload leaves out what may have failed: the beat says neither that
	// all is well nor that it has failed.
	Partial bool
}

// The query parameters of a signal, and the values of the first one.
const (
	stateParameter = "state"
	exitParameter  = "exit"
	stateStart     = "start"
	stateEnd       = "end"
)

// maxExit is the maximum number of bits of an exit code. Exit codes of Windows have 32, signed or
// not.
const maxExit = 34

var (
	errState     = message.Errorf(message.Invalid, "state: it must be start or end")
	errExit      = message.Errorf(message.Invalid, "exit: it must be the exit code of the job, an integer such as 0 or 3")
	errStartEnds = message.Errorf(message.Invalid,
		"a start cannot fail and has no exit code; send exit and the type failure at the end, without state=start")
)

// ReadSignal reads the query of a beat with the message m. An exit code other than 0 makes m a
// failure. partial means that the payload leaves out what may have failed; an exit code says it all.
func ReadSignal(query url.Values, m *notifier.Message, partial bool) (s Signal, err error) {
	s.Partial = partial && !query.Has(exitParameter)
	switch state := query.Get(stateParameter); {
	case state == stateStart:
		s.Start = true
	case state != stateEnd && query.Has(stateParameter):
		return s, errState
	}
	if query.Has(exitParameter) {
		n, err := strconv.ParseInt(query.Get(exitParameter), 10, maxExit)
		switch {
		case err != nil:
			return s, errExit
		case s.Start:
			return s, errStartEnds
		case n != 0:
			s.Exit, m.Type = strconv.FormatInt(n, 10), notifier.Failure
		}
	}
	if s.Start && m.Type == notifier.Failure {
		return s, errStartEnds
	}
	return s, nil
}

// takeTries is how often taking a beat is tried if others change it at the same time.
const takeTries = 10

// Taken is the outcome of taking a beat.
type Taken struct {
	Beat   string // its name
	Report notifier.Report
	ID     string // of the message about it in the queue; "" for none

	// Refused says why the beat is not stored; nil if it is. People were told of it nevertheless,
	// if possible.
	Refused *message.Error
}

// Take takes a beat with a text. memory counts the memory of the text. Take calls release when the
// text and its files are no longer needed.
func (m *Monitor) Take(ctx context.Context, x *ExpectedBeat, s Signal, text *notifier.Message, memory *memory.Allocation,
	release func(),
) (*Taken, error) {
	if text.Type == notifier.Failure {
		return m.fail(ctx, x, s, text, memory, release)
	}
	output := x.keptOutput(text)
	release()
	if s.Start {
		return m.start(ctx, x)
	}
	for range takeTries {
		came, err := m.come(ctx, x, s.Partial, output)
		if !errors.Is(err, ErrBeatUnchanged) {
			return came, err
		}
	}
	return nil, outbox.ErrQueueUnavailable(ErrBeatUnchanged)
}

// keptOutput returns what is remembered of the text that a job has posted: nothing if its key has no
// inbox, which keeps texts.
func (x *ExpectedBeat) keptOutput(text *notifier.Message) string {
	if x.Key.Inbox == 0 {
		return ""
	}
	return rules.EndOf(text.Body)
}

// start notes that a run has begun. It sends no message.
func (m *Monitor) start(ctx context.Context, x *ExpectedBeat) (*Taken, error) {
	c := m.Started(x)
	if err := c.Apply(ctx); err != nil {
		return nil, outbox.QueueError(err)
	}
	text := "Beat " + x.Name + " has started."
	if by := c.Beat.RunDeadline(&c.Uptime); !by.IsZero() {
		text += " It has to end by " + BeatTime(by) + "."
	}
	return taken(x, text, nil, ""), nil
}

// come notes a beat that has not failed. The first one after a problem is told, unless it is a
// partial beat after a failure.
func (m *Monitor) come(ctx context.Context, x *ExpectedBeat, partial bool, output string) (*Taken, error) {
	if err := m.storeFailure(ctx, x); err != nil {
		return nil, outbox.QueueError(err)
	}
	if partial {
		c := m.Lives(x)
		if err := c.Apply(ctx); err == nil {
			return taken(x, "Beat "+x.Name+" has come, and leaves out whether what has failed is well. The next one is due by "+
				BeatTime(c.Beat.Due(&c.Uptime))+".", nil, ""), nil
		} else if !errors.Is(err, ErrBeatUnchanged) {
			return nil, outbox.QueueError(err)
		}
	}
	var before rules.Beat
	quiet := m.Came(x, false, "", output, false, &before)
	err := quiet.Apply(ctx)
	if err == nil {
		return taken(x, cameText(x, quiet), nil, ""), nil
	}
	if !errors.Is(err, ErrBeatUnchanged) {
		return nil, outbox.QueueError(err)
	}
	text := x.backText(&before, m.outbox.Queue.Now())
	told := m.Came(x, false, "", output, true, &before)
	report, id, err := m.TellBeat(ctx, x.Delivery(text, told), told)
	if err != nil {
		if errors.Is(err, ErrBeatUnchanged) {
			return nil, err
		}
		return nil, outbox.QueueError(err)
	}
	m.emit(event.BeatBack, x, &told.Beat)
	return taken(x, cameText(x, told), report, id), nil
}

// fail tells that a beat has failed. If that cannot be stored, the message is sent once.
func (m *Monitor) fail(ctx context.Context, x *ExpectedBeat, s Signal, text *notifier.Message, memory *memory.Allocation,
	release func(),
) (*Taken, error) {
	ran := time.Duration(0)
	if record, err := m.outbox.Queue.Records.Get(ctx, m.beatName(x)); err == nil {
		ran = beats.DecodeOrNew(record).Running(m.outbox.Queue.Now())
	}
	output := x.keptOutput(text)
	failedText(x.Name, text, s, ran)
	c := m.Came(x, true, s.Exit, output, true, new(rules.Beat))
	d := x.Delivery(text, c)
	d.Memory, d.Resources = memory, dispatch.CloseFunc(release)
	if err := d.To.Check(text); err != nil {
		release()
		return nil, err
	}
	report, id, err := m.TellBeat(ctx, d, c)
	if err != nil {
		defer release()
		return m.failUnstored(ctx, x, d, c, err)
	}
	m.unstored.forget(c.name)
	m.emit(event.BeatLate, x, &c.Beat)
	return taken(x, cameText(x, c), report, id), nil
}

// cameText returns the answer to the sender of a beat.
func cameText(x *ExpectedBeat, c *BeatChange) string {
	what := " has come" + afterRun(c.Beat.Ran)
	if c.Beat.State == rules.BeatFailed {
		what += ", and has failed"
		if c.Beat.Exit != "" {
			what += " with the exit code " + c.Beat.Exit
		}
	}
	return "Beat " + x.Name + what + ". The next one is due by " + BeatTime(c.Beat.Due(&c.Uptime)) + "."
}

// afterRun returns a phrase about the duration of a run, or "" if it is unknown.
func afterRun(ran time.Duration) string {
	if ran == 0 {
		return ""
	}
	return " after a run of " + FormatRun(ran)
}

// taken returns the outcome of a beat that has been noted. report and id belong to the message
// about it; report is nil for none.
func taken(x *ExpectedBeat, text string, report *notifier.Report, id string) *Taken {
	t := &Taken{Beat: x.Name, ID: id}
	t.Report.Records = []notifier.Record{{Time: time.Now(), Level: notifier.LevelInfo, Text: text}}
	if report != nil {
		t.Report.Results, t.Report.Records = report.Results, append(t.Report.Records, report.Records...)
	}
	return t
}
