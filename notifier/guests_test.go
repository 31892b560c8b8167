package notifier

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Transient destinations take no more than half of the room.
func TestTransientDestinationsLeaveRoom(t *testing.T) {
	ok := target(t, func(w http.ResponseWriter, r *http.Request) {})
	begun, release := make(chan struct{}, 10), make(chan struct{})
	slow := target(t, func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-release
	})
	s := NewSender(egress.NewPool("test"), 4)
	ended := make(chan *Report)
	for range 3 {
		go func() {
			d, err := Parse(slow+"/token", nil)
			if err != nil {
				t.Error(err)
			}
			ended <- s.Send(context.Background(), hello, []Target{{Destination: d}}, Options{Transient: true})
		}()
	}
	<-begun
	<-begun
	if r := send(t, s, hello, Options{Timeout: 10 * time.Second}, ok+"/token", ok+"/other"); !r.OK() {
		t.Errorf("the operator's: %+v", r.Results)
	}
	select {
	case <-begun:
		t.Error("three of four places went to transient destinations")
	default:
	}
	close(release)
	for range 3 { // the one that had to wait has its turn
		if r := <-ended; !r.OK() {
			t.Errorf("a client's: %+v", r.Results)
		}
	}
	if len(s.slots)+len(s.guests) != 0 {
		t.Errorf("%d and %d places are still taken", len(s.slots), len(s.guests))
	}
}

// One message takes no more than a quarter of that, whatever it names.
func TestOneMessageLeavesRoom(t *testing.T) {
	ok := target(t, func(w http.ResponseWriter, r *http.Request) {})
	begun, release := make(chan struct{}, 10), make(chan struct{})
	slow := target(t, func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-release
	})
	s := NewSender(egress.NewPool("test"), 16)
	to := func(url string, n int) (targets []Target) {
		for range n {
			d, err := Parse(url+"/token", nil)
			if err != nil {
				t.Fatal(err)
			}
			targets = append(targets, Target{Destination: d})
		}
		return targets
	}
	ended := make(chan *Report)
	go func() { ended <- s.Send(context.Background(), hello, to(slow, 10), Options{Transient: true}) }()
	<-begun
	<-begun
	if r := s.Send(t.Context(), hello, to(ok, 5), Options{Transient: true, Timeout: 10 * time.Second}); !r.OK() {
		t.Errorf("another client's: %+v", r.Results)
	}
	select {
	case <-begun:
		t.Error("three of eight places went to one message")
	default:
	}
	close(release)
	if r := <-ended; !r.OK() { // each has its turn
		t.Errorf("%+v", r.Results)
	}
}
