package queuetest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Secrets tests that a store that seals what it keeps can change its secret. open opens a handle on
// one store with a secret, and with older ones. With later, the clock of the handle is several minutes
// ahead, so that no other process is taken to seal under an old secret.
func Secrets(t *testing.T, open func(t *testing.T, later bool, secret string, older ...string) (queue.Store, error)) {
	t.Helper()
	const first, second, third = "the first secret, of the tests", "the second secret, of the tests", "the third secret, of the tests"
	begin := func(later bool, secret string, older ...string) *suite {
		t.Helper()
		store, err := open(t, later, secret, older...)
		if err != nil {
			t.Fatal(err)
		}
		return &suite{T: t, Store: store, now: time.Now().Truncate(time.Microsecond)}
	}
	refused := func(secret string, older ...string) {
		t.Helper()
		if store, err := open(t, false, secret, older...); err == nil {
			store.Close()
			t.Errorf("the secrets %q, %q are accepted", secret, older)
		} else if want := "after the new one"; !bytes.Contains([]byte(err.Error()), []byte(want)) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	var kept []*queue.Entry
	var names []queue.Hash
	add := func(s *suite, text string) {
		t.Helper()
		e := s.entry(text)
		e.Message.Key, e.Message.Request, e.Message.Body = "key of "+text, []byte(text), []byte("text of "+text)
		e.Message.Files = []queue.File{{Size: int64(len(text)), ReaderAt: bytes.NewReader([]byte(text))}}
		s.must(s.Accept(t.Context(), noLimit, e))
		name := s.Hash("record of " + text)
		s.must(s.Update(t.Context(), &queue.Update{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
			tx.Put(name, queue.Record{Data: []byte("record of " + text), Due: s.now.Add(time.Hour), Group: s.Hash("group")})
			return nil
		}}))
		s.must(s.SaveHealth(t.Context(), queue.Health{Destination: s.Hash(text), Host: text, Known: true, About: text, Changed: s.now}))
		kept, names = append(kept, e), append(names, name)
	}
	check := func(s *suite) {
		t.Helper()
		for i, e := range kept {
			text := string(e.Message.Request)
			if s.Hash("record of "+text) != names[i] {
				t.Errorf("%s: the name of a record has changed", text)
			}
			if data, err := s.Record(t.Context(), names[i]); err != nil || string(data) != "record of "+text {
				t.Errorf("%s: the record is %q, %v", text, data, err)
			}
			m := s.load(e.Message.ID)
			file := make([]byte, len(text))
			_, err := m.Files[0].ReadAt(file, 0)
			if string(m.Body) != "text of "+text || string(file) != text || err != nil {
				t.Errorf("%s: the text is %q, the file %q, %v", text, m.Body, file, err)
			}
			if got := s.get(e.Message.ID); string(got.Message.Request) != text || got.Jobs[0].Destination != text {
				t.Errorf("%s: the message is %+v", text, got)
			}
			again := s.entry(text)
			again.Message.Key, again.Message.Request = e.Message.Key, e.Message.Request
			err = s.Accept(t.Context(), noLimit, again)
			if d, ok := errors.AsType[*queue.DuplicateError](err); !ok || d.ID != e.Message.ID || !d.SameRequest {
				t.Errorf("%s: with the same idempotency key: %v", text, err)
			}
		}
		if records, err := s.Group(t.Context(), s.Hash("group"), queue.Hash{}, 10); err != nil || len(records) != len(kept) {
			t.Errorf("the group has %d records, %v, want %d", len(records), err, len(kept))
		}
		if states, err := s.Health(t.Context(), 0); err != nil || len(states) != len(kept) {
			t.Errorf("%d states of destinations, %v, want %d", len(states), err, len(kept))
		}
	}
	reseal := func(s *suite) queue.OldSecrets {
		t.Helper()
		var old queue.OldSecrets
		for range 4 { // a shared store is clean when nothing was found
			var err error
			old, err = s.Store.(queue.Resealer).Reseal(t.Context())
			s.must(err)
		}
		return old
	}

	s := begin(false, first)
	add(s, "one")
	if old := reseal(s); old.Set || old.Needed() {
		t.Errorf("with one secret: %+v", old)
	}
	s.must(s.Close())
	refused(second)

	s = begin(false, first, second) // as on all gateways, before the first uses it
	check(s)
	add(s, "two")
	s.must(s.Close())
	s = begin(false, first) // nothing needs it yet
	check(s)
	s.must(s.Close())

	s = begin(false, second, first)
	check(s)
	add(s, "three")
	s.must(s.Close())
	refused(second) // something needs the first
	refused(first)

	s = begin(true, second, first)
	old := reseal(s)
	if !old.Set || old.Needed() && old.Records == 0 {
		t.Errorf("with an old secret: %+v", old)
	}
	check(s)
	if !old.Needed() { // messages that wait were sealed again, too
		s.must(s.Close())
		s = begin(false, second)
		check(s)
		s.must(s.Close())
		s = begin(true, second, first)
	}
	for _, j := range s.claim(s.now) {
		s.settle(j, queue.Delivered)
	}
	for range 2 {
		_, err := s.Forget(t.Context(), s.now.Add(time.Hour), 0)
		s.must(err)
	}
	for i := range kept {
		s.gone(kept[i].Message.ID)
	}
	kept, names = nil, nil
	s.must(s.Update(t.Context(), &queue.Update{Names: []queue.Hash{s.Hash("record of one")}, Decide: func(tx *queue.Tx) error {
		if string(tx.Get(s.Hash("record of one"))) != "record of one" {
			t.Error("a transaction does not find the record")
		}
		return nil
	}}))
	if old := reseal(s); old != (queue.OldSecrets{Set: true}) {
		t.Errorf("when all is sealed again: %+v", old)
	}
	s.must(s.Close())

	s = begin(false, second)
	if data, err := s.Record(t.Context(), s.Hash("record of three")); err != nil || string(data) != "record of three" {
		t.Errorf("with the new secret alone, a record is %q, %v", data, err)
	}
	if data, err := s.Record(t.Context(), s.Hash("record of one")); err != nil || string(data) != "record of one" {
		t.Errorf("with the new secret alone, a record is %q, %v", data, err)
	}
	r := s.Store.(queue.Resealer)
	if err := r.SetSecrets(t.Context(), third); err == nil {
		t.Error("a running store gives up the secret that it needs")
	}
	s.must(r.SetSecrets(t.Context(), third, second))
	if data, err := s.Record(t.Context(), s.Hash("record of one")); err != nil || string(data) != "record of one" {
		t.Errorf("after a change of the running store, a record is %q, %v", data, err)
	}
	s.must(s.Close())
	refused(third)
}
