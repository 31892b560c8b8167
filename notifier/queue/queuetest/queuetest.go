// Package queuetest tests implementations of [queue.Store], also those of other repositories.
package queuetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Engine is an implementation to test.
type Engine struct {
	// New creates an empty store for one test. Each call of open opens a handle on
	// that store, which writes to log.
	New func(t *testing.T) (open func(log *zap.Logger) (queue.Store, error))

	// Shared reports whether several handles can be open at the same time.
	Shared bool

	// Skip has the names of tests that do not apply to the stores, each with the reason.
	Skip map[string]string
}

// newSuite begins the test of a name.
func (e Engine) newSuite(t *testing.T, name string) *suite {
	t.Helper()
	if reason := e.Skip[name]; reason != "" {
		t.Skip(reason)
	}
	return newSuite(t, e)
}

// Run tests that the stores of an engine do what [queue.Store] documents. With the environment variable CI,
// it tests more cases.
func Run(t *testing.T, e Engine) {
	for _, test := range []struct {
		name string
		run  func(s *suite)
	}{
		{"Accept", (*suite).accept},
		{"AcceptFinalResults", (*suite).acceptFinal},
		{"AcceptSeveral", (*suite).acceptSeveral},
		{"Batches", (*suite).batches},
		{"Messages", (*suite).messages},
		{"Files", (*suite).files},
		{"ClaimWhenDue", (*suite).claimWhenDue},
		{"ClaimTakesTurns", (*suite).claimTakesTurns},
		{"DestinationLimit", (*suite).destinationLimit},
		{"HostLimit", (*suite).hostLimit},
		{"ClientLimit", (*suite).clientLimit},
		{"TextLimit", (*suite).textLimit},
		{"Prefetch", (*suite).prefetch},
		{"OwnSlot", (*suite).ownSlot},
		{"OwnSlotFirst", (*suite).ownSlotFirst},
		{"UntriedBeside64", untriedSlot(64)},
		{"UntriedBeside2000", untriedSlot(2000)},
		{"UntriedLimit", (*suite).untriedLimit},
		{"TurnsGoRound", (*suite).turnsGoRound},
		{"LastTurn", (*suite).lastTurn},
		{"WakeWaiting", (*suite).wakeWaiting},
		{"ClockSetBack", (*suite).clockSetBack},
		{"Wake", (*suite).wake},
		{"WakeNotBefore", (*suite).wakeNotBefore},
		{"RetryQueued", (*suite).retryQueued},
		{"Health", (*suite).health},
		{"HealthOfSettlement", (*suite).healthOfSettlement},
		{"Waiting", (*suite).waiting},
		{"Held", (*suite).held},
		{"SettleDelivered", (*suite).settleDelivered},
		{"SettleLater", (*suite).settleLater},
		{"SettleShared", (*suite).settleShared},
		{"SettleTwice", (*suite).settleTwice},
		{"SettleNext", (*suite).settleNext},
		{"Reopen", (*suite).reopen},
		{"IdempotencyKey", (*suite).idempotencyKey},
		{"Cancel", (*suite).cancel},
		{"Dead", (*suite).dead},
		{"Drop", (*suite).drop},
		{"ForgetByTime", (*suite).forgetByTime},
		{"ForgetBySize", (*suite).forgetBySize},
		{"Records", (*suite).records},
		{"DueRecords", (*suite).dueRecords},
		{"LargeDueRecords", (*suite).largeDueRecords},
		{"DueInTurns", (*suite).dueInTurns},
		{"Groups", (*suite).groups},
		{"OwnedRecords", (*suite).ownedRecords},
		{"ManyRecords", (*suite).manyRecords},
		{"RecordSizes", (*suite).recordSizes},
		{"HeldJobs", (*suite).heldJobs},
		{"UpdateJobs", (*suite).updateJobs},
		{"UpdateRetries", (*suite).updateRetries},
		{"UpdateOfEntry", (*suite).updateOfEntry},
		{"UpdateOfSettlement", (*suite).updateOfSettlement},
		{"UpdatesAtOnce", (*suite).updatesAtOnce},
		{"DecidedTogether", (*suite).decidedTogether},
		{"UpdatesAfterEntries", (*suite).updatesAfterEntries},
		{"DeadReplaced", (*suite).deadReplaced},
		{"Rules", (*suite).rules},
		{"Planned", (*suite).planned},
		{"AlertGroups", (*suite).alertGroups},
		{"RuledJobs", (*suite).ruledJobs},
		{"JoinedRules", (*suite).joinedRules},
		{"Order", (*suite).order},
		{"Full", (*suite).full},
		{"Stats", (*suite).stats},
		{"NotFound", (*suite).notFound},
		{"Closed", (*suite).closed},
		{"ManyJobs", (*suite).manyJobs},
		{"Concurrency", (*suite).concurrency},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(e.newSuite(t, test.name))
		})
	}
	if !e.Shared {
		return
	}
	for _, test := range []struct {
		name string
		run  func(s *suite)
	}{
		{"SharedClaims", (*suite).sharedClaims},
		{"SharedLease", (*suite).sharedLease},
		{"SharedRenew", (*suite).sharedRenew},
		{"SharedIdempotencyKey", (*suite).sharedIdempotencyKey},
		{"SharedHeld", (*suite).sharedHeld},
		{"SharedHealth", (*suite).sharedHealth},
		{"SharedTurns", (*suite).sharedTurns},
		{"SharedRules", (*suite).sharedRules},
		{"SharedDueInTurns", (*suite).sharedDueInTurns},
		{"SharedPlanned", (*suite).sharedPlanned},
		{"SharedAlertGroups", (*suite).sharedAlertGroups},
		{"SharedOwned", (*suite).sharedOwned},
		{"SharedUpdates", (*suite).sharedUpdates},
		{"SharedRemoval", (*suite).sharedRemoval},
		{"SharedOrder", (*suite).sharedOrder},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // most of them wait for leases
			test.run(e.newSuite(t, test.name))
		})
	}
}

// suite is one test with a store.
type suite struct {
	*testing.T
	queue.Store
	open func(log *zap.Logger) (queue.Store, error)
	log  *zap.Logger
	logs *observer.ObservedLogs // from the level warning up
	now  time.Time

	empty queue.Stats // of the store before the test
}

const (
	noLimit = 1 << 40
	lease   = time.Minute
	week    = 7 * 24 * time.Hour
)

func newSuite(t *testing.T, e Engine) *suite {
	core, logs := observer.New(zap.WarnLevel)
	s := &suite{T: t, open: e.New(t), log: zap.New(core), logs: logs, now: time.Now().Truncate(time.Microsecond)}
	s.Store = s.handle()
	var err error
	s.empty, err = s.Stats(t.Context())
	s.must(err)
	return s
}

// handle opens a handle that is closed when the test ends.
func (s *suite) handle() queue.Store {
	s.Helper()
	store, err := s.open(s.log)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { store.Close() })
	return store
}

// reopenStore closes and reopens the store.
func (s *suite) reopenStore() {
	s.Helper()
	if err := s.Close(); err != nil {
		s.Fatal(err)
	}
	s.Store = s.handle()
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) wantErr(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("%v, want %v", err, want)
	}
}

// entry returns a message with a job for each destination, all of them due.
func (s *suite) entry(destinations ...string) *queue.Entry {
	e := &queue.Entry{Message: &queue.Message{
		ID: queue.NewID(), Created: s.now, Body: []byte("the text"), Summary: []byte("the summary"),
	}}
	for i, d := range destinations {
		e.Jobs = append(e.Jobs, queue.Job{
			JobID: queue.JobID{Message: e.Message.ID, Index: i}, Status: queue.Queued, Destination: d, Host: d + ":443", Text: len(e.Message.Body),
			State: []byte("state of " + d), Due: s.now, Expires: s.now.Add(24 * time.Hour), Updated: s.now,
		})
	}
	return e
}

func (s *suite) add(destinations ...string) *queue.Entry {
	s.Helper()
	e := s.entry(destinations...)
	s.must(s.Accept(s.Context(), noLimit, e))
	return e
}

// claim claims all jobs that are due.
func (s *suite) claim(now time.Time) (jobs []queue.Job) {
	s.Helper()
	for {
		more, _, err := s.Claim(s.Context(), queue.Claim{Now: now, Max: 1000, Lease: lease})
		s.must(err)
		if len(more) == 0 {
			return jobs
		}
		jobs = append(jobs, more...)
	}
}

// settle records the outcome of a claimed job.
func (s *suite) settle(j queue.Job, status queue.Status, change ...func(j *queue.Job)) {
	s.Helper()
	j.Status, j.Updated = status, s.now
	j.Attempts++
	j.Result = []byte("result: " + status.String())
	for _, f := range change {
		f(&j)
	}
	s.must(s.Settle(s.Context(), &queue.Settlement{Job: &j}))
}

func (s *suite) get(id uuid.UUID) *queue.Entry {
	s.Helper()
	e, err := s.Get(s.Context(), id)
	s.must(err)
	return e
}

// statuses compares the statuses of a message's jobs.
func (s *suite) statuses(id uuid.UUID, want ...queue.Status) {
	s.Helper()
	var got []queue.Status
	for _, j := range s.get(id).Jobs {
		got = append(got, j.Status)
	}
	if !slices.Equal(got, want) {
		s.Errorf("statuses %v, want %v", got, want)
	}
}

func (s *suite) counts(queued, sending, dead int) {
	s.Helper()
	st, err := s.Stats(s.Context())
	s.must(err)
	if st.Queued != queued || st.Sending != sending || st.Dead != dead {
		s.Errorf("%d queued, %d sending, %d dead; want %d, %d, %d", st.Queued, st.Sending, st.Dead, queued, sending, dead)
	}
}

// gone checks that the text of a message is no longer stored.
func (s *suite) gone(id uuid.UUID) {
	s.Helper()
	_, _, err := s.Load(s.Context(), id)
	s.wantErr(err, queue.ErrNotFound)
}

func (s *suite) load(id uuid.UUID) *queue.Message {
	s.Helper()
	m, release, err := s.Load(s.Context(), id)
	s.must(err)
	s.Cleanup(release)
	return m
}

// sameJob compares jobs except for Status.
func (s *suite) sameJob(got, want *queue.Job) {
	s.Helper()
	same := got.JobID == want.JobID && got.Destination == want.Destination && bytes.Equal(got.State, want.State) &&
		bytes.Equal(got.Result, want.Result) && got.Reason == want.Reason && got.Attempts == want.Attempts &&
		got.Due.Equal(want.Due) && got.Expires.Equal(want.Expires) && got.Updated.Equal(want.Updated) &&
		got.Host == want.Host && got.Client == want.Client && got.Text == want.Text && got.Spared == want.Spared &&
		got.NotBefore.Equal(want.NotBefore) && got.UnknownSince.Equal(want.UnknownSince)
	if !same {
		s.Errorf("job %+v, want %+v", *got, *want)
	}
}

func (s *suite) accept() {
	e := s.entry("a", "b")
	e.Message.Request = []byte("request")
	s.must(s.Accept(s.Context(), noLimit, e))
	for range 2 {
		m := s.load(e.Message.ID)
		if m.ID != e.Message.ID || !m.Created.Equal(s.now) || string(m.Body) != "the text" || string(m.Summary) != "the summary" ||
			len(m.Files) != 0 {
			s.Errorf("loaded %+v", m)
		}
		got := s.get(e.Message.ID)
		if got.Message.Body != nil || string(got.Message.Summary) != "the summary" || string(got.Message.Request) != "request" ||
			len(got.Jobs) != 2 {
			s.Errorf("got %+v", got.Message)
		}
		s.statuses(e.Message.ID, queue.Queued, queue.Queued)
		for i := range got.Jobs {
			s.sameJob(&got.Jobs[i], &e.Jobs[i])
		}
		s.reopenStore()
	}
	if err := s.Accept(s.Context(), noLimit, e); err == nil {
		s.Error("the same ID is accepted twice")
	}
	empty := s.entry("a")
	empty.Message.Body, empty.Message.Summary, empty.Jobs[0].State = nil, nil, nil
	s.must(s.Accept(s.Context(), noLimit, empty))
	if m := s.load(empty.Message.ID); len(m.Body) != 0 {
		s.Errorf("loaded %q", m.Body)
	}
}

func (s *suite) acceptFinal() {
	e := s.entry("a", "b", "c", "d")
	for i, status := range []queue.Status{queue.Delivered, queue.Queued, queue.Failed, queue.Dead} {
		e.Jobs[i].Status, e.Jobs[i].Result, e.Jobs[i].Attempts = status, []byte("result"), 2
	}
	s.must(s.Accept(s.Context(), noLimit, e))
	s.statuses(e.Message.ID, queue.Delivered, queue.Queued, queue.Failed, queue.Dead)
	got := s.get(e.Message.ID)
	for i := range got.Jobs {
		if j := got.Jobs[i]; string(j.Result) != "result" || j.Attempts != 2 || j.Index != i {
			s.Errorf("job %+v", j)
		}
	}
	s.counts(1, 0, 1)
	if jobs := s.claim(s.now); len(jobs) != 1 || jobs[0].Index != 1 {
		s.Errorf("claimed %v", jobs)
	}
	done := s.entry("a")
	done.Jobs[0].Status = queue.Delivered
	s.must(s.Accept(s.Context(), 0, done)) // final entries ignore the size limit
	s.gone(done.Message.ID)
	s.reopenStore()
	s.statuses(done.Message.ID, queue.Delivered)
}

func (s *suite) acceptSeveral() {
	entries := []*queue.Entry{s.entry("a"), s.entry("a"), s.entry("b")}
	s.must(s.Accept(s.Context(), noLimit, entries...))
	s.counts(3, 0, 0)
	again := []*queue.Entry{s.entry("a"), entries[1]}
	if err := s.Accept(s.Context(), noLimit, again...); err == nil {
		s.Error("the same ID is accepted twice")
	}
	s.counts(3, 0, 0)
	_, err := s.Get(s.Context(), again[0].Message.ID)
	s.wantErr(err, queue.ErrNotFound)
}

// batches stores messages without jobs that hold the results of others.
func (s *suite) batches() {
	var ids []uuid.UUID
	for i := range 3 {
		s.add("a")
		id := queue.NewID()
		id[6] = 8<<4 | id[6]&0x0f
		ids = append(ids, id)
		e := &queue.Entry{Message: &queue.Message{ID: id, Created: s.now.Add(time.Duration(i) * time.Hour), Summary: data(50_000)[i:]}}
		s.must(s.Accept(s.Context(), 0, e)) // the size limit is for waiting messages only
		time.Sleep(2 * time.Millisecond)    // so that the next ID has another time
	}
	want := func(from, to uuid.UUID, n ...int) {
		s.Helper()
		got, err := s.Batches(s.Context(), from, to)
		s.must(err)
		same := len(got) == len(n)
		for k := 0; same && k < len(n); k++ {
			same = slices.ContainsFunc(got, func(b []byte) bool { return bytes.Equal(b, data(50_000)[n[k]:]) })
		}
		if !same {
			s.Errorf("%d batches, want %v", len(got), n)
		}
	}
	for range 2 {
		want(ids[0], uuid.Max, 0, 1, 2)
		want(ids[1], ids[2], 1)
		want(uuid.Nil, ids[0])
		s.reopenStore()
	}
	forget := func(before time.Time, maxSize int64) {
		s.Helper()
		n, err := s.Forget(s.Context(), before, maxSize)
		s.must(err)
		if n != 1 {
			s.Errorf("%d are forgotten", n)
		}
	}
	forget(s.now.Add(time.Minute), noLimit)
	want(uuid.Nil, uuid.Max, 1, 2)
	forget(s.now, 90_000)
	want(uuid.Nil, uuid.Max, 2)
	s.counts(3, 0, 0)
}

// messages lists messages in pages, the latest first.
func (s *suite) messages() {
	var want []*queue.Entry // the oldest first
	for i := range 7 {
		e := s.entry([]string{"a", "b", "c"}[:i%3+1]...)
		e.Message.Summary = data(10 + i)
		if i == 3 { // a batch
			e.Message.ID[6] = 8<<4 | e.Message.ID[6]&0x0f
			e.Jobs = nil
		}
		s.must(s.Accept(s.Context(), noLimit, e))
		want = append(want, e)
		time.Sleep(2 * time.Millisecond) // so that the next ID has another time
	}
	for _, j := range s.claim(s.now) {
		if j.Message == want[4].Message.ID {
			s.settle(j, queue.Delivered)
		}
	}
	slices.Reverse(want)
	for _, n := range []int{1, 3, 7, 100} {
		var got []*queue.Entry
		before, pages := uuid.UUID{}, 0
		for {
			page, next, err := s.Messages(s.Context(), before, n)
			s.must(err)
			if len(page) > n || next != (uuid.UUID{}) && len(page) != n {
				s.Errorf("a page of %d has %d messages, and %s is the next", n, len(page), next)
			}
			got = append(got, page...)
			if pages++; next == (uuid.UUID{}) || pages > 10 {
				break
			}
			before = next
		}
		if pages != (len(want)+n-1)/n || len(got) != len(want) {
			s.Fatalf("%d messages on %d pages of %d", len(got), pages, n)
		}
		for i, e := range got {
			m := want[i].Message
			if e.Message.ID != m.ID || !e.Message.Created.Equal(m.Created) || !bytes.Equal(e.Message.Summary, m.Summary) ||
				e.Message.Body != nil || e.Message.StoredSize != want[i].Size() {
				s.Errorf("message %d is %+v", i, e.Message)
			}
			if one := s.get(m.ID); !reflect.DeepEqual(one, e) {
				s.Errorf("message %d is listed as %+v, and is %+v", i, e, one)
			}
		}
	}
	if page, next, err := s.Messages(s.Context(), want[len(want)-1].Message.ID, 5); err != nil || len(page) != 0 || next != (uuid.UUID{}) {
		s.Errorf("before the first message are %d, next %s, %v", len(page), next, err)
	}
	unknown := want[2].Message.ID
	for i := len(unknown) - 1; ; i-- { // the next ID
		if unknown[i]++; unknown[i] != 0 {
			break
		}
	}
	if page, _, err := s.Messages(s.Context(), unknown, 1); err != nil || len(page) != 1 || page[0].Message.ID != want[2].Message.ID {
		s.Errorf("before an unknown message is %v, %v", page, err)
	}
	s.reopenStore()
	if page, _, err := s.Messages(s.Context(), uuid.UUID{}, 1); err != nil || len(page) != 1 || page[0].Message.ID != want[0].Message.ID {
		s.Errorf("after the store was opened again: %v, %v", page, err)
	}
}

// data returns n bytes that do not repeat.
func data(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

func (s *suite) files() {
	contents := [][]byte{{}, []byte("short"), data(300_000)}
	e := s.entry("a", "b")
	for _, c := range contents {
		e.Message.Files = append(e.Message.Files, queue.File{Size: int64(len(c)), ReaderAt: bytes.NewReader(c)})
	}
	s.must(s.Accept(s.Context(), noLimit, e))
	check := func() {
		s.Helper()
		m := s.load(e.Message.ID)
		if len(m.Files) != len(contents) {
			s.Fatalf("%d files", len(m.Files))
		}
		for i, f := range m.Files {
			got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size))
			if err != nil || !bytes.Equal(got, contents[i]) {
				s.Errorf("file %d has %d bytes, %v", i, len(got), err)
			}
		}
		part := make([]byte, 100_000)
		if _, err := m.Files[2].ReadAt(part, 60_000); err != nil || !bytes.Equal(part, contents[2][60_000:160_000]) {
			s.Errorf("a part of a file: %v", err)
		}
	}
	check()
	if err := s.Accept(s.Context(), noLimit, e); err == nil {
		s.Error("the same ID is accepted twice")
	}
	check()
	s.reopenStore()
	check()
	jobs := s.claim(s.now)
	s.settle(jobs[0], queue.Delivered)
	check()
	s.settle(jobs[1], queue.Dead)
	s.reopenStore()
	check()
	n, err := Cancel(s.Context(), s, e.Message.ID, s.now, queue.Dead)
	s.must(err)
	if n != 1 {
		s.Errorf("%d cancelled", n)
	}
	s.gone(e.Message.ID)
	short := s.entry("a")
	short.Message.Files = []queue.File{{Size: 10, ReaderAt: bytes.NewReader([]byte("short"))}}
	if err := s.Accept(s.Context(), noLimit, short); err == nil {
		s.Error("a file that is shorter than its size is accepted")
	}
	_, err = s.Get(s.Context(), short.Message.ID)
	s.wantErr(err, queue.ErrNotFound)
}

func (s *suite) claimWhenDue() {
	e := s.entry("a", "a", "b")
	for i := range e.Jobs {
		e.Jobs[i].Due = s.now.Add(time.Duration(3-i) * time.Hour)
	}
	e.Jobs[0].NotBefore, e.Jobs[0].UnknownSince, e.Jobs[0].Spared = s.now.Add(time.Hour), s.now, true
	e.Jobs[2].Client = true
	s.must(s.Accept(s.Context(), noLimit, e))
	c := queue.Claim{Now: s.now, Max: 10, Lease: lease}
	jobs, next, err := s.Claim(s.Context(), c)
	s.must(err)
	if len(jobs) > 0 || next.IsZero() || next.After(s.now.Add(time.Hour)) {
		s.Errorf("%d jobs before they are due; the next at %s", len(jobs), next)
	}
	for i := 2; i >= 0; i-- {
		c.Now = c.Now.Add(time.Hour)
		jobs, _, err := s.Claim(s.Context(), c)
		s.must(err)
		if len(jobs) != 1 || jobs[0].Index != i {
			s.Fatalf("claimed %v, want job %d", jobs, i)
		}
		if jobs[0].Status != queue.Sending {
			s.Errorf("a claimed job is %s", jobs[0].Status)
		}
		s.sameJob(&jobs[0], &e.Jobs[i])
	}
	s.statuses(e.Message.ID, queue.Sending, queue.Sending, queue.Sending)
	s.counts(0, 3, 0)
}

// claimTakesTurns checks that a destination with many jobs delays no other.
func (s *suite) claimTakesTurns() {
	var entries []*queue.Entry
	for range 50 {
		entries = append(entries, s.entry("busy", "busy", "busy", "busy"))
	}
	for i := range 20 {
		entries = append(entries, s.entry(fmt.Sprint("other ", i)))
	}
	s.must(s.Accept(s.Context(), noLimit, entries...))
	seen := map[string]int{}
	c := queue.Claim{Now: s.now, Max: 5, Slots: queue.NewSlots(100), Lease: lease}
	for range 10 {
		jobs, _, err := s.Claim(s.Context(), c)
		s.must(err)
		for _, j := range jobs {
			seen[j.Destination]++
		}
	}
	if seen["busy"] != 4 || len(seen) != 21 {
		s.Errorf("%d of the busy destination, %d destinations", seen["busy"], len(seen))
	}
}

// held checks that the caller of Accept can send the message itself.
func (s *suite) held() {
	e := s.entry("a", "a", "a")
	e.Jobs[0].Status, e.Jobs[1].Status = queue.Sending, queue.Sending
	s.must(s.Accept(s.Context(), noLimit, e))
	s.statuses(e.Message.ID, queue.Sending, queue.Sending, queue.Queued)
	jobs := s.claim(s.now)
	if len(jobs) != 1 || jobs[0].Index != 2 {
		s.Fatalf("claimed %v", jobs)
	}
	s.settle(e.Jobs[0], queue.Delivered)
	s.statuses(e.Message.ID, queue.Delivered, queue.Sending, queue.Sending)
	s.reopenStore()
	s.statuses(e.Message.ID, queue.Delivered, queue.Queued, queue.Queued)
	if jobs := s.claim(s.now); len(jobs) != 2 {
		s.Errorf("claimed %v", jobs)
	}
}

func (s *suite) settleDelivered() {
	e := s.add("a", "b")
	jobs := s.claim(s.now)
	s.settle(jobs[0], queue.Delivered)
	s.load(e.Message.ID)
	s.settle(jobs[1], queue.Failed)
	s.gone(e.Message.ID)
	s.counts(0, 0, 0)
	s.reopenStore()
	s.gone(e.Message.ID)
	got := s.get(e.Message.ID)
	for i, want := range []queue.Status{queue.Delivered, queue.Failed} {
		j := got.Jobs[jobs[i].Index]
		if j.Status != want || string(j.Result) != "result: "+want.String() || j.Attempts != 1 || j.State != nil || !j.Updated.Equal(s.now) {
			s.Errorf("job %+v", j)
		}
	}
	if jobs := s.claim(s.now.Add(week)); len(jobs) > 0 {
		s.Errorf("claimed %v", jobs)
	}
}

func (s *suite) settleLater() {
	e := s.add("a")
	due := s.now.Add(time.Hour)
	s.settle(s.claim(s.now)[0], queue.Queued, func(j *queue.Job) { j.Due, j.State = due, []byte("progress") })
	for range 2 {
		j := s.get(e.Message.ID).Jobs[0]
		if j.Status != queue.Queued || string(j.State) != "progress" || string(j.Result) != "result: queued" || j.Attempts != 1 ||
			!j.Due.Equal(due) {
			s.Errorf("job %+v", j)
		}
		if jobs := s.claim(due.Add(-time.Second)); len(jobs) > 0 {
			s.Errorf("claimed %v", jobs)
		}
		s.reopenStore()
	}
	jobs := s.claim(due)
	if len(jobs) != 1 || string(jobs[0].State) != "progress" || jobs[0].Attempts != 1 {
		s.Fatalf("claimed %v", jobs)
	}
	s.settle(jobs[0], queue.Delivered)
	s.gone(e.Message.ID)
}

// settleShared checks that a job can be postponed, that it is not lost in a
// crash, and that only a claimed one can be.
func (s *suite) settleShared() {
	e := s.add("a")
	due := s.now.Add(time.Hour)
	j := s.claim(s.now)[0]
	j.Status, j.Due, j.Updated = queue.Queued, due, s.now
	t := &queue.Settlement{Job: &j, Shared: &queue.SharedFailure{Began: s.now, Until: due}}
	s.must(s.Settle(s.Context(), t))
	s.wantErr(s.Settle(s.Context(), t), queue.ErrNotClaimed)
	s.counts(1, 0, 0)
	listed, err := s.List(s.Context(), queue.JobID{}, 10, queue.Queued)
	s.must(err)
	if len(listed) != 1 || !listed[0].Due.Equal(due) {
		s.Errorf("listed %+v", listed)
	}
	if j := s.get(e.Message.ID).Jobs[0]; j.Status != queue.Queued || !j.Due.Equal(due) {
		s.Errorf("job %+v", j)
	}
	if jobs := s.claim(due.Add(-time.Second)); len(jobs) > 0 {
		s.Errorf("claimed %v", jobs)
	}
	jobs := s.claim(due)
	if len(jobs) != 1 || !jobs[0].Due.Equal(due) {
		s.Fatalf("claimed %+v", jobs)
	}
	j = jobs[0]
	j.Status, j.Due, j.Updated = queue.Queued, due.Add(time.Hour), s.now
	s.must(s.Settle(s.Context(), t))
	_, err = s.Wake(s.Context(), queue.Wake{Now: due, Destinations: []queue.Hash{s.Hash("a")}})
	s.must(err)
	if jobs = s.claim(due); len(jobs) != 1 || !jobs[0].Due.Equal(due) {
		s.Errorf("claimed %+v", jobs)
	}
	s.reopenStore()
	jobs = s.claim(due.Add(time.Hour))
	if len(jobs) != 1 || jobs[0].JobID != e.Jobs[0].JobID {
		s.Fatalf("claimed %+v", jobs)
	}
	s.settle(jobs[0], queue.Delivered)
	s.gone(e.Message.ID)
}

func (s *suite) settleTwice() {
	e := s.add("a", "b")
	unclaimed := e.Jobs[0]
	unclaimed.Status = queue.Delivered
	s.wantErr(s.Settle(s.Context(), &queue.Settlement{Job: &unclaimed}), queue.ErrNotClaimed)
	jobs := s.claim(s.now)
	s.settle(jobs[0], queue.Delivered)
	again := jobs[0]
	again.Status = queue.Dead
	s.wantErr(s.Settle(s.Context(), &queue.Settlement{Job: &again}), queue.ErrNotClaimed)
	if got := s.get(e.Message.ID).Jobs[jobs[0].Index].Status; got != queue.Delivered {
		s.Errorf("the job is %s", got)
	}
	var settled atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			j := jobs[1]
			j.Status, j.Updated = queue.Delivered, s.now
			switch err := s.Settle(s.Context(), &queue.Settlement{Job: &j}); {
			case err == nil:
				settled.Add(1)
			case !errors.Is(err, queue.ErrNotClaimed):
				s.Error(err)
			}
		})
	}
	wg.Wait()
	if n := settled.Load(); n != 1 {
		s.Errorf("settled %d times", n)
	}
	s.gone(e.Message.ID)
}

// settleNext checks that the message about a dead delivery is stored only
// together with the delivery's outcome.
func (s *suite) settleNext() {
	e := s.add("a")
	j := s.claim(s.now)[0]
	j.Status, j.Updated = queue.Dead, s.now
	next := s.entry("b")
	next.Message.Files = []queue.File{{Size: 3, ReaderAt: bytes.NewReader([]byte("abc"))}}
	s.must(s.Settle(s.Context(), &queue.Settlement{Job: &j, Next: next}))
	s.statuses(e.Message.ID, queue.Dead)
	s.statuses(next.Message.ID, queue.Queued)
	other := s.entry("c")
	s.wantErr(s.Settle(s.Context(), &queue.Settlement{Job: &j, Next: other}), queue.ErrNotClaimed)
	_, err := s.Get(s.Context(), other.Message.ID)
	s.wantErr(err, queue.ErrNotFound)
	s.reopenStore()
	if m := s.load(next.Message.ID); len(m.Files) != 1 {
		s.Errorf("%d files", len(m.Files))
	}
	if jobs := s.claim(s.now); len(jobs) != 1 || jobs[0].Message != next.Message.ID {
		s.Errorf("claimed %v", jobs)
	}
}

func (s *suite) reopen() {
	e := s.add("a", "b")
	later := s.entry("a")
	later.Jobs[0].Due = s.now.Add(time.Hour)
	s.must(s.Accept(s.Context(), noLimit, later))
	s.claim(s.now)
	s.counts(1, 2, 0)
	s.reopenStore()
	s.counts(3, 0, 0)
	s.statuses(e.Message.ID, queue.Queued, queue.Queued)
	if jobs := s.claim(s.now); len(jobs) != 2 {
		s.Errorf("claimed %v", jobs)
	}
	if jobs := s.claim(s.now.Add(time.Hour)); len(jobs) != 1 {
		s.Errorf("claimed %v", jobs)
	}
}

func (s *suite) idempotencyKey() {
	e := s.entry("a")
	e.Message.Key, e.Message.Request = "key", []byte("request")
	s.must(s.Accept(s.Context(), noLimit, e))
	check := func() {
		s.Helper()
		for request, same := range map[string]bool{"request": true, "another request": false} {
			other := s.entry("a")
			other.Message.Key, other.Message.Request = "key", []byte(request)
			duplicate, ok := errors.AsType[*queue.DuplicateError](s.Accept(s.Context(), noLimit, other))
			if !ok || duplicate.ID != e.Message.ID || duplicate.SameRequest != same {
				s.Errorf("%s: %+v", request, duplicate)
			}
			later := s.entry("a") // of a version that makes another key of the same
			later.Message.Key, later.Message.EarlierKey, later.Message.Request = "later key", "key", []byte(request)
			duplicate, ok = errors.AsType[*queue.DuplicateError](s.Accept(s.Context(), noLimit, later))
			if !ok || duplicate.ID != e.Message.ID || duplicate.SameRequest != same {
				s.Errorf("%s with an earlier key: %+v", request, duplicate)
			}
			_, err := s.Get(s.Context(), other.Message.ID)
			s.wantErr(err, queue.ErrNotFound)
		}
	}
	check()
	s.reopenStore()
	check()
	s.settle(s.claim(s.now)[0], queue.Delivered)
	check()
	another := s.entry("a")
	another.Message.Key = "another key"
	s.must(s.Accept(s.Context(), noLimit, another))

	// One of several concurrent entries is accepted.
	var accepted, refused atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		e := s.entry("a")
		e.Message.Key = "key of several"
		wg.Go(func() {
			err := s.Accept(s.Context(), noLimit, e)
			if _, ok := errors.AsType[*queue.DuplicateError](err); ok {
				refused.Add(1)
			} else if err == nil {
				accepted.Add(1)
			} else {
				s.Error(err)
			}
		})
	}
	wg.Wait()
	if accepted.Load() != 1 || refused.Load() != 7 {
		s.Errorf("%d accepted, %d refused", accepted.Load(), refused.Load())
	}
}

func (s *suite) cancel() {
	e := s.entry("a", "b", "c", "d")
	e.Jobs[0].Status = queue.Sending
	e.Jobs[1].Status = queue.Dead
	s.must(s.Accept(s.Context(), noLimit, e))
	n, err := Cancel(s.Context(), s, e.Message.ID, s.now, queue.Queued)
	s.must(err)
	if n != 2 {
		s.Errorf("%d cancelled", n)
	}
	s.statuses(e.Message.ID, queue.Sending, queue.Dead, queue.Cancelled, queue.Cancelled)
	if jobs := s.claim(s.now); len(jobs) > 0 {
		s.Errorf("claimed %v", jobs)
	}
	s.load(e.Message.ID)
	s.settle(e.Jobs[0], queue.Delivered)
	s.reopenStore()
	s.statuses(e.Message.ID, queue.Delivered, queue.Dead, queue.Cancelled, queue.Cancelled)
	s.counts(0, 0, 1)
	if n, err := Cancel(s.Context(), s, e.Message.ID, s.now, queue.Queued); n != 0 || err != nil {
		s.Errorf("%d, %v cancelled again", n, err)
	}

	// Concurrent claims and cancellations get different jobs.
	all := make([]string, 200)
	for i := range all {
		all[i] = fmt.Sprint("d", i)
	}
	e = s.add(all...)
	claimed := make(chan []queue.Job)
	go func() {
		jobs, _, err := s.Claim(s.Context(), queue.Claim{Now: s.now, Max: 100, Lease: lease})
		if err != nil {
			s.Error(err)
		}
		claimed <- jobs
	}()
	n, err = Cancel(s.Context(), s, e.Message.ID, s.now, queue.Queued)
	s.must(err)
	jobs := <-claimed
	sending := 0
	for _, j := range s.get(e.Message.ID).Jobs {
		if j.Status == queue.Sending {
			sending++
		}
	}
	if n+len(jobs) > 200 || sending != len(jobs) {
		s.Errorf("%d cancelled, %d claimed, %d sending", n, len(jobs), sending)
	}
}

func (s *suite) dead() {
	e := s.entry("a", "b", "c")
	e.Message.Key = "key"
	s.must(s.Accept(s.Context(), noLimit, e))
	other := s.add("a")
	for _, j := range s.claim(s.now) {
		status := queue.Dead
		if j.Destination == "b" {
			status = queue.Delivered
		}
		s.settle(j, status, func(j *queue.Job) { j.Reason = "no such user" })
	}
	s.reopenStore()
	s.counts(0, 0, 3)
	jobs, err := s.List(s.Context(), queue.JobID{}, 10, queue.Dead)
	s.must(err)
	if len(jobs) != 3 || jobs[0].Destination != "a" || jobs[1].Destination != "c" || jobs[2].Message != other.Message.ID {
		s.Fatalf("dead: %v", jobs)
	}
	if j := jobs[0]; j.Status != queue.Dead || j.Reason != "no such user" || string(j.State) != "state of a" ||
		string(j.Result) != "result: dead" {
		s.Errorf("dead: %+v", j)
	}
	page, err := s.List(s.Context(), jobs[0].JobID, 1, queue.Dead)
	s.must(err)
	if len(page) != 1 || page[0].JobID != jobs[1].JobID {
		s.Errorf("the second page: %v", page)
	}
	all, err := s.List(s.Context(), queue.JobID{}, 10, queue.Queued, queue.Sending, queue.Dead)
	s.must(err)
	if len(all) != 3 {
		s.Errorf("all: %v", all)
	}
	waiting, err := s.List(s.Context(), queue.JobID{}, 10, queue.Queued, queue.Sending)
	s.must(err)
	if len(waiting) != 0 {
		s.Errorf("waiting: %v", waiting)
	}
	if jobs := s.claim(s.now.Add(week)); len(jobs) > 0 {
		s.Errorf("claimed %v", jobs)
	}

	now := s.now.Add(week)
	r, err := Retry(s.Context(), s, e.Message.ID, now, now.Add(time.Hour))
	s.must(err)
	if r != (queue.Retried{Dead: 2}) {
		s.Errorf("retried: %+v", r)
	}
	s.counts(2, 0, 1)
	// A waiting message is not forgotten.
	_, err = s.Forget(s.Context(), now.Add(week), noLimit)
	s.must(err)
	s.reopenStore()
	s.load(e.Message.ID)
	s.statuses(e.Message.ID, queue.Queued, queue.Delivered, queue.Queued)
	_, err = s.Get(s.Context(), other.Message.ID)
	s.wantErr(err, queue.ErrNotFound)
	retried := s.claim(now)
	if len(retried) != 2 {
		s.Fatalf("claimed %v", retried)
	}
	for _, j := range retried {
		if j.Attempts != 0 || j.Reason != "" || !j.Expires.Equal(now.Add(time.Hour)) || string(j.State) == "" {
			s.Errorf("retried: %+v", j)
		}
		s.settle(j, queue.Delivered, func(j *queue.Job) { j.Updated = now })
	}
	s.gone(e.Message.ID)
	n, err := s.Forget(s.Context(), now, noLimit)
	s.must(err)
	if n != 0 {
		s.Errorf("%d are forgotten at once", n)
	}
	n, err = s.Forget(s.Context(), now.Add(time.Second), noLimit)
	s.must(err)
	if n != 1 {
		s.Errorf("%d are forgotten", n)
	}
}

func (s *suite) drop() {
	e := s.entry("a", "b", "c")
	e.Jobs[0].Status = queue.Dead
	e.Jobs[1].Status = queue.Sending
	s.must(s.Accept(s.Context(), noLimit, e))
	n, err := Cancel(s.Context(), s, e.Message.ID, s.now, queue.Queued, queue.Dead)
	s.must(err)
	if n != 2 {
		s.Errorf("%d dropped", n)
	}
	s.statuses(e.Message.ID, queue.Cancelled, queue.Sending, queue.Cancelled)
	s.load(e.Message.ID)
	s.settle(e.Jobs[1], queue.Delivered)
	s.gone(e.Message.ID)
	s.counts(0, 0, 0)
}

func (s *suite) forgetByTime() {
	var ids []uuid.UUID
	start := s.now
	for i := range 4 {
		s.now = start.Add(time.Duration(i) * time.Hour)
		e := s.entry("a")
		e.Message.Key = fmt.Sprint("key ", i)
		e.Message.Files = []queue.File{{Size: 3, ReaderAt: bytes.NewReader([]byte("abc"))}}
		s.must(s.Accept(s.Context(), noLimit, e))
		ids = append(ids, e.Message.ID)
		switch i {
		case 0, 1:
			s.settle(s.claim(s.now)[0], queue.Delivered)
		case 2:
			s.settle(s.claim(s.now)[0], queue.Dead)
		}
	}
	forget := func(before time.Time, want int) {
		s.Helper()
		n, err := s.Forget(s.Context(), before, noLimit)
		s.must(err)
		if n != want {
			s.Errorf("%d are forgotten, want %d", n, want)
		}
	}
	forget(start, 0)
	forget(start.Add(time.Second), 1)
	_, err := s.Get(s.Context(), ids[0])
	s.wantErr(err, queue.ErrNotFound)
	s.statuses(ids[1], queue.Delivered)
	again := s.entry("a")
	again.Message.Key, again.Jobs[0].Due = "key 0", s.now.Add(week)
	s.must(s.Accept(s.Context(), noLimit, again)) // the key is free
	s.reopenStore()
	s.load(ids[2])
	forget(start.Add(week), 2)
	_, err = s.Get(s.Context(), ids[2])
	s.wantErr(err, queue.ErrNotFound)
	s.gone(ids[2])
	s.statuses(ids[3], queue.Queued)
	s.counts(2, 0, 0)
}

// forgetBySize checks that the results of delivered messages are forgotten
// first, and dead jobs and idempotency keys only if they alone are too large,
// with a line in the log. Once the oldest was forgotten without one, so that a dead
// letter was gone and a message with a known key was delivered again.
func (s *suite) forgetBySize() {
	var ids []uuid.UUID
	for i := range 12 {
		s.now = s.now.Add(time.Second)
		e := s.entry("a")
		e.Message.Body = data(100_000)
		e.Jobs[0].Status = queue.Delivered
		switch i % 3 {
		case 0:
			e.Jobs[0].Status = queue.Dead
		case 1:
			e.Message.Key = fmt.Sprint("key ", i)
		}
		s.must(s.Accept(s.Context(), noLimit, e))
		ids = append(ids, e.Message.ID)
	}
	forget := func(maxSize int64, want int, gone func(i int) bool) {
		s.Helper()
		n, err := s.Forget(s.Context(), s.now.Add(-week), maxSize)
		s.must(err)
		if n != want {
			s.Errorf("at most %d bytes: %d are forgotten, want %d", maxSize, n, want)
		}
		for i, id := range ids {
			if _, err := s.Get(s.Context(), id); (err != nil) != gone(i) {
				s.Errorf("at most %d bytes: message %d: %v", maxSize, i, err)
			}
		}
	}
	s.reopenStore()
	// The dead ones are large, because their texts are kept; the others have about
	// 1 KB each.
	forget(450_000, 0, func(int) bool { return false })
	forget(408_000, 4, func(i int) bool { return i%3 == 2 })
	s.counts(0, 0, 4)
	again := s.entry("a")
	again.Message.Key = "key 1"
	if _, ok := errors.AsType[*queue.DuplicateError](s.Accept(s.Context(), noLimit, again)); !ok {
		s.Error("a key is forgotten")
	}
	s.reopenStore()
	early := func() []observer.LoggedEntry { return s.logs.FilterFieldKey("messages").All() }
	if lines := early(); len(lines) > 0 {
		s.Errorf("results are in the log: %v", lines)
	}
	forget(250_000, 3, func(i int) bool { return i%3 == 2 || i < 4 })
	if lines := early(); len(lines) != 1 || lines[0].ContextMap()["messages"] != int64(3) {
		s.Errorf("the log has %v", lines)
	}
	s.counts(0, 0, 2)
	s.must(s.Accept(s.Context(), noLimit, again))
}

func (s *suite) full() {
	e := s.entry("a", "b")
	e.Message.Body = data(1000)
	max := 2 * e.Size()
	s.must(s.Accept(s.Context(), max, e))
	second := s.entry("a", "b")
	second.Message.Body = data(1000)
	s.must(s.Accept(s.Context(), max, second))
	s.wantErr(s.Accept(s.Context(), max, s.entry("a")), queue.ErrFull)
	s.reopenStore()
	s.wantErr(s.Accept(s.Context(), max, s.entry("a")), queue.ErrFull)
	for _, j := range s.claim(s.now) {
		if j.Message == e.Message.ID {
			s.settle(j, queue.Dead) // a dead job does not wait
		}
	}
	s.must(s.Accept(s.Context(), max, s.entry("a")))
}

func (s *suite) stats() {
	st, err := s.Stats(s.Context())
	s.must(err)
	if st != (queue.Stats{}) {
		s.Errorf("an empty store: %+v", st)
	}
	first := s.now
	e := s.add("a", "b")
	s.now = s.now.Add(time.Second)
	second := s.add("a", "b", "c")
	second.Jobs = nil
	check := func(oldest time.Time, bytes int64) {
		s.Helper()
		st, err := s.Stats(s.Context())
		s.must(err)
		// The time can be precise to a second.
		if d := st.Oldest.Sub(oldest); d < -time.Second/2 || d > time.Second/2 || st.Bytes != bytes {
			s.Errorf("%+v, want %s and %d bytes", st, oldest, bytes)
		}
	}
	size := s.entry("a", "b").Size()
	check(first, size+s.entry("a", "b", "c").Size())
	s.reopenStore()
	check(first, size+s.entry("a", "b", "c").Size())
	s.counts(5, 0, 0)
	for _, j := range s.claim(s.now) {
		if j.Message == second.Message.ID {
			s.settle(j, queue.Dead)
		}
	}
	check(first, e.Size())
	s.counts(0, 2, 3)
}

func (s *suite) notFound() {
	id := queue.NewID()
	_, err := s.Get(s.Context(), id)
	s.wantErr(err, queue.ErrNotFound)
	s.gone(id)
	_, err = Cancel(s.Context(), s, id, s.now, queue.Queued)
	s.wantErr(err, queue.ErrNotFound)
	_, err = Retry(s.Context(), s, id, s.now, s.now)
	s.wantErr(err, queue.ErrNotFound)
	s.wantErr(s.Settle(s.Context(), &queue.Settlement{Job: &queue.Job{JobID: queue.JobID{Message: id}, Status: queue.Delivered}}),
		queue.ErrNotClaimed)
	if _, next, err := s.Claim(s.Context(), queue.Claim{Now: s.now, Max: 1, Lease: lease}); err != nil || next.Before(s.now) &&
		!next.IsZero() {
		s.Errorf("an empty store: %s, %v", next, err)
	}
}

func (s *suite) closed() {
	e := s.add("a")
	s.must(s.Close())
	s.must(s.Close())
	s.wantErr(s.Accept(s.Context(), noLimit, s.entry("a")), queue.ErrClosed)
	_, err := s.Get(s.Context(), e.Message.ID)
	s.wantErr(err, queue.ErrClosed)
	_, err = s.Stats(s.Context())
	s.wantErr(err, queue.ErrClosed)
	_, _, err = s.Claim(s.Context(), queue.Claim{Now: s.now, Max: 1, Lease: lease})
	s.wantErr(err, queue.ErrClosed)
	s.Store = s.handle()
	s.statuses(e.Message.ID, queue.Queued)
}

func (s *suite) manyJobs() {
	destinations := make([]string, racetest.Amount(1000, 200))
	for i := range destinations {
		destinations[i] = fmt.Sprint("destination ", i)
	}
	e := s.add(destinations...)
	s.reopenStore()
	jobs := s.claim(s.now)
	if len(jobs) != len(destinations) {
		s.Fatalf("claimed %d", len(jobs))
	}
	var wg sync.WaitGroup
	for part := range slices.Chunk(jobs, len(jobs)/10) {
		wg.Go(func() {
			for _, j := range part {
				j.Status, j.Updated = queue.Delivered, s.now
				if err := s.Settle(s.Context(), &queue.Settlement{Job: &j}); err != nil {
					s.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s.gone(e.Message.ID)
	for i, j := range s.get(e.Message.ID).Jobs {
		if j.Index != i || j.Status != queue.Delivered {
			s.Errorf("job %d: %+v", i, j)
		}
	}
}

// concurrency checks that each job is claimed once while many are accepted,
// claimed and settled at the same time.
func (s *suite) concurrency() {
	const writers, readers = 8, 4
	each := racetest.Amount(50, 15)
	var accepting, settling sync.WaitGroup
	var given sync.Map
	var settled atomic.Int64
	for range writers {
		accepting.Go(func() {
			for i := range each {
				if err := s.Accept(s.Context(), noLimit, s.entry("a", fmt.Sprint("b", i))); err != nil {
					s.Error(err)
				}
			}
		})
	}
	total := int64(writers * each * 2)
	for range readers {
		settling.Go(func() {
			for settled.Load() < total && !s.Failed() {
				jobs, _, err := s.Claim(s.Context(), queue.Claim{Now: s.now, Max: 10, Lease: lease})
				if err != nil {
					s.Error(err)
				}
				if len(jobs) == 0 {
					time.Sleep(time.Millisecond)
				}
				for _, j := range jobs {
					if j.Attempts == 1 {
						if _, again := given.LoadOrStore(j.JobID, true); again {
							s.Errorf("job %v is given out twice", j.JobID)
						}
					}
					j.Attempts++
					j.Status, j.Updated = queue.Queued, s.now // again
					if j.Attempts == 2 {
						j.Status = queue.Delivered
						settled.Add(1)
					}
					if err := s.Settle(s.Context(), &queue.Settlement{Job: &j}); err != nil {
						s.Error(err)
					}
				}
			}
		})
	}
	accepting.Wait()
	settling.Wait()
	s.counts(0, 0, 0)
	if st, err := s.Stats(s.Context()); err != nil || st.Bytes != s.empty.Bytes {
		s.Errorf("%+v, %v", st, err)
	}
}
