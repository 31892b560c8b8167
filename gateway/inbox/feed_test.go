package inbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// memory is a store of messages.
type memory struct {
	mu       sync.Mutex
	messages []*Message
	reads    int
}

func (s *memory) add(c Cursor, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, &Message{Cursor: c, Body: strings.Repeat("x", size)})
}

func (s *memory) read(_ context.Context, after Cursor) (out []*Message, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	for _, m := range s.messages {
		if m.Cursor > after && len(out) < 10 {
			out = append(out, m)
		}
	}
	return out, nil
}

// after returns the cursors of all messages after c, as a listener reads them.
func after(t *testing.T, f *Feed, c Cursor) string {
	t.Helper()
	var out []string
	for {
		messages, _, err := f.after(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) == 0 {
			return strings.Join(out, " ")
		}
		for _, m := range messages {
			c = m.Cursor
			out = append(out, fmt.Sprint(uint64(c)))
		}
	}
}

// TestFeed checks that listeners get what follows their place. Messages are read once for all
// listeners that are not behind; a listener that is behind reads the rest.
func TestFeed(t *testing.T) {
	t.Parallel()
	s := &memory{}
	s.add(1, 10)
	s.add(2, 10)
	f := newFeed(2, s.read)
	if got := after(t, f, 2); got != "" || s.reads != 0 {
		t.Errorf("nothing is new, but %q was read", got)
	}
	if got := after(t, f, 0); got != "1 2" {
		t.Errorf("from the beginning: %q", got)
	}
	_, more, _ := f.after(t.Context(), 2)
	s.add(3, 10)
	f.tell(3)
	<-more
	s.reads = 0
	for range 50 {
		if got := after(t, f, 2); got != "3" {
			t.Errorf("a listener got %q", got)
		}
	}
	if s.reads != 1 {
		t.Errorf("a message for 50 listeners was read %d times", s.reads)
	}
	var want []string
	for c := range Cursor(300) {
		s.add(4+c, 5000) // more than the feed keeps
		f.tell(4 + c)
		want = append(want, fmt.Sprint(uint64(4+c)))
	}
	if got := after(t, f, 3); got != strings.Join(want, " ") {
		t.Errorf("one that is behind got %q", got)
	}
	if f.size > maxKeptSize || len(f.kept) > maxKept {
		t.Errorf("%d messages with %d bytes are kept", len(f.kept), f.size)
	}
}

// TestFeedToldEarly checks that a message is not lost if a feed is told of it before the store
// lists it.
func TestFeedToldEarly(t *testing.T) {
	t.Parallel()
	s := &memory{}
	f := newFeed(0, s.read)
	f.tell(1)
	messages, more, err := f.after(t.Context(), 0)
	if len(messages) > 0 || err != nil {
		t.Fatalf("%v, %v", messages, err)
	}
	s.add(1, 10)
	f.tell(1)
	<-more
	if got := after(t, f, 0); got != "1" {
		t.Errorf("got %q", got)
	}
}
