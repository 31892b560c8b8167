package postgres

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/queuetest"
)

// down returns a job that has failed. Its destination is down until its next turn at a time.
func down(tb testing.TB, s *Store, j queue.Job, until time.Time) {
	tb.Helper()
	now := s.Now()
	j.Status, j.Updated, j.Due = queue.Queued, now, now.Add(time.Hour)
	j.Attempts++
	if err := s.Settle(tb.Context(), &queue.Settlement{Job: &j, Failure: &queue.SharedFailure{Began: now, Until: until}}); err != nil {
		tb.Fatal(err)
	}
}

// claimOne claims a job at a time.
func claimOne(tb testing.TB, s *Store, now time.Time) queue.Job {
	tb.Helper()
	jobs, _, err := s.Claim(tb.Context(), queue.Claim{Now: now, Max: 1, Lease: time.Minute})
	if err != nil || len(jobs) != 1 {
		tb.Fatalf("claimed %v, %v", jobs, err)
	}
	return jobs[0]
}

// rowsOf returns the versions of the rows of jobs, by message.
func rowsOf(tb testing.TB, dsn string) map[string]string {
	tb.Helper()
	versions := map[string]string{}
	for _, row := range execute(tb, dsn, "SELECT message::TEXT, xmin::TEXT || ctid::TEXT FROM notify_queue_jobs")[0].Rows {
		versions[string(row[0])] = string(row[1])
	}
	return versions
}

// TestFailureChangesOneRow checks that an attempt that fails for all waiting jobs does not write
// their rows again.
func TestFailureChangesOneRow(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	s := open(t, dsn)
	const n = 40
	for range n {
		if err := s.Accept(t.Context(), 1<<40, newEntry("text", "json://down")); err != nil {
			t.Fatal(err)
		}
	}
	now := s.Now()
	down(t, s, claimOne(t, s, now), now.Add(time.Minute))
	before := rowsOf(t, dsn)
	for range 3 {
		now = now.Add(time.Minute)
		down(t, s, claimOne(t, s, now), now.Add(time.Minute))
	}
	after := rowsOf(t, dsn)
	maps.DeleteFunc(after, func(message, version string) bool { return before[message] == version })
	if len(before) != n || len(after) != 3 {
		t.Errorf("%d rows of %d were written by 3 attempts", len(after), len(before))
	}
	// What waits is not in the range that claims read.
	rows := execute(t, dsn, fmt.Sprintf("SELECT 1 FROM notify_queue_jobs WHERE status = 1 AND due <= %d",
		now.Add(time.Hour/2).UnixMicro()))[0].Rows
	if len(rows) > 0 {
		t.Errorf("%d are due in half an hour", len(rows))
	}
}

// TestKnownAmongMany checks that the jobs of a known destination are found first, although
// many others have waited for longer than can be read.
func TestKnownAmongMany(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	a, b := open(t, dsn), open(t, dsn)
	var entries []*queue.Entry
	for i := range 2 * dueAtOnce {
		e := newEntry("text", fmt.Sprint("json://host", i))
		e.Jobs[0].Due = e.Jobs[0].Due.Add(-time.Hour)
		entries = append(entries, e)
	}
	last := newEntry("text", "json://known")
	if err := b.Accept(t.Context(), 1<<40, append(entries, last)...); err != nil {
		t.Fatal(err)
	}
	known := queue.Health{Destination: a.Hash("json://known"), Known: true, LastSuccess: time.Now(), Changed: time.Now()}
	if err := b.SaveHealth(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	b.Close() // so that only the tables have these jobs
	slots := queue.NewSlots(1000, known)
	for n := range 5 {
		jobs, _, err := a.Claim(t.Context(), queue.Claim{Now: time.Now(), Max: 8, Slots: slots, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(jobs, func(j queue.Job) bool { return j.JobID == last.Jobs[0].JobID }) {
			return
		}
		if n == 4 {
			t.Error("the job of the known destination is not among 40 claimed ones")
		}
	}
}

// TestRowsOfClients checks that rows of clients' destinations go when nothing waits, and jobs of
// other destinations stay.
func TestRowsOfClients(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	s := open(t, dsn)
	rows := func() (n int) {
		t.Helper()
		s.recovered = time.Time{}
		s.due.changed()
		if _, _, err := s.Claim(t.Context(), queue.Claim{Now: s.Now(), Max: 1, Slots: queue.NewSlots(0), Lease: time.Minute}); err != nil {
			t.Fatal(err)
		}
		return len(execute(t, dsn, "SELECT 1 FROM notify_queue_destinations")[0].Rows)
	}
	client, own := newEntry("text", "json://client"), newEntry("text", "json://own")
	client.Jobs[0].Client = true
	other := newEntry("text", "json://client")
	other.Jobs[0].Client = true
	if err := s.Accept(t.Context(), 1<<40, client, other, own); err != nil {
		t.Fatal(err)
	}
	now := s.Now()
	for range 2 { // one of them is parked
		j := claimOne(t, s, now)
		h := queue.Health{Destination: s.Hash(j.Destination), Client: j.Client, Failures: 3, DownSince: now, Changed: now}
		if err := s.SaveHealth(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		down(t, s, j, now.Add(-time.Second)) // its next turn is in a second, because it is never in the past
	}
	if n := rows(); n != 2 {
		t.Fatalf("%d rows", n)
	}
	execute(t, dsn, "UPDATE notify_queue_destinations SET stored = 0, until = 0")
	if n := rows(); n != 2 {
		t.Errorf("%d rows while jobs wait", n)
	}
	for _, e := range []*queue.Entry{client, other, own} {
		if _, err := queuetest.Cancel(t.Context(), s, e.Message.ID, now, queue.Queued); err != nil {
			t.Fatal(err)
		}
	}
	rows() // nothing is parked any more
	if n := rows(); n != 1 {
		t.Errorf("%d rows, want that of the operator's destination", n)
	}
}

// TestTurnsOfOlderTables checks that jobs and states that were stored before destinations had
// turns are found and used when the tables are brought up to date.
func TestTurnsOfOlderTables(t *testing.T) {
	t.Parallel()
	dsn := sharedServer(t).schema(t)
	s := open(t, dsn)
	now := s.Now()
	var entries []*queue.Entry
	for _, d := range []string{"json://down", "json://down", "json://down", "json://known"} {
		entries = append(entries, newEntry("text", d))
	}
	if err := s.Accept(t.Context(), 1<<40, entries...); err != nil {
		t.Fatal(err)
	}
	known := queue.Health{Destination: s.Hash("json://known"), Known: true, LastSuccess: now, Changed: now}
	isDown := queue.Health{Destination: s.Hash("json://down"), Failures: 3, DownSince: now.Add(-time.Hour), Changed: now}
	if err := s.SaveHealth(t.Context(), known, isDown); err != nil {
		t.Fatal(err)
	}
	s.Close()
	execute(t, dsn, `DROP INDEX notify_queue_jobs_turn;
		ALTER TABLE notify_queue_jobs DROP COLUMN expires, DROP COLUMN parked;
		CREATE INDEX notify_queue_jobs_destination ON notify_queue_jobs (destination, due) WHERE status = 1;
		ALTER TABLE notify_queue_destinations DROP COLUMN client, DROP COLUMN known, DROP COLUMN failed, DROP COLUMN until, DROP COLUMN parks;
		UPDATE notify_queue_version SET version = 3`)
	s = open(t, dsn)
	if rows := execute(t, dsn, "SELECT known::TEXT FROM notify_queue_destinations ORDER BY known")[0].Rows; len(rows) != 2 ||
		string(rows[0][0]) != "0" || string(rows[1][0]) != "1" {
		t.Errorf("known: %q", rows)
	}
	if all, err := s.Health(t.Context(), 0); err != nil || len(all) != 2 {
		t.Errorf("states: %+v, %v", all, err)
	}
	slots := queue.NewSlots(100, known, isDown)
	claim := func(at time.Time, want ...string) (jobs []queue.Job) {
		t.Helper()
		jobs, _, err := s.Claim(t.Context(), queue.Claim{Now: at, Max: 10, Slots: slots, Lease: time.Minute})
		var got []string
		for _, j := range jobs {
			slots.Release(j.JobID)
			got = append(got, j.Destination)
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("claimed %q, %v; want %q", got, err, want)
		}
		return jobs
	}
	jobs := claim(s.Now(), "json://down", "json://known")
	until := s.Now().Add(10 * time.Minute)
	fails := func(j queue.Job) {
		t.Helper()
		if j.Destination == "json://down" {
			down(t, s, j, until)
		}
	}
	for _, j := range jobs {
		fails(j)
	}
	// When the others expire was not stored plainly. Each fails once more, and is parked then.
	for range 2 {
		j := claim(s.Now(), "json://down")[0]
		j.Status, j.Updated, j.Due = queue.Queued, s.Now(), until
		if err := s.Settle(t.Context(), &queue.Settlement{Job: &j, Shared: &queue.SharedFailure{Began: s.Now(), Until: until}}); err != nil {
			t.Fatal(err)
		}
	}
	claim(s.Now())
	claim(until, "json://down")
	claim(until)
}
