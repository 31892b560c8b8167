package notifier

import (
	"strings"
	"testing"
)

// A long URL of a client is read anew for each message.
func TestParseOnceLong(t *testing.T) {
	s := newTestSender(t)
	const start = "plain://h?user="
	for length, same := range map[int]bool{maxRememberURL: true, maxRememberURL + 1: false, maxURL: false} {
		url := start + strings.Repeat("x", length-len(start))
		a, err := s.ParseOnce(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := s.ParseOnce(url, nil); (a == b) != same {
			t.Errorf("of %d bytes: the same destination: %t, want %t", length, a == b, same)
		}
	}
	if n := s.once.order.Len(); n != 1 || n != len(s.once.by) {
		t.Errorf("%d destinations are remembered", n)
	}
}
