package notifier

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// TestCompute checks that one call of Compute runs at a time for clients and one
// for the operator, and that a call which waits ends with its context.
func TestCompute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slots := newComputeSlots()
		client, operator := &Client{compute: &slots, target: &Destination{policy: new(egress.Policy)}}, &Client{compute: &slots}
		release := make(chan struct{})
		var byClient, byOperator atomic.Int32 // calls of f under way
		hold := func(c *Client, running *atomic.Int32) {
			go func() {
				if err := c.Compute(context.Background(), func() error { running.Add(1); <-release; running.Add(-1); return nil }); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		for range 3 {
			hold(client, &byClient)
			hold(operator, &byOperator)
		}
		if byClient.Load() != 1 || byOperator.Load() != 1 {
			t.Errorf("running: %d for clients and %d for the operator, want one each", byClient.Load(), byOperator.Load())
		}
		why := errors.New("not done within a second")
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, why)
		defer cancel()
		for range 2 { // while it waits, and after its time is over
			//nolint:errorlint // the cause itself
			if err := client.Compute(ctx, func() error { t.Error("f was called without a slot"); return nil }); err != why {
				t.Errorf("the error is %v, want the cause of the end", err)
			}
		}
		close(release)
		synctest.Wait()
		if byClient.Load()+byOperator.Load() != 0 || len(slots.client)+len(slots.operator) != 0 {
			t.Errorf("running: %d and %d, and %d and %d slots are taken", byClient.Load(), byOperator.Load(), len(slots.client), len(slots.operator))
		}
		//nolint:errorlint // the cause itself
		if err := client.Compute(ctx, func() error { t.Error("f was called after the end"); return nil }); err != why {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestComputeKeepsSlot checks that a slot is taken until the work has ended, also
// if the context has ended before, and that the error of the work is returned.
func TestComputeKeepsSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slots := newComputeSlots()
		c := &Client{compute: &slots, target: &Destination{policy: new(egress.Policy)}}
		ctx, cancel := context.WithCancel(context.Background())
		release, ended := make(chan struct{}), make(chan error, 1)
		failed := errors.New("failed")
		go func() { ended <- c.Compute(ctx, func() error { <-release; return failed }) }()
		synctest.Wait()
		cancel()
		time.Sleep(time.Hour)
		if len(slots.client) != 1 || len(ended) != 0 {
			t.Error("the slot was returned before the work ended")
		}
		close(release)
		if err := <-ended; err != failed { //nolint:errorlint // returned as it is
			t.Error(err)
		}
		if len(slots.client) != 0 {
			t.Error("the slot is still taken")
		}
		// A panic of the work returns the slot, too.
		if err := protect(func() error { return c.Compute(context.Background(), func() error { panic("x") }) }); err == nil ||
			len(slots.client) != 0 {
			t.Errorf("after a panic: %v, and %d slots are taken", err, len(slots.client))
		}
	})
}
