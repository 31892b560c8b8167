package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
)

// newStore returns the inboxes in a new queue of at most maxSize bytes.
func newStore(t *testing.T, maxSize int64) *Store {
	t.Helper()
	store, err := bolt.Open(bolt.Options{Path: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	q := queue.New(store, queue.Options{MaxSize: maxSize})
	t.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &Store{Queue: q, Removed: func(string, int) {}}
}

// keep adds a message to an inbox.
func (s *Store) keep(t *testing.T, place, body string, expires time.Time) *Message {
	t.Helper()
	m := &Message{ID: body, Body: body, Time: expires.Add(-time.Hour), Expires: expires}
	change, stored := s.Keep(place, m)
	if err := s.Queue.Records.Apply(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	stored()
	return m
}

// bodies returns the bodies of the messages that a client reads.
func (r *Reader) bodies(t *testing.T, s Since) string {
	t.Helper()
	var out []string
	if err := r.Each(t.Context(), s, func(m *Message, _ time.Time) bool {
		out = append(out, m.Body)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

// TestRead checks where a reader goes on, that each inbox has its own messages, and that a
// shorter time drops the older ones.
func TestRead(t *testing.T) {
	t.Parallel()
	s := newStore(t, 1<<20)
	later := time.Now().Add(time.Hour)
	s.keep(t, "other", "x", later)
	a := s.keep(t, "p", "a", later)
	s.keep(t, "p", "expired", time.Now().Add(-time.Minute))
	s.keep(t, "p", "b", later)
	s.keep(t, "p", "old", later.Add(-20*time.Minute))
	r := &Reader{Store: s, Place: "p", Keep: time.Hour}
	for want, since := range map[string]Since{"a b old": {}, "b old": {After: a.Cursor}, "old": {Latest: true}, "": {None: true}} {
		if got := r.bodies(t, since); got != want {
			t.Errorf("%+v: %q, want %q", since, got, want)
		}
	}
	r.Keep = 10 * time.Minute
	if got := r.bodies(t, Since{}); got != "a b" {
		t.Errorf("of the last ten minutes: %q", got)
	}
	for range 2 * page { // more than are read at once
		s.keep(t, "many", "x", later)
	}
	if got := (&Reader{Store: s, Place: "many", Keep: time.Hour}).bodies(t, Since{}); len(got) != 4*page-1 {
		t.Errorf("%d bytes of %d messages", len(got), 2*page)
	}
	found := 0
	err := (&Reader{Store: s, Place: "many", Keep: time.Hour}).
		CameIn(t.Context(), time.Now().Add(-time.Hour), time.Now(), func(*Message) bool {
			found++
			return found < 3
		})
	if err != nil || found != 3 {
		t.Errorf("%d messages came in, %v", found, err)
	}
}

// TestDue checks that a message that is due goes with all before it, and that the head goes
// when the inbox is empty.
func TestDue(t *testing.T) {
	t.Parallel()
	s := newStore(t, 1<<20)
	for range page + 10 {
		s.keep(t, "p", "x", time.Now().Add(time.Hour))
	}
	last := s.keep(t, "p", "due", time.Now().Add(time.Hour))
	after := s.keep(t, "p", "after", time.Now().Add(time.Hour))
	due := func(name queue.Hash) {
		t.Helper()
		b, err := s.Queue.Records.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.due(t.Context(), name, b); err != nil {
			t.Fatal(err)
		}
	}
	due(messageName(s.group("p"), last.Cursor))
	h, err := s.Head(t.Context(), "p")
	if err != nil || h != (Head{"p", after.Cursor, last.Cursor, 1, int64(after.Size())}) {
		t.Errorf("%+v, %v", h, err)
	}
	due(s.headName("p"))
	if again, err := s.Head(t.Context(), "p"); err != nil || again != h {
		t.Errorf("the head of an inbox with a message has become %+v, %v", again, err)
	}
	due(messageName(s.group("p"), after.Cursor))
	due(s.headName("p"))
	if sizes, err := s.Queue.Records.GroupSizes(t.Context()); err != nil || len(sizes) > 0 {
		t.Errorf("%v, %v", sizes, err)
	}
	for _, record := range [][]byte{nil, {'x'}, outbox.EncodeRecord(KindMessage, []byte{1})} {
		if err := s.due(t.Context(), queue.Hash{1}, record); !errors.Is(err, queue.ErrUnknown) {
			t.Errorf("%q: %v", record, err)
		}
	}
}

// TestTrim checks that the oldest messages of the largest inbox go if there is no room.
func TestTrim(t *testing.T) {
	t.Parallel()
	const maxSize = 100_000
	s := newStore(t, maxSize)
	removed := map[string]int{}
	s.Removed = func(place string, n int) { removed[place] += n }
	s.keep(t, "quiet", "quiet", time.Now().Add(time.Hour))
	for range 200 {
		s.keep(t, "loud", strings.Repeat("x", 1000), time.Now().Add(time.Hour))
	}
	s.keep(t, "loud", "last", time.Now().Add(time.Hour))
	s.Refresh(t.Context(), func() bool { return true })
	h, err := s.Head(t.Context(), "loud")
	if err != nil || h.Size > maxSize || h.Count+removed["loud"] != 201 || removed["quiet"] > 0 {
		t.Errorf("%+v, %v; removed %v", h, err, removed)
	}
	r := &Reader{Store: s, Place: "loud", Keep: time.Hour}
	if got := r.bodies(t, Since{Latest: true}); got != "last" {
		t.Errorf("the last message is %q", got)
	}
}

// TestCrowded checks which inbox has to become smaller.
func TestCrowded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		heads []Head
		want  string
	}{
		{[]Head{{Place: "a", Count: 3, Size: 50}, {Place: "b", Count: 3, Size: 50}}, ""},
		{[]Head{{Place: "a", Count: 3, Size: 49}, {Place: "b", Count: 3, Size: 51}}, "b"}, // more than its share
		{[]Head{{Place: "a", Count: 3, Size: 33}, {Place: "b", Count: 3, Size: 33}, {Place: "c", Count: 3, Size: 35}}, "c"},
		{[]Head{{Place: "a", Count: KindMessage.Most(), Size: 50}, {Place: "b", Count: KindMessage.Most() + 1, Size: 1}}, "b"},
	} {
		var k known
		for _, h := range c.heads {
			k.note(h)
		}
		if got, more := k.crowded(400); got != c.want || got != "" && more.count != 1 && more.size != 1 {
			t.Errorf("%+v: %q, %+v", c.heads, got, more)
		}
	}
}

// TestListen checks that a listener gets what other gateways keep, and the limit of
// listeners.
func TestListen(t *testing.T) {
	t.Parallel()
	s := newStore(t, 1<<20)
	another := &Store{Queue: s.Queue} // at another gateway; it knows nothing of the listeners of s
	f, leave, err := s.Listen(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	_, more, _ := f.after(t.Context(), 0)
	another.keep(t, "p", "x", time.Now().Add(time.Hour))
	select {
	case <-more:
		t.Fatal("the gateway knows of a message that it has not read")
	default:
	}
	s.Refresh(t.Context(), func() bool { return true })
	<-more
	if got, _, err := f.after(t.Context(), 0); err != nil || len(got) != 1 || got[0].Body != "x" {
		t.Errorf("%v, %v", got, err)
	}
	for range MaxListeners - 1 {
		if _, _, err := s.Listen(t.Context(), "p"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Listen(t.Context(), "p"); !errors.Is(err, ErrTooManyListeners) {
		t.Errorf("one too many: %v", err)
	}
	leave()
	if _, _, err := s.Listen(t.Context(), "p"); err != nil {
		t.Errorf("after one has left: %v", err)
	}
}

// TestFollow checks what a stream sends, and what ends it.
func TestFollow(t *testing.T) {
	t.Parallel()
	s := newStore(t, 1<<20)
	s.keep(t, "p", "before", time.Now().Add(time.Hour))
	ending, sent := make(chan struct{}), make(chan string)
	r := &Reader{Store: s, Place: "p", Keep: time.Hour, Allowed: func(context.Context) bool { return true }, Ending: ending}
	send := func(event string, m *Message, until time.Time) error {
		if m != nil {
			event += fmt.Sprint(" ", m.Body, " ", until.Equal(m.Expires))
		}
		sent <- event
		return nil
	}
	ended := make(chan error)
	follow := func(s Since) { go func() { ended <- r.Follow(t.Context(), s, send) }() }
	follow(Since{})
	got := []string{<-sent, <-sent}
	s.keep(t, "p", "later", time.Now().Add(time.Hour))
	got = append(got, <-sent)
	close(ending)
	if err := <-ended; err != nil || !slices.Equal(got, []string{"open", "message before true", "message later true"}) {
		t.Errorf("%q, %v", got, err)
	}
	r.Allowed = func(context.Context) bool { return false }
	follow(Since{Latest: true})
	if got := []string{<-sent, <-sent}; got[1] != "message later true" {
		t.Errorf("the latest: %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("a client that may not read any more: %v", err)
	}
	r.Allowed = func(context.Context) bool { return true }
	failed := errors.New("the client is gone")
	if err := r.Follow(t.Context(), Since{None: true}, func(string, *Message, time.Time) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a client that is gone: %v", err)
	}
}
