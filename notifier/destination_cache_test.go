package notifier

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// TestParseCache checks that the same URL under the same policy is the same
// destination, with its session, and that a client's URL never shares one with
// the operator's.
func TestParseCache(t *testing.T) {
	s := newTestSender(t)
	policy, _ := egress.NewPolicy(nil, nil)
	same, _ := egress.NewPolicy(nil, nil)
	a, _ := s.Parse("probe://h/tok", nil)
	b, _ := s.Parse("probe://h/tok", nil)
	c, _ := s.Parse("probe://h/tok", policy)
	d, _ := s.Parse("probe://h/tok", same)
	e, _ := s.Parse("probe://h/tok", &egress.Policy{})
	if a != b || a == c || c != d || a == e {
		t.Error(a == b, a == c, c == d, a == e)
	}
}

// TestRelease checks that a destination is closed by its last release, and that
// the same URL is a new destination afterwards.
func TestRelease(t *testing.T) {
	s := newTestSender(t)
	a, _ := s.Parse("probe://h/tok", nil)
	b, _ := s.Parse("probe://h/tok", nil)
	closed := &a.service.(*probe).closed
	s.Release(a)
	if closed.Load() != 0 {
		t.Error("closed while in use")
	}
	s.Release(b)
	s.Release(b) // one release too many
	if closed.Load() != 1 {
		t.Errorf("closed %d times", closed.Load())
	}
	if c, _ := s.Parse("probe://h/tok", nil); c == a {
		t.Error("a closed destination is returned again")
	}
	if n := len(s.shared.byKey); n != 1 {
		t.Errorf("%d destinations are held", n)
	}
}

// TestParseOnce checks that a client's URL is parsed for each message if its
// service can keep state between messages, and once otherwise.
func TestParseOnce(t *testing.T) {
	s := newTestSender(t)
	for url, same := range map[string]bool{"plain://h": true, "probe://h/tok": false} {
		a, err := s.ParseOnce(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := s.ParseOnce(url, nil); (a == b) != same {
			t.Errorf("%s: the same destination: %t, want %t", url, a == b, same)
		}
	}
	for i := range 2 * maxRecentDestinations {
		if _, err := s.ParseOnce(fmt.Sprintf("plain://h%d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.recent.order.Len(); n != maxRecentDestinations || n != len(s.recent.byKey) {
		t.Errorf("%d destinations are cached", n)
	}
}

// TestParseOnceLong checks that a long URL of a client is parsed for each
// message.
func TestParseOnceLong(t *testing.T) {
	s := newTestSender(t)
	const start = "plain://h?user="
	for length, same := range map[int]bool{maxRecentURL: true, maxRecentURL + 1: false, maxURL: false} {
		url := start + strings.Repeat("x", length-len(start))
		a, err := s.ParseOnce(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := s.ParseOnce(url, nil); (a == b) != same {
			t.Errorf("of %d bytes: the same destination: %t, want %t", length, a == b, same)
		}
	}
	if n := s.recent.order.Len(); n != 1 || n != len(s.recent.byKey) {
		t.Errorf("%d destinations are cached", n)
	}
}
