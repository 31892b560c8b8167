package notifier

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestMissedSentence checks the sentence about what a destination did not get.
func TestMissedSentence(t *testing.T) {
	now := time.Date(2026, 3, 1, 2, 30, 0, 0, time.UTC)
	at := func(state IncidentState, minutes int) MissedMessage {
		return MissedMessage{State: state, Time: now.Add(time.Duration(minutes) * time.Minute)}
	}
	maybe := at(Open, -20)
	maybe.Unclear = true
	many := Missed{Omitted: 4}
	for i := range 7 {
		many.Messages = append(many.Messages, at(Updated, i-20))
	}
	zone := time.FixedZone("here", 3600)
	for want, m := range map[string]Missed{
		"":                                      {},
		"The alert of 03:10 was not delivered.": {Messages: []MissedMessage{at(Open, -20)}},
		"The alert of 2026-02-28 23:30 was not delivered.": {
			Messages: []MissedMessage{at(Open, -240)},
		},
		"The alert of 03:10 and the resolution of 03:20 were not delivered.": {
			Messages: []MissedMessage{at(Open, -20), at(Resolved, -10)},
		},
		"The alert of 03:10, the acknowledgement of 03:15 and 3 more were not delivered.": {
			Messages: []MissedMessage{at(Open, -20), at(Acknowledged, -15)}, Omitted: 3,
		},
		"It is unclear whether the alert of 03:10 arrived.": {
			Messages: []MissedMessage{maybe},
		},
		"The alert of 03:10 and the resolution of 03:20 were not delivered. ": {
			Messages: []MissedMessage{maybe, at(Resolved, -10)},
		},
		"The update of 03:10, the update of 03:11, the update of 03:12, " +
			"the update of 03:13, the update of 03:14 and 6 more were not delivered.": many,
	} {
		if got := m.sentence(now, zone); got != strings.TrimSpace(want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// board is a destination whose answers a test holds up.
type board struct {
	mu   sync.Mutex
	hold map[string]chan int // the status that is answered to a text
	seen chan string         // texts that arrive and are held up
	told []string
}

func (b *board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseMultipartForm(1 << 20)
	text := r.FormValue("body")
	b.mu.Lock()
	hold := b.hold[strings.Split(text, "\n")[0]]
	b.mu.Unlock()
	status := http.StatusOK
	if hold != nil {
		b.seen <- text
		status = <-hold
	}
	if status == http.StatusOK {
		b.mu.Lock()
		b.told = append(b.told, text)
		b.mu.Unlock()
	}
	w.Header().Set("Connection", "close") // so that time passes in a bubble
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "{}")
}

// TestIncidentOrder checks that the deliveries of one incident to a destination follow each other,
// and that a new state replaces waiting ones and tells what was not delivered.
func TestIncidentOrder(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	alert := func(text string, typ Type, minutes int, incident string) *Message {
		return &Message{
			Body: text, Type: typ, Time: noon.Add(time.Duration(minutes) * time.Minute),
			Incident: Incident{Name: incident}.For("ops", ""),
		}
	}
	for name, tt := range map[string]struct {
		status int        // of the answer to the first message
		others []*Message // sent one after the other while the first is under way
		want   []string   // told after the first
		rules  []Rule     // of the results of the others
	}{
		"a new state waits": {200, []*Message{alert("up", Success, 5, "db1")}, []string{"down", "up"}, []Rule{""}},
		"what has failed is told": {
			503,
			[]*Message{alert("up", Success, 5, "db1")},
			[]string{"up\n\nThe alert of 12:00 was not delivered."},
			[]Rule{""},
		},
		"the newest state replaces others": {
			200,
			[]*Message{alert("worse", Failure, 1, "db1"), alert("a note", Info, 2, "db1"), alert("up", Success, 5, "db1")},
			[]string{"down", "up\n\nThe alert of 12:01 and the update of 12:02 were not delivered."},
			[]Rule{RuleSuperseded, RuleSuperseded, ""},
		},
		"both": {
			404,
			[]*Message{alert("worse", Failure, 1, "db1"), alert("up", Success, 5, "db1")},
			[]string{"up\n\nThe alert of 12:00 and the alert of 12:01 were not delivered."},
			[]Rule{RuleSuperseded, ""},
		},
		"additions wait for their turn": {
			200,
			[]*Message{alert("a note", Info, 1, "db1"), alert("another", Info, 2, "db1")},
			[]string{"down", "a note", "another"},
			[]Rule{"", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &board{hold: map[string]chan int{"down": make(chan int)}, seen: make(chan string, 1)}
			s := newTestSender(t)
			d, err := s.Parse(target(t, b.ServeHTTP)+"/tok", nil)
			if err != nil {
				t.Fatal(err)
			}
			to := []Target{{Destination: d}}
			begin := func(m *Message) chan *Report {
				sending, out := s.Start(context.Background(), m, to, Options{Timeout: 10 * time.Second}), make(chan *Report, 1)
				go func() { out <- sending.Wait(nil) }()
				return out
			}
			first := begin(alert("down", Failure, 0, "db1"))
			<-b.seen
			var others []chan *Report
			for _, m := range tt.others {
				others = append(others, begin(m))
			}
			// Other incidents and messages without one do not wait.
			for _, m := range []*Message{alert("elsewhere", Failure, 0, "db2"), {Body: "no incident"}} {
				if r := <-begin(m); !r.OK() {
					t.Error(r.Results[0].Err)
				}
			}
			b.hold["down"] <- tt.status
			if r := (<-first).Results[0]; (r.Err == nil) != (tt.status == 200) {
				t.Errorf("the first: %+v", r)
			}
			for i, c := range others {
				r := (<-c).Results[0]
				if r.Err != nil || r.Rule != tt.rules[i] || (r.Rule != "") != (r.Status == Skipped) {
					t.Errorf("message %d: %+v", i+2, r)
				}
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if got := slices.DeleteFunc(b.told, func(s string) bool { return s == "elsewhere" || s == "no incident" }); !slices.Equal(got, tt.want) {
				t.Errorf("told %q, want %q", got, tt.want)
			}
			if n := len(s.order.lines); n != 0 {
				t.Errorf("%d lines are left", n)
			}
		})
	}
}

// TestIncidentOrderOfSeveral checks that a message whose destinations do not all
// have to wait goes to the others at once, that equal URLs do not wait for ever, and
// that each delivery has its own time.
func TestIncidentOrderOfSeveral(t *testing.T) {
	var b, other board
	urls := []string{target(t, b.ServeHTTP) + "/tok", target(t, other.ServeHTTP) + "/tok"}
	synctest.Test(t, func(t *testing.T) {
		s := newTestSender(t)
		parse := func(urls ...string) (to []Target) {
			for _, u := range urls {
				d, err := s.Parse(u, nil)
				if err != nil {
					t.Fatal(err)
				}
				to = append(to, Target{Destination: d})
			}
			return to
		}
		i := Incident{Name: "db1"}.For("ops", "")
		goOn := make(chan struct{})
		first := s.Start(t.Context(), &Message{Body: "down", Type: Failure, Incident: i}, parse(urls[0]),
			Options{Timeout: time.Hour, Held: func() error { <-goOn; return nil }})
		ended := make(chan int, 3)
		second := s.Start(t.Context(), &Message{Body: "up", Type: Success, Incident: i}, parse(urls[0], urls[1], urls[0]), Options{
			Timeout: time.Second, Observers: []Observer{{End: func(_ context.Context, i int, r Result) {
				if r.Err != nil {
					t.Error(r.Err)
				}
				ended <- i
			}}},
		})
		if i := <-ended; i != 1 {
			t.Errorf("target %d did not wait", i)
		}
		time.Sleep(time.Minute) // the time of the others has not begun
		close(goOn)
		if !first.Wait(nil).OK() {
			t.Error("the first has failed")
		}
		if r := second.Wait(nil); !r.OK() || len(r.Results) != 3 || len(r.Records) != 3 {
			t.Errorf("the second: %+v", r)
		}
	})
	if fmt.Sprint(b.told, other.told) != "[down up up] [up]" {
		t.Errorf("told %q and %q", b.told, other.told)
	}
}
