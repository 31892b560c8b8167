package queuetest

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// manyRecords compares what is due, and the pages of groups, with a list, while hundreds of
// records are added, changed, moved and removed.
func (s *suite) manyRecords() {
	type row struct {
		name, group queue.Hash
		due         time.Time
	}
	groups := []queue.Hash{{}, s.Hash("group"), s.Hash("other group")}
	want := map[queue.Hash]row{}
	order := func(all []row) []queue.Hash {
		slices.SortFunc(all, func(a, b row) int { return cmp.Or(a.due.Compare(b.due), bytes.Compare(a.name[:], b.name[:])) })
		names := make([]queue.Hash, len(all))
		for i, r := range all {
			names[i] = r.name
		}
		return names
	}
	check := func() {
		s.Helper()
		var all, due []row
		ofGroup := map[queue.Hash][]queue.Hash{}
		for _, r := range want {
			if all = append(all, r); !r.due.After(s.now) {
				due = append(due, r)
			}
			ofGroup[r.group] = append(ofGroup[r.group], r.name)
		}
		// No two are due at the same time, so that their order is known.
		if got := s.dueNames(s.now, 70); !slices.Equal(got, order(due)) {
			s.Errorf("%d records are due, want %d", len(got), len(due))
		}
		for _, tt := range []struct{ keep, n int }{{0, len(all)}, {len(all) / 2, len(all)}, {len(all) / 2, 10}} {
			got, err := s.SurplusRecords(s.Context(), tt.keep, tt.n)
			if want := order(all)[:min(tt.n, len(all)-tt.keep)]; err != nil || !slices.Equal(got, want) {
				s.Errorf("%d records are too many for %d, want %d; %v", len(got), tt.keep, len(want), err)
			}
		}
		for _, group := range groups[1:] {
			var got []queue.Hash
			for more := true; more; {
				var after queue.Hash
				if len(got) > 0 {
					after = got[len(got)-1]
				}
				page, err := s.Group(s.Context(), group, after, 70)
				s.must(err)
				for _, r := range page {
					got = append(got, r.Name)
				}
				more = len(page) == 70
			}
			slices.SortFunc(ofGroup[group], func(a, b queue.Hash) int { return bytes.Compare(a[:], b[:]) })
			if !slices.Equal(got, ofGroup[group]) {
				s.Errorf("a group has %d records, want %d", len(got), len(ofGroup[group]))
			}
		}
	}
	const records, atOnce = 600, 100
	times := rand.Perm(10 * records)
	for range 20 {
		changed := map[queue.Hash]queue.Record{}
		for _, i := range rand.Perm(records)[:atOnce] {
			name := s.Hash(strconv.Itoa(i))
			changed[name] = queue.Record{}
			if rand.IntN(3) == 0 {
				delete(want, name)
				continue
			}
			r := row{name, groups[rand.IntN(len(groups))], s.now.Add(time.Duration(times[0]-5*records) * time.Second)}
			times = times[1:]
			want[name] = r
			changed[name] = queue.Record{Data: []byte(strconv.Itoa(rand.Int())), Due: r.due, Group: r.group}
		}
		s.must(s.Update(s.Context(), putting(changed)))
	}
	check()
	s.reopenStore()
	check()
}

// recordSizes checks that records count for the size of what is kept, and that only what
// adds something is refused when that is reached.
func (s *suite) recordSizes() {
	sizes := func() (all, records int64) {
		s.Helper()
		st, err := s.Stats(s.Context())
		s.must(err)
		return st.Bytes, st.Records
	}
	update := func(maxSize int64, text string) error {
		u := putting(map[queue.Hash]queue.Record{s.Hash("a"): {Data: []byte(text), Due: s.now}})
		u.MaxSize = maxSize
		return s.Update(s.Context(), u)
	}
	large := string(data(10_000))
	s.put(s.Store, map[string]string{"a": large, "b": "small"})
	all, records := sizes()
	if all != records || records < 10_000 || records > 11_000 {
		s.Errorf("the records take %d bytes, and all %d", records, all)
	}
	s.put(s.Store, map[string]string{"a": large}) // nothing changes
	e := s.entry("a")
	s.wantErr(s.Accept(s.Context(), records+e.Size()-1, e), queue.ErrFull)
	s.must(s.Accept(s.Context(), records+e.Size(), e))
	for range 2 {
		if got, of := sizes(); of != records || got != records+e.Size() {
			s.Errorf("all take %d bytes, and the records %d; want %d and %d", got, of, records+e.Size(), records)
		}
		s.reopenStore()
	}
	s.wantErr(update(records, large+"more"), queue.ErrFull)
	s.wantRecord("a", large)
	s.must(update(noLimit, large+"more"))
	s.must(update(0, large+"even more")) // it ends something
	s.must(update(records, "less"))
	s.wantRecord("a", "less")
	s.wantErr(update(100, "no less"), queue.ErrFull)
	s.settle(s.claim(s.now)[0], queue.Delivered)
	s.put(s.Store, map[string]string{"a": "", "b": "", "none": ""})
	for range 2 {
		if got, of := sizes(); of != 0 || got != 0 {
			s.Errorf("an empty store has %d bytes, and records of %d", got, of)
		}
		s.reopenStore()
	}
}
