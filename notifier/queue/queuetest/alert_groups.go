package queuetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// A group of alerts is a record that posts change, and that is told as it is at that moment:
// the message is accepted only if the record is what it tells.

// errNews is returned when a group has changed since it was read.
var errNews = errors.New("there is news")

// alertGroups checks that what is posted to a group while it is told is told later, and that
// nothing is told twice.
func (s *suite) alertGroups() { s.runAlertGroups(s.Store) }

func (s *suite) sharedAlertGroups() { s.runAlertGroups(s.Store, s.handle(), s.handle()) }

func (s *suite) runAlertGroups(handles ...queue.Store) {
	var queues []*queue.Queue
	for _, h := range handles {
		queues = append(queues, queue.New(h, queue.Options{}))
	}
	name, group := s.Hash("group of alerts"), s.Hash("all groups of alerts")
	record := func(data []byte) queue.Record {
		return queue.Record{Data: data, Due: time.Now().Add(time.Hour), Group: group}
	}
	// The record has a line with each alert, and after an empty one those that were told.
	post := func(q *queue.Queue, text string) {
		s.must(q.Records.Apply(s.Context(), &queue.Ruled{
			Names: []queue.Hash{name}, Adds: true,
			Decide: func(tx *queue.Tx) error {
				fires, told, _ := strings.Cut(string(tx.Get(name)), "\n\n")
				tx.Put(name, record([]byte(strings.TrimSpace(fires+"\n"+text)+"\n\n"+told)))
				return nil
			},
		}))
	}
	var mu sync.Mutex
	var messages []string
	tell := func(q *queue.Queue) {
		before, err := q.Records.Get(s.Context(), name)
		s.must(err)
		fires, told, _ := strings.Cut(string(before), "\n\n")
		if fires == told {
			return
		}
		e := s.alert(fires, "", "a")
		e.Jobs[0].Due = time.Now().Add(time.Hour)
		e.Rules = &queue.Ruled{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
			if !bytes.Equal(tx.Get(name), before) {
				return errNews
			}
			tx.Put(name, record([]byte(fires+"\n\n"+fires)))
			return nil
		}}
		switch err := q.Accept(s.Context(), e); {
		case err == nil:
			mu.Lock()
			defer mu.Unlock()
			messages = append(messages, fires)
		case !errors.Is(err, errNews):
			s.Error(err)
		}
	}
	each := racetest.Amount(20, 6)
	var all sync.WaitGroup
	for i, q := range append(queues, queues[0]) {
		all.Go(func() {
			for n := range each {
				post(q, fmt.Sprintf("alert %d of %d", n, i))
			}
		})
		all.Go(func() {
			for range 2 * each {
				tell(q)
			}
		})
	}
	all.Wait()
	tell(queues[0])
	tell(queues[0])
	s.reopenStore()
	slices.SortFunc(messages, func(a, b string) int { return len(a) - len(b) }) // they are noted after they are accepted, in any order
	last := messages[len(messages)-1]
	if n := strings.Count(last, "alert"); n != each*(len(queues)+1) {
		s.Errorf("%d alerts are told, want %d", n, each*(len(queues)+1))
	}
	for i := 1; i < len(messages); i++ {
		if len(messages[i]) == len(messages[i-1]) || !strings.HasPrefix(messages[i], messages[i-1]) {
			s.Errorf("the messages %q and %q", messages[i-1], messages[i])
		}
	}
	if records, err := s.Group(s.Context(), group, queue.Hash{}, 10); err != nil || len(records) != 1 {
		s.Errorf("%d records, %v", len(records), err)
	}
}
