package queuetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// put sets records by their names; "" removes one.
func (s *suite) put(h queue.Store, records map[string]string) {
	s.Helper()
	byName := map[queue.Hash]queue.Record{}
	for name, text := range records {
		byName[h.Hash(name)] = queue.Record{Data: []byte(text), Due: s.now.Add(time.Hour)}
	}
	s.must(h.Update(s.Context(), putting(byName)))
}

// putting returns an update that puts records; one without content is removed.
func putting(records map[queue.Hash]queue.Record) *queue.Update {
	return &queue.Update{Names: slices.Collect(maps.Keys(records)), Decide: func(tx *queue.Tx) error {
		for name, r := range records {
			tx.Put(name, r)
		}
		return nil
	}}
}

// supersede is a change of a job.
func (s *suite) supersede(j *queue.Job) { j.Status, j.Updated = queue.Superseded, s.now }

// keeping returns an update that names a record and changes none.
func (s *suite) keeping(decide func(tx *queue.Tx) error) *queue.Update {
	return &queue.Update{Names: []queue.Hash{s.Hash("incident")}, Decide: decide}
}

func (s *suite) wantRecord(name, want string) {
	s.Helper()
	if got, err := s.Record(s.Context(), s.Hash(name)); err != nil || string(got) != want {
		s.Errorf("the record %s is %q, %v; want %q", name, got, err, want)
	}
}

func (s *suite) records() {
	s.wantRecord("a", "")
	s.put(s.Store, map[string]string{"a": "first", "b": "other"})
	s.wantRecord("a", "first")
	s.put(s.Store, map[string]string{"a": "second"})
	var seen []string
	u := &queue.Update{Names: []queue.Hash{s.Hash("b"), s.Hash("none"), s.Hash("a")}}
	refuse := errors.New("no")
	u.Decide = func(tx *queue.Tx) error {
		seen = nil
		for _, name := range u.Names {
			seen = append(seen, string(tx.Get(name)))
			tx.Put(name, queue.Record{Data: []byte("refused")})
		}
		return refuse
	}
	if err := s.Update(s.Context(), u); !errors.Is(err, refuse) {
		s.Errorf("an update that is refused: %v, want the error of Decide", err)
	}
	if !slices.Equal(seen, []string{"other", "", "second"}) {
		s.Errorf("the records are %q", seen)
	}
	s.transaction()
	for range 2 {
		s.wantRecord("a", "second")
		s.wantRecord("b", "other")
		s.wantRecord("none", "")
		s.reopenStore()
	}
	s.put(s.Store, map[string]string{"a": "", "none": ""})
	s.wantRecord("a", "")
	s.reopenStore()
	s.wantRecord("a", "")
}

// transaction checks that an update reads what it has put, that what it does not change stays as it
// was, and that it fails if it uses a record that it does not name.
func (s *suite) transaction() {
	s.Helper()
	a, b, c := s.Hash("a"), s.Hash("b"), s.Hash("c")
	var read []string
	s.must(s.Update(s.Context(), &queue.Update{Names: []queue.Hash{a, b, c}, Decide: func(tx *queue.Tx) error {
		tx.Put(a, queue.Record{Data: []byte("third")})
		read = []string{string(tx.Get(a))}
		tx.Delete(a)
		read = append(read, string(tx.Get(a)))
		tx.Put(a, queue.Record{Data: []byte("second")})
		tx.Put(c, queue.Record{Data: []byte("new")})
		tx.Delete(c)
		return nil
	}}))
	if !slices.Equal(read, []string{"third", ""}) {
		s.Errorf("an update reads %q of what it has put", read)
	}
	s.wantRecord("c", "")
	for what, use := range map[string]func(*queue.Tx){
		"reads": func(tx *queue.Tx) { tx.Get(b) }, "puts": func(tx *queue.Tx) { tx.Put(b, queue.Record{Data: []byte("x")}) },
		"deletes": func(tx *queue.Tx) { tx.Delete(b) },
	} {
		err := s.Update(s.Context(), &queue.Update{Names: []queue.Hash{a}, Decide: func(tx *queue.Tx) error {
			tx.Put(a, queue.Record{Data: []byte("lost")})
			use(tx)
			return nil
		}})
		if err == nil {
			s.Errorf("an update that %s a record which it does not name is made", what)
		}
	}
}

// sharedRemoval checks that an update which has waited for another handle's update that removes the
// record is stored. It was lost once, and the messages of an incident were sent at once.
func (s *suite) sharedRemoval() {
	other := s.handle()
	s.put(s.Store, map[string]string{"a": "first"})
	began := make(chan bool, 1)
	removal := &queue.Update{Names: []queue.Hash{s.Hash("a")}, Decide: func(tx *queue.Tx) error {
		select {
		case began <- true:
		default: // it is repeated
		}
		// The other update waits meanwhile. If it begins later, this test shows
		// nothing.
		time.Sleep(200 * time.Millisecond)
		tx.Delete(s.Hash("a"))
		return nil
	}}
	var wg sync.WaitGroup
	wg.Go(func() { s.must(s.Update(s.Context(), removal)) })
	<-began
	s.put(other, map[string]string{"a": "second"})
	wg.Wait()
	s.wantRecord("a", "second")
}

// groups checks that the records of a group are listed in pages and counted, also after a restart,
// and that a record which is removed or moved to another group is not.
func (s *suite) groups() {
	group, other := s.Hash("group"), s.Hash("other group")
	put := func(name string, data string, group queue.Hash) {
		s.must(s.Update(s.Context(), putting(map[queue.Hash]queue.Record{s.Hash(name): {Data: []byte(data), Due: s.now, Group: group}})))
	}
	want := map[string]bool{}
	for i := range 10 {
		put(strconv.Itoa(i), "text "+strconv.Itoa(i), group)
		want["text "+strconv.Itoa(i)] = true
	}
	put("alone", "x", queue.Hash{})
	put("3", "", group)
	put("4", "moved", other)
	put("5", "changed", group)
	delete(want, "text 3")
	delete(want, "text 4")
	delete(want, "text 5")
	want["changed"] = true
	for range 2 {
		got := map[string]bool{}
		var after queue.Hash
		for {
			page, err := s.Group(s.Context(), group, after, 3)
			s.must(err)
			for _, r := range page {
				if bytes.Compare(r.Name[:], after[:]) <= 0 {
					s.Errorf("%x follows %x", r.Name, after)
				}
				got[string(r.Data)], after = true, r.Name
			}
			if len(page) < 3 {
				break
			}
		}
		if !maps.Equal(got, want) {
			s.Errorf("the group has %v, want %v", got, want)
		}
		if page, err := s.Group(s.Context(), other, queue.Hash{}, 10); err != nil || len(page) != 1 || string(page[0].Data) != "moved" {
			s.Errorf("the other group has %v, %v", page, err)
		}
		sizes, err := s.GroupSizes(s.Context())
		s.must(err)
		if want := map[queue.Hash]int{group: len(want), other: 1}; !maps.Equal(sizes, want) {
			s.Errorf("the groups have the sizes %v, want %v", sizes, want)
		}
		s.reopenStore()
	}
}

// dueNames returns the names of the records that are due, in pages of n.
func (s *suite) dueNames(now time.Time, n int) (names []queue.Hash) {
	s.Helper()
	var after queue.DuePlace
	for {
		page, more, err := s.DueRecords(s.Context(), now, after, n)
		s.must(err)
		if len(page) > n || more && len(page) == 0 {
			s.Fatalf("a page of %d has %d records; more %v", n, len(page), more)
		}
		for _, r := range page {
			names, after = append(names, r.Name), r.DuePlace
		}
		if !more {
			return names
		}
	}
}

// dueRecords checks which records are due and which are too many, and that records which are
// due at the same time have an order, so that pages leave none out.
func (s *suite) dueRecords() {
	const same = 7 // of these are due at the same time, after the others
	all := map[queue.Hash]queue.Record{}
	for i := range 10 {
		all[s.Hash(strconv.Itoa(i))] = queue.Record{Data: []byte(strconv.Itoa(i)), Due: s.now.Add(time.Duration(i) * time.Minute)}
	}
	for i := range same {
		all[s.Hash("same "+strconv.Itoa(i))] = queue.Record{Data: []byte("same"), Due: s.now.Add(time.Hour)}
	}
	s.must(s.Update(s.Context(), putting(all)))
	for range 2 {
		for _, tt := range []struct{ minutes, n, want int }{
			{0, 100, 1}, {4, 100, 5}, {4, 1, 5}, {4, 5, 5}, {4, 3, 5}, {-1, 100, 0}, {60, 2, 10 + same}, {60, 100, 10 + same},
		} {
			names := s.dueNames(s.now.Add(time.Duration(tt.minutes)*time.Minute), tt.n)
			seen := map[queue.Hash]bool{}
			for i, name := range names {
				if seen[name] = true; i < 10 && name != s.Hash(strconv.Itoa(i)) {
					s.Errorf("%+v: record %d is not due first", tt, i)
				}
			}
			if len(names) != tt.want || len(seen) != tt.want {
				s.Errorf("%+v: %d records, %d different ones", tt, len(names), len(seen))
			}
		}
		for _, tt := range []struct{ keep, n, want int }{
			{100, 100, 0}, {10 + same, 100, 0}, {8 + same, 100, 2}, {8, 3, 3}, {0, 100, 10 + same},
		} {
			names, err := s.SurplusRecords(s.Context(), tt.keep, tt.n)
			s.must(err)
			if len(names) != tt.want || tt.want > 0 && names[0] != s.Hash("0") {
				s.Errorf("%+v: %d records", tt, len(names))
			}
		}
		page, _, err := s.DueRecords(s.Context(), s.now.Add(time.Minute), queue.DuePlace{}, 10)
		if err != nil || len(page) != 2 || string(page[1].Data) != "1" || !page[1].Due.Equal(s.now.Add(time.Minute)) {
			s.Errorf("what is due is %+v, %v", page, err)
		}
		s.reopenStore()
	}
}

// largeDueRecords checks that a page of large records is short, and that the pages have all.
func (s *suite) largeDueRecords() {
	const n = 5
	for i := range n {
		r := queue.Record{Data: data(queue.MaxDueSize * 2 / 5), Due: s.now.Add(time.Duration(i) * time.Second)}
		u := putting(map[queue.Hash]queue.Record{s.Hash(strconv.Itoa(i)): r})
		u.Size = queue.MaxDueSize / 2
		s.must(s.Update(s.Context(), u))
	}
	page, more, err := s.DueRecords(s.Context(), s.now.Add(time.Hour), queue.DuePlace{}, 10)
	if err != nil || !more || len(page) == 0 || len(page) > 3 {
		s.Errorf("a page has %d records, more %v, %v", len(page), more, err)
	}
	if names := s.dueNames(s.now.Add(time.Hour), 10); len(names) != n {
		s.Errorf("%d records are due", len(names))
	}
}

// heldJobs checks that a job which is held waits, and is not claimed before it is
// released.
func (s *suite) heldJobs() {
	e := s.entry("a", "b")
	e.Jobs[0].Status = queue.Held
	s.must(s.Accept(s.Context(), noLimit, e))
	for range 2 {
		s.counts(2, 0, 0)
		s.statuses(e.Message.ID, queue.Held, queue.Queued)
		held, err := s.List(s.Context(), queue.JobID{}, 10, queue.Held)
		s.must(err)
		if len(held) != 1 || held[0].Index != 0 || held[0].Status != queue.Held {
			s.Errorf("listed %+v", held)
		}
		s.reopenStore()
	}
	jobs := s.claim(s.now)
	if len(jobs) != 1 || jobs[0].Index != 1 {
		s.Fatalf("claimed %v", jobs)
	}
	s.settle(jobs[0], queue.Delivered)
	s.load(e.Message.ID)
	n, err := s.Forget(s.Context(), s.now.Add(week), 0)
	s.must(err)
	if n != 0 {
		s.Error("a message is forgotten though a job is held")
	}
	release := func(j *queue.Job) { j.Status, j.Due, j.Updated = queue.Queued, s.now, s.now }
	s.must(s.Update(s.Context(), s.keeping(func(tx *queue.Tx) error {
		_, err := tx.StatusOf(e.Jobs[0].JobID)
		tx.Change(e.Jobs[0].JobID, release)
		return err
	})))
	jobs = s.claim(s.now)
	if len(jobs) != 1 || jobs[0].Index != 0 || string(jobs[0].State) != "state of a" {
		s.Fatalf("claimed %+v", jobs)
	}
	s.settle(jobs[0], queue.Delivered)
	s.gone(e.Message.ID)
}

// updateJobs checks which statuses an update sees, and that it changes jobs.
func (s *suite) updateJobs() {
	e := s.entry("a", "b", "c", "d", "e")
	e.Jobs[0].Status, e.Jobs[3].Status, e.Jobs[4].Status = queue.Held, queue.Dead, queue.Delivered
	e.Jobs[2].Status = queue.Sending
	for i := range e.Jobs {
		e.Jobs[i].Incident, e.Jobs[i].NewState, e.Jobs[i].Note = "db1", true, []byte("note")
	}
	s.must(s.Accept(s.Context(), noLimit, e))
	ids := []queue.JobID{e.Jobs[3].JobID, {Message: queue.NewID()}, e.Jobs[0].JobID, e.Jobs[1].JobID, e.Jobs[2].JobID}
	want := []queue.Status{queue.Dead, 0, queue.Held, queue.Queued, queue.Sending}
	by := queue.JobID{Message: queue.NewID(), Index: 3}
	s.must(s.Update(s.Context(), s.keeping(func(tx *queue.Tx) error {
		got, err := tx.Status(ids...)
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			s.Errorf("statuses %v, want %v", got, want)
		}
		tx.Change(e.Jobs[3].JobID, func(j *queue.Job) {
			if j.Incident != "db1" || !j.NewState || string(j.Note) != "note" {
				s.Errorf("the job is %+v", j)
			}
			j.Status, j.By, j.Updated = queue.Superseded, by, s.now
		})
		tx.Change(e.Jobs[1].JobID, func(j *queue.Job) { j.Status, j.By, j.Updated = queue.Superseded, by, s.now })
		return err
	})))
	s.counts(1, 1, 0)
	s.statuses(e.Message.ID, queue.Held, queue.Superseded, queue.Sending, queue.Superseded, queue.Delivered)
	if got := s.get(e.Message.ID).Jobs[1].By; got != by {
		s.Errorf("replaced by %v, want %v", got, by)
	}
	if jobs := s.claim(s.now); len(jobs) != 0 {
		s.Errorf("claimed %v", jobs)
	}
	s.must(s.Update(s.Context(), s.keeping(func(tx *queue.Tx) error {
		_, err := tx.StatusOf(e.Jobs[0].JobID)
		tx.Change(e.Jobs[0].JobID, func(j *queue.Job) { j.Status, j.Updated = queue.Cancelled, s.now })
		return err
	})))
	j := e.Jobs[2]
	s.settle(j, queue.Delivered)
	s.gone(e.Message.ID)
	s.reopenStore()
	s.statuses(e.Message.ID, queue.Cancelled, queue.Superseded, queue.Delivered, queue.Superseded, queue.Delivered)
	s.counts(0, 0, 0)
	if st, err := s.Stats(s.Context()); err != nil || st.Bytes != s.empty.Bytes {
		s.Errorf("%+v, %v", st, err)
	}
}

// updateRetries checks that an update can queue a dead job again.
func (s *suite) updateRetries() {
	e := s.entry("a")
	e.Jobs[0].Status = queue.Dead
	s.must(s.Accept(s.Context(), noLimit, e))
	s.must(s.Update(s.Context(), s.keeping(func(tx *queue.Tx) error {
		_, err := tx.StatusOf(e.Jobs[0].JobID)
		tx.Change(e.Jobs[0].JobID, func(j *queue.Job) { j.Hurry(s.now, s.now.Add(time.Hour)); j.Updated = s.now })
		return err
	})))
	s.counts(1, 0, 0)
	jobs := s.claim(s.now)
	if len(jobs) != 1 {
		s.Fatalf("claimed %v", jobs)
	}
	s.settle(jobs[0], queue.Delivered)
	s.gone(e.Message.ID)
}

// updateOfEntry checks that an entry is stored with what its update decides, or
// not at all.
func (s *suite) updateOfEntry() {
	first := s.add("a")
	e := s.entry("a", "b")
	decide := func(e *queue.Entry, fail error) *queue.Update {
		return &queue.Update{
			Names: []queue.Hash{s.Hash("incident")},
			Decide: func(tx *queue.Tx) error {
				_, err := tx.StatusOf(first.Jobs[0].JobID)
				e.Jobs[0].Status, e.Jobs[1].Status = queue.Sending, queue.Held
				tx.Put(s.Hash("incident"), queue.Record{Data: []byte("accepted"), Due: s.now})
				tx.Change(first.Jobs[0].JobID, s.supersede)
				return errors.Join(err, fail)
			},
		}
	}
	refuse := errors.New("no")
	e.Update = decide(e, refuse)
	if err := s.Accept(s.Context(), noLimit, e); !errors.Is(err, refuse) {
		s.Errorf("an entry whose update is refused: %v, want the error of Decide", err)
	}
	s.statuses(first.Message.ID, queue.Queued)
	if _, err := s.Get(s.Context(), e.Message.ID); !errors.Is(err, queue.ErrNotFound) {
		s.Error(err)
	}
	e.Update = decide(e, nil)
	s.must(s.Accept(s.Context(), noLimit, e))
	s.wantRecord("incident", "accepted")
	s.statuses(first.Message.ID, queue.Superseded)
	s.gone(first.Message.ID)
	s.statuses(e.Message.ID, queue.Sending, queue.Held)
	s.counts(1, 1, 0)
	if jobs := s.claim(s.now); len(jobs) != 0 {
		s.Errorf("claimed %v", jobs)
	}
	s.settle(e.Jobs[0], queue.Delivered)
	first = s.add("a")
	full := s.entry("a", "b")
	full.Update = decide(full, nil)
	s.wantErr(s.Accept(s.Context(), 0, full), queue.ErrFull)
	s.statuses(first.Message.ID, queue.Queued)
	withFile := s.entry("a", "b")
	withFile.Message.Files = []queue.File{{Size: 3, ReaderAt: bytes.NewReader([]byte("abc"))}}
	withFile.Update = s.keeping(func(*queue.Tx) error {
		withFile.Jobs[0].Status = queue.Held
		return nil
	})
	s.must(s.Accept(s.Context(), noLimit, withFile))
	s.statuses(withFile.Message.ID, queue.Held, queue.Queued)
	keyed := s.entry("a", "b")
	keyed.Message.Key = "key"
	keyed.Update = s.keeping(func(*queue.Tx) error { return nil })
	s.must(s.Accept(s.Context(), noLimit, keyed))
	again := s.entry("a", "b")
	again.Message.Key, again.Update = "key", keyed.Update
	if d, ok := errors.AsType[*queue.DuplicateError](s.Accept(s.Context(), noLimit, again)); !ok || d.ID != keyed.Message.ID {
		s.Errorf("a second message with the same key: %v", d)
	}
}

// updateOfSettlement checks that an outcome is stored with what its update decides,
// or not at all.
func (s *suite) updateOfSettlement() {
	e, next := s.entry("a", "b"), s.entry("fallback")
	e.Jobs[1].Status = queue.Held
	s.must(s.Accept(s.Context(), noLimit, e))
	settlement := func(status queue.Status, decide func(tx *queue.Tx, j *queue.Job, t *queue.Settlement)) *queue.Settlement {
		jobs := s.claim(s.now)
		if len(jobs) != 1 {
			s.Fatalf("claimed %v", jobs)
		}
		j := jobs[0]
		j.Status, j.Updated = status, s.now
		t := &queue.Settlement{Job: &j, Next: next}
		t.Update = &queue.Update{
			Names: []queue.Hash{s.Hash("incident")},
			Decide: func(tx *queue.Tx) error {
				got, err := tx.Status(e.Jobs[0].JobID, e.Jobs[1].JobID)
				if err == nil && (got[0] != queue.Sending && j.Index == 0 || got[1] == 0) {
					s.Errorf("statuses %v", got)
				}
				decide(tx, &j, t)
				return err
			},
		}
		return t
	}
	// Dead in the eyes of the caller, but the update knows better.
	s.must(s.Settle(s.Context(), settlement(queue.Dead, func(tx *queue.Tx, j *queue.Job, t *queue.Settlement) {
		j.Status, j.By, t.Next = queue.Superseded, e.Jobs[1].JobID, nil
		tx.Put(s.Hash("incident"), queue.Record{Data: []byte("missed"), Due: s.now})
		tx.Change(e.Jobs[1].JobID, func(j *queue.Job) { j.Status, j.Due, j.Updated = queue.Queued, s.now, s.now })
	})))
	s.wantRecord("incident", "missed")
	s.statuses(e.Message.ID, queue.Superseded, queue.Queued)
	if _, err := s.Get(s.Context(), next.Message.ID); !errors.Is(err, queue.ErrNotFound) {
		s.Errorf("the next message: %v", err)
	}
	t := settlement(queue.Dead, func(tx *queue.Tx, _ *queue.Job, _ *queue.Settlement) { tx.Delete(s.Hash("incident")) })
	s.must(s.Settle(s.Context(), t))
	s.wantRecord("incident", "")
	s.statuses(e.Message.ID, queue.Superseded, queue.Dead)
	s.statuses(next.Message.ID, queue.Queued)
	s.put(s.Store, map[string]string{"incident": "kept"})
	s.wantErr(s.Settle(s.Context(), t), queue.ErrNotClaimed)
	s.wantRecord("incident", "kept")
	s.counts(1, 0, 1)
}

// updatesAtOnce checks that updates of one record follow each other, and that a job
// is not claimed while an update that has asked for its status changes it.
// decidedTogether checks that of many entries, and then of many outcomes, that are stored at the same
// moment, each update sees what the others have changed, and that one that fails changes nothing and
// concerns no other: it may share a transaction with them.
func (s *suite) decidedTogether() {
	const n, failing, duplicate, lost = 60, 7, 11, 13
	all, first := s.Hash("count"), s.entry("b")
	first.Jobs[0].Status = queue.Held
	first.Message.Key = "key"
	s.must(s.Accept(s.Context(), noLimit, first))
	refused := errors.New("refused")
	update := func(i int, tookOver *bool) *queue.Update {
		own := s.Hash(fmt.Sprint("own ", i))
		return &queue.Update{Names: []queue.Hash{all, own}, Decide: func(tx *queue.Tx) error {
			count, _ := strconv.Atoi(string(tx.Get(all)))
			if tx.Put(own, queue.Record{Data: []byte("kept"), Due: s.now}); i == failing {
				return refused
			}
			tx.Put(all, queue.Record{Data: []byte(strconv.Itoa(count + 1)), Due: s.now})
			status, err := tx.StatusOf(first.Jobs[0].JobID)
			if *tookOver = status == queue.Held; *tookOver {
				tx.Change(first.Jobs[0].JobID, s.supersede)
			}
			return err
		}}
	}
	entries, errs, took := make([]*queue.Entry, n), make([]error, n), make([]bool, n)
	var wg sync.WaitGroup
	for i := range entries {
		e := s.entry("a")
		if entries[i], e.Update = e, update(i, &took[i]); i == duplicate {
			e.Message.Key = "key"
		}
		wg.Go(func() { errs[i] = s.Accept(s.Context(), noLimit, e) })
	}
	wg.Wait()
	tookOver := 0
	for i, err := range errs {
		_, isDuplicate := errors.AsType[*queue.DuplicateError](err)
		if errors.Is(err, refused) != (i == failing) || isDuplicate != (i == duplicate) || err != nil && i != failing && i != duplicate {
			s.Errorf("entry %d: %v", i, err)
		}
		if _, got := s.Get(s.Context(), entries[i].Message.ID); (got == nil) != (err == nil) {
			s.Errorf("entry %d: %v, and then %v", i, err, got)
		}
		if err == nil && took[i] {
			tookOver++
		}
	}
	s.wantRecord("count", strconv.Itoa(n-2))
	s.wantRecord(fmt.Sprint("own ", failing), "")
	s.wantRecord(fmt.Sprint("own ", duplicate), "")
	s.wantRecord("own 0", "kept")
	if tookOver != 1 {
		s.Errorf("%d entries have replaced the job", tookOver)
	}
	s.statuses(first.Message.ID, queue.Superseded)
	jobs := s.claim(s.now)
	if len(jobs) != n-2 {
		s.Fatalf("claimed %d", len(jobs))
	}
	j := jobs[lost]
	s.settle(j, queue.Delivered) // so that it is not claimed any more
	for i := range jobs {
		j, t := jobs[i], new(bool)
		j.Status, j.Updated = queue.Delivered, s.now
		wg.Go(func() { errs[i] = s.Settle(s.Context(), &queue.Settlement{Job: &j, Update: update(i, t)}) })
	}
	wg.Wait()
	for i := range jobs {
		if err := errs[i]; errors.Is(err, refused) != (i == failing) || errors.Is(err, queue.ErrNotClaimed) != (i == lost) ||
			err != nil && i != failing && i != lost {
			s.Errorf("outcome %d: %v", i, err)
		}
	}
	s.wantRecord("count", strconv.Itoa(n-2+len(jobs)-2))
	s.counts(0, 1, 0)
}

func (s *suite) updatesAtOnce() { s.concurrentUpdates(s.Store) }

func (s *suite) concurrentUpdates(handles ...queue.Store) {
	each := racetest.Amount(40, 15)
	const writers = 4
	var claimed, replaced sync.Map
	var updating, claiming sync.WaitGroup
	stop := make(chan struct{})
	for n := range writers {
		h := handles[n%len(handles)]
		claiming.Go(func() {
			for {
				jobs, _, err := h.Claim(s.Context(), queue.Claim{Now: s.now, Max: 3, Lease: lease})
				if err != nil {
					s.Error(err)
				}
				for _, j := range jobs {
					claimed.Store(j.JobID, true)
				}
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
		updating.Go(func() {
			for range each {
				e := s.entry("a")
				e.Jobs[0].Incident = "db1"
				if err := h.Accept(s.Context(), noLimit, e); err != nil {
					s.Error(err)
				}
				id, was := e.Jobs[0].JobID, queue.Status(0)
				name := h.Hash("count")
				u := &queue.Update{
					Names: []queue.Hash{name},
					Decide: func(tx *queue.Tx) (err error) {
						count, _ := strconv.Atoi(string(tx.Get(name)))
						tx.Put(name, queue.Record{Data: []byte(strconv.Itoa(count + 1)), Due: s.now})
						if was, err = tx.StatusOf(id); was == queue.Queued {
							tx.Change(id, s.supersede)
						}
						return err
					},
				}
				if err := h.Update(s.Context(), u); err != nil {
					s.Error(err)
				}
				if was == queue.Queued {
					replaced.Store(id, true)
				}
			}
		})
	}
	updating.Wait()
	close(stop)
	claiming.Wait()
	s.wantRecord("count", strconv.Itoa(writers*each))
	n := 0
	replaced.Range(func(id, _ any) bool {
		n++
		if _, both := claimed.Load(id); both {
			s.Errorf("job %v is replaced and claimed", id)
		}
		return true
	})
	st, err := s.Stats(s.Context())
	s.must(err)
	if got := st.Queued + st.Sending + n; got != writers*each {
		s.Errorf("%d of %d jobs wait or are replaced", got, writers*each)
	}
}

// updatesAfterEntries checks that an update that reads the record of an entry or of a
// settlement finds the status that its job has since then, also of a job that only rules
// know. A store that makes several changes in one transaction did not: a message passed a
// digest of older ones that was stored at the same moment.
func (s *suite) updatesAfterEntries() {
	const waits, ended = "waits ", "ended "
	name := s.Hash("newest")
	names := []queue.Hash{name}
	change := func(content string, id queue.JobID) *queue.Update {
		return putting(map[queue.Hash]queue.Record{name: {Data: append([]byte(content), id.Message[:]...), Due: s.now}})
	}
	stop := make(chan struct{})
	var reading sync.WaitGroup
	for range 4 {
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s.must(s.Update(s.Context(), &queue.Update{
					Names: names,
					Decide: func(tx *queue.Tx) error {
						newest := tx.Get(name)
						if len(newest) == 0 {
							return nil
						}
						content, id := string(newest[:len(waits)]), queue.JobID{Message: uuid.UUID(newest[len(waits):])}
						status, err := tx.StatusOf(id)
						if err == nil && status.Waits() != (content == waits) {
							s.Errorf("the record has %q, and the status of the job is %q", content, status)
						}
						return err
					},
				}))
			}
		})
	}
	for range racetest.Amount(200, 50) {
		e := s.entry("a")
		id := e.Jobs[0].JobID
		e.Jobs[0].Ruled, e.Jobs[0].Status = []byte("digest"), queue.Sending
		e.Update = change(waits, id)
		s.must(s.Accept(s.Context(), noLimit, e))
		j := e.Jobs[0]
		j.Status, j.Updated = queue.Delivered, s.now
		s.must(s.Settle(s.Context(), &queue.Settlement{Job: &j, Update: change(ended, id)}))
	}
	close(stop)
	reading.Wait()
}

// sharedUpdates is updatesAtOnce with several handles.
func (s *suite) sharedUpdates() { s.concurrentUpdates(s.Store, s.handle(), s.handle()) }

// alert returns a message about an incident. One whose text begins with + adds
// something; others tell a new state.
func (s *suite) alert(text, incident string, destinations ...string) *queue.Entry {
	e := &queue.Entry{Message: &queue.Message{ID: uuid.Must(uuid.NewV7()), Body: []byte(text)}}
	for _, d := range destinations {
		e.Jobs = append(e.Jobs, queue.Job{Status: queue.Queued, Destination: d, Incident: incident, NewState: text[0] != '+', Note: []byte(text)})
	}
	return e
}
