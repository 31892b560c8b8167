package queued

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

// entry returns a message with a chain of three numbers: jobs 0 and 1, job 2, job 3. Job 4
// is in no chain.
func entry(t *testing.T, now time.Time, change func(jobs []queue.Job)) *queue.Entry {
	t.Helper()
	s := Summary{Chains: Chains{All: [][][]int{{{0, 1}, {2}, {3}}}}}
	jobs := make([]queue.Job, 5)
	for i := range jobs {
		jobs[i] = queue.Job{JobID: queue.JobID{Message: uuid.UUID{1}, Index: i}, Status: queue.Queued, Due: now}
	}
	change(jobs)
	return &queue.Entry{Message: &queue.Message{ID: uuid.UUID{1}, Summary: s.Encode()}, Jobs: jobs}
}

// TestTurn checks when the numbers of a chain are tried.
func TestTurn(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	tried := func(j *queue.Job) { j.Attempts, j.Due = 1, now.Add(time.Minute) }
	for name, test := range map[string]struct {
		change func(jobs []queue.Job)
		job    int
		want   Turn
	}{
		"the first number":       {func([]queue.Job) {}, 0, Turn{LaterDecides: true}},
		"the second number":      {func([]queue.Job) {}, 2, Turn{Wait: true}},
		"no chain":               {func([]queue.Job) {}, 4, Turn{}},
		"a part of a number":     {func(jobs []queue.Job) { jobs[0].Status = queue.Delivered; tried(&jobs[1]) }, 2, Turn{LaterDecides: true}},
		"all before have failed": {func(jobs []queue.Job) { tried(&jobs[0]); tried(&jobs[1]); jobs[2].Status = queue.Failed }, 3, Turn{}},
		"one before is sending": {func(jobs []queue.Job) {
			tried(&jobs[0])
			tried(&jobs[1])
			tried(&jobs[2])
			jobs[1].Status = queue.Sending
		}, 2, Turn{Wait: true}},
		"one before is due": {
			func(jobs []queue.Job) { tried(&jobs[0]); tried(&jobs[1]); tried(&jobs[2]); jobs[1].Due = now }, 2,
			Turn{Wait: true},
		},
		"more attempts before": {func(jobs []queue.Job) { tried(&jobs[0]); tried(&jobs[1]); jobs[1].Due = now }, 2, Turn{LaterDecides: true}},
		"one before is silenced": {func(jobs []queue.Job) {
			for i := range 2 {
				jobs[i].Status, jobs[i].Rule, jobs[i].Due = queue.Held, string(notifier.RuleSilenced), now.Add(time.Hour)
			}
		}, 2, Turn{LaterDecides: true}},
	} {
		e := entry(t, now, test.change)
		if got := TurnOf(e, &e.Jobs[test.job], now); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// TestNotNeeded checks the outcome of a job if another number has its message: a number that was
// not tried is skipped, and the failure of a tried one does not count.
func TestNotNeeded(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	e := entry(t, now, func(jobs []queue.Job) {
		jobs[2].Status = queue.Delivered
		jobs[0].Attempts = 1
		jobs[0].Result = AppendResult(nil, notifier.Result{Service: "JSON", Err: errors.New("the service answered 503"), Attempts: 1})
	})
	for job, want := range map[int]struct {
		queue    queue.Status
		status   notifier.Status
		optional bool
	}{0: {queue.Failed, notifier.Failed, true}, 3: {queue.Delivered, notifier.Skipped, false}} {
		o := TurnOf(e, &e.Jobs[job], now).Outcome
		if o == nil || o.Status != want.queue || !o.NotSent {
			t.Fatalf("job %d: %+v", job, o)
		}
		if r := DecodeResult(o.Result); r.Status != want.status || r.Optional != want.optional || (r.Error != nil) != want.optional {
			t.Errorf("job %d: %+v", job, r)
		}
	}
	m := Message(e)
	if got := m.Results[0]; got.Status != message.StatusQueued || m.State != "queued" {
		t.Errorf("%+v", m)
	}
	e.Jobs[0].Status, e.Jobs[1].Status, e.Jobs[3].Status, e.Jobs[4].Status = queue.Failed, queue.Dead, queue.Delivered, queue.Delivered
	e.Jobs[0].Result = AppendResult(nil, notifier.Result{Status: notifier.Failed, Err: errors.New("the service answered 503")})
	if m = Message(e); m.State != "delivered" || !m.Results[0].Optional || !m.Results[1].Optional || m.Results[4].Optional {
		t.Errorf("a failure before the number that has the message counts: %+v", m)
	}
}

// TestDamagedChains checks that a message whose summary names jobs that it does not have
// has no chains.
func TestDamagedChains(t *testing.T) {
	for _, chain := range [][][]int{{{0}, {1}}, {{0}, {}}} {
		s := Summary{Chains: Chains{All: [][][]int{chain}}}
		e := &queue.Entry{Message: &queue.Message{Summary: s.Encode()}, Jobs: make([]queue.Job, 1)}
		if c := chainsOf(e); c.All != nil {
			t.Errorf("the chains are %v", c.All)
		}
	}
}

// TestNewChains checks that a message has the chains of several numbers, by the indexes of
// its jobs.
func TestNewChains(t *testing.T) {
	target := func(chain string, number int, url string) notifier.Target {
		d, err := notifier.Parse(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Close)
		return notifier.Target{Destination: d, Chain: chain, Number: number}
	}
	targets := []notifier.Target{
		target("ops", 2, "json://a"), target("", 0, "json://b"), target("ops", 1, "json://c"), target("ops", 2, "json://d?optional=yes"),
		target("one", 1, "json://e"),
	}
	want := Chains{All: [][][]int{{{5}, {1, 6}}}, Optional: []int{6}}
	if got := NewChains(targets, []int{1, 2, 5, 6, 7}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := NewChains(targets[:1], []int{0}); got.All != nil {
		t.Errorf("a message to one number has %+v", got)
	}
}
