package notifier

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// Transient destinations take no more than half of the room.
func TestTransientDestinationsLeaveRoom(t *testing.T) {
	ok := target(t, func(w http.ResponseWriter, r *http.Request) {})
	begun, release := make(chan struct{}, 10), make(chan struct{})
	slow := target(t, func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-release
	})
	s := NewSender(NewPool("test"), 4)
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
