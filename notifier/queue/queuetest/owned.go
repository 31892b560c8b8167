package queuetest

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"sync"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// ownedName returns the name of the n-th record that the owner of a list has added. Names
// sort by n.
func (s *suite) ownedName(list string, n int) (name queue.Hash) {
	prefix := s.Hash(list)
	copy(name[:], prefix[:8])
	binary.BigEndian.PutUint64(name[8:], uint64(n))
	return name
}

// ownedRecords checks that records whose names an update chooses are stored with an entry
// and without one, in the order in which their owner has counted them, also when several
// handles add some at once, that they survive a restart, and that they can be removed.
func (s *suite) ownedRecords() { s.runOwned(s.Store) }

func (s *suite) sharedOwned() { s.runOwned(s.Store, s.handle(), s.handle()) }

func (s *suite) runOwned(handles ...queue.Store) {
	const each = 20
	owner, group := s.Hash("owner"), s.Hash("group")
	add := func(data []byte) *queue.Update {
		return &queue.Update{
			Names: []queue.Hash{owner}, Size: len(data),
			Decide: func(tx *queue.Tx) error {
				n, _ := strconv.Atoi(string(tx.Get(owner)))
				n++
				tx.Put(owner, queue.Record{Data: []byte(strconv.Itoa(n)), Due: s.now})
				tx.PutOwned(s.ownedName("list", n), queue.Record{Data: append([]byte(strconv.Itoa(n)+" "), data...), Due: s.now, Group: group})
				return nil
			},
		}
	}
	var wg sync.WaitGroup
	for _, store := range handles {
		wg.Go(func() {
			for i := range each {
				if i%2 == 0 {
					s.must(store.Update(s.Context(), add(bytes.Repeat([]byte("x"), 30_000))))
					continue
				}
				e := s.entry("a")
				e.Update = add([]byte("small"))
				s.must(store.Accept(s.Context(), noLimit, e))
			}
		})
	}
	wg.Wait()
	all := each * len(handles)
	check := func(first int) {
		s.Helper()
		records, err := s.Group(s.Context(), group, queue.Hash{}, 2*all)
		s.must(err)
		if len(records) != all-first {
			s.Errorf("%d records, want %d", len(records), all-first)
		}
		for i, r := range records {
			n := strconv.Itoa(first + i + 1)
			if number, _, _ := bytes.Cut(r.Data, []byte(" ")); string(number) != n || r.Name != s.ownedName("list", first+i+1) {
				s.Errorf("record %s is number %s, with the name %x", n, number, r.Name)
			}
		}
	}
	check(0)
	before := s.recordBytes()
	if least := int64(len(handles) * each / 2 * 30_000); before < least {
		s.Errorf("the records take %d bytes, which is less than %d", before, least)
	}
	s.reopenStore()
	check(0)
	names := []queue.Hash{owner}
	s.must(s.Update(s.Context(), &queue.Update{Names: names, Decide: func(tx *queue.Tx) error {
		for n := range each / 2 {
			tx.DeleteOwned(s.ownedName("list", n+1))
		}
		return nil
	}}))
	check(each / 2)
	s.reopenStore()
	check(each / 2)
	for n := each / 2; n < all; n++ {
		s.must(s.Update(s.Context(), &queue.Update{Names: names, Decide: func(tx *queue.Tx) error {
			tx.Delete(owner)
			tx.DeleteOwned(s.ownedName("list", n+1))
			tx.DeleteOwned(s.ownedName("no list", n))
			return nil
		}}))
	}
	check(all)
	if left := s.recordBytes(); left != 0 {
		s.Errorf("no records take %d bytes", left)
	}
}

// recordBytes returns the size of the records of the test.
func (s *suite) recordBytes() int64 {
	s.Helper()
	st, err := s.Stats(s.Context())
	s.must(err)
	return st.Records - s.empty.Records
}
