package wire

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeConn is a connection that writes down what becomes of it.
type fakeConn struct {
	number int
	log    *keptLog
}

func (f *fakeConn) Close() error {
	f.log.add("close", f.number)
	return nil
}

func (f *fakeConn) Ping(ctx context.Context) error {
	if f.log.silent {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

type keptLog struct {
	silent bool // pings get no answer
	mu     sync.Mutex
	opened int
	events []string
}

func (l *keptLog) add(what string, number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, what+string(rune('0'+number)))
}

func (l *keptLog) open(context.Context) (*fakeConn, error) {
	l.opened++
	l.add("open", l.opened)
	return &fakeConn{l.opened, l}, nil
}

func (l *keptLog) use(err error) func(context.Context, *fakeConn) error {
	return func(_ context.Context, f *fakeConn) error {
		l.add("use", f.number)
		return err
	}
}

// breaksOn fails on the connection of this number as one that is broken.
func (l *keptLog) breaksOn(number int) func(context.Context, *fakeConn) error {
	return func(_ context.Context, f *fakeConn) error {
		l.add("use", f.number)
		if f.number == number {
			return Broken(errors.New("reset"))
		}
		return nil
	}
}

func TestPersistent(t *testing.T) {
	ctx := context.Background()
	refusal := errors.New("no such room")
	cases := []struct {
		name string
		run  func(t *testing.T, k *Persistent[*fakeConn], l *keptLog)
		want []string
	}{
		{"one connection serves two messages", func(t *testing.T, k *Persistent[*fakeConn], l *keptLog) {
			k.Do(ctx, time.Minute, l.open, l.use(nil))
			time.Sleep(59 * time.Second)
			k.Do(ctx, time.Minute, l.open, l.use(nil))
		}, []string{"open1", "use1", "use1"}},
		{"it closes when idle, counted from the last message", func(t *testing.T, k *Persistent[*fakeConn], l *keptLog) {
			k.Do(ctx, time.Minute, l.open, l.use(nil))
			time.Sleep(40 * time.Second)
			k.Do(ctx, time.Minute, l.open, l.use(nil))
			time.Sleep(40 * time.Second)
			l.add("pause", 0)
			time.Sleep(21 * time.Second)
			synctest.Wait()
			k.Do(ctx, time.Minute, l.open, l.use(nil))
		}, []string{"open1", "use1", "use1", "pause0", "close1", "open2", "use2"}},
		{"a refusal leaves it open", func(t *testing.T, k *Persistent[*fakeConn], l *keptLog) {
			if err := k.Do(ctx, time.Minute, l.open, l.use(refusal)); err != refusal {
				t.Error(err)
			}
			k.Do(ctx, time.Minute, l.open, l.use(nil))
		}, []string{"open1", "use1", "use1"}},
		{"a break of a kept one costs one more try", func(t *testing.T, k *Persistent[*fakeConn], l *keptLog) {
			k.Do(ctx, time.Minute, l.open, l.use(nil))
			if err := k.Do(ctx, time.Minute, l.open, l.breaksOn(1)); err != nil {
				t.Error(err)
			}
		}, []string{"open1", "use1", "use1", "close1", "open2", "use2"}},
		{"a break of a fresh one is an error", func(t *testing.T, k *Persistent[*fakeConn], l *keptLog) {
			if err := k.Do(ctx, time.Minute, l.open, l.breaksOn(1)); err == nil || err.Error() != "reset" {
				t.Error(err)
			}
		}, []string{"open1", "use1", "close1"}},
		{"Close closes it, and no later one is kept", func(t *testing.T, k *Persistent[*fakeConn], l *keptLog) {
			k.Do(ctx, time.Minute, l.open, l.use(nil))
			k.Close()
			k.Do(ctx, time.Minute, l.open, l.use(nil))
		}, []string{"open1", "use1", "close1", "open2", "use2", "close2"}},
		{"the end of the time is the error", func(t *testing.T, k *Persistent[*fakeConn], l *keptLog) {
			over := errors.New("the time is over")
			ctx, cancel := context.WithCancelCause(ctx)
			k.Do(ctx, time.Minute, l.open, l.use(nil))
			err := k.Do(ctx, time.Minute, l.open, func(ctx context.Context, f *fakeConn) error {
				cancel(over)
				return Broken(errors.New("i/o timeout"))
			})
			if err != over {
				t.Error(err)
			}
		}, []string{"open1", "use1", "close1"}},
		{"one whose other side has vanished is replaced before it is used", func(t *testing.T, k *Persistent[*fakeConn], l *keptLog) {
			k.Do(ctx, time.Minute, l.open, l.use(nil))
			l.silent = true
			time.Sleep(6 * time.Second)
			k.Do(ctx, time.Minute, l.open, l.use(nil))
		}, []string{"open1", "use1", "close1", "open2", "use2"}},
		{"messages take turns, and waiting has an end", func(t *testing.T, k *Persistent[*fakeConn], l *keptLog) {
			go k.Do(ctx, time.Minute, l.open, func(context.Context, *fakeConn) error {
				time.Sleep(10 * time.Second)
				return nil
			})
			synctest.Wait()
			short, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if err := k.Do(short, time.Minute, l.open, l.use(nil)); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if err := k.Do(ctx, time.Minute, l.open, l.use(nil)); err != nil {
				t.Error(err)
			}
		}, []string{"open1", "use1"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, l := &Persistent[*fakeConn]{}, &keptLog{}
				c.run(t, k, l)
				if l.mu.Lock(); !slices.Equal(l.events, c.want) {
					t.Errorf("got %v, want %v", l.events, c.want)
				}
				l.mu.Unlock()
				k.Close()
			})
		})
	}
}
