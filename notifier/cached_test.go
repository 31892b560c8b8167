package notifier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestCached(t *testing.T) {
	var c Cached[string]
	var fetched atomic.Int32
	fetch := func(context.Context) (string, time.Duration, error) {
		return fmt.Sprint("token", fetched.Add(1)), time.Hour, nil
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if v, err := c.Get(context.Background(), fetch); v != "token1" || err != nil {
				t.Error(v, err)
			}
		})
	}
	wg.Wait()
	c.Drop(context.Background())
	if v, _ := c.Get(context.Background(), fetch); v != "token2" {
		t.Error(v)
	}
	var failing Cached[int]
	if _, err := failing.Get(context.Background(),
		func(context.Context) (int, time.Duration, error) { return 0, 0, errors.New("no") }); err == nil {
		t.Error("no error")
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	failing.untyped.load().lock <- struct{}{}
	if _, err := failing.Get(cancelled, nil); err == nil {
		t.Error("waits for the lock after its context has ended")
	}
}
