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

// fakeConn is a connection that logs how it is used.
type fakeConn struct {
	number int
	log    *connLog
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

type connLog struct {
	silent bool // pings get no answer
	mu     sync.Mutex
	opened int
	events []string
}

func (l *connLog) add(what string, number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, what+string(rune('0'+number)))
}

func (l *connLog) open(context.Context) (*fakeConn, error) {
	l.opened++
	l.add("open", l.opened)
	return &fakeConn{l.opened, l}, nil
}

func (l *connLog) use(err error) func(context.Context, *fakeConn) error {
	return func(_ context.Context, f *fakeConn) error {
		l.add("use", f.number)
		return err
	}
}

// breaksOn returns a use that fails with ErrBroken on the connection with this
// number.
func (l *connLog) breaksOn(number int) func(context.Context, *fakeConn) error {
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
	rejected := errors.New("no such room")
	cases := []struct {
		name string
		run  func(t *testing.T, p *Persistent[*fakeConn], l *connLog)
		want []string
	}{
		{"one connection serves two messages", func(t *testing.T, p *Persistent[*fakeConn], l *connLog) {
			p.Do(ctx, time.Minute, l.open, l.use(nil))
			time.Sleep(59 * time.Second)
			p.Do(ctx, time.Minute, l.open, l.use(nil))
		}, []string{"open1", "use1", "use1"}},
		{"it closes when idle since the last message", func(t *testing.T, p *Persistent[*fakeConn], l *connLog) {
			p.Do(ctx, time.Minute, l.open, l.use(nil))
			time.Sleep(40 * time.Second)
			p.Do(ctx, time.Minute, l.open, l.use(nil))
			time.Sleep(40 * time.Second)
			l.add("pause", 0)
			time.Sleep(21 * time.Second)
			synctest.Wait()
			p.Do(ctx, time.Minute, l.open, l.use(nil))
		}, []string{"open1", "use1", "use1", "pause0", "close1", "open2", "use2"}},
		{"another error leaves it open", func(t *testing.T, p *Persistent[*fakeConn], l *connLog) {
			if err := p.Do(ctx, time.Minute, l.open, l.use(rejected)); err != rejected {
				t.Error(err)
			}
			p.Do(ctx, time.Minute, l.open, l.use(nil))
		}, []string{"open1", "use1", "use1"}},
		{"a reused connection that breaks is replaced", func(t *testing.T, p *Persistent[*fakeConn], l *connLog) {
			p.Do(ctx, time.Minute, l.open, l.use(nil))
			if err := p.Do(ctx, time.Minute, l.open, l.breaksOn(1)); err != nil {
				t.Error(err)
			}
		}, []string{"open1", "use1", "use1", "close1", "open2", "use2"}},
		{"a new connection that breaks is an error", func(t *testing.T, p *Persistent[*fakeConn], l *connLog) {
			if err := p.Do(ctx, time.Minute, l.open, l.breaksOn(1)); err == nil || err.Error() != "reset" {
				t.Error(err)
			}
		}, []string{"open1", "use1", "close1"}},
		{"after Close no connection stays open", func(t *testing.T, p *Persistent[*fakeConn], l *connLog) {
			p.Do(ctx, time.Minute, l.open, l.use(nil))
			p.Close()
			p.Do(ctx, time.Minute, l.open, l.use(nil))
		}, []string{"open1", "use1", "close1", "open2", "use2", "close2"}},
		{"the error is the cause of the end of the context", func(t *testing.T, p *Persistent[*fakeConn], l *connLog) {
			over := errors.New("the time is over")
			ctx, cancel := context.WithCancelCause(ctx)
			p.Do(ctx, time.Minute, l.open, l.use(nil))
			err := p.Do(ctx, time.Minute, l.open, func(ctx context.Context, f *fakeConn) error {
				cancel(over)
				return Broken(errors.New("i/o timeout"))
			})
			if err != over {
				t.Error(err)
			}
		}, []string{"open1", "use1", "close1"}},
		{"a connection that does not answer pings is replaced before it is used", func(t *testing.T, p *Persistent[*fakeConn], l *connLog) {
			p.Do(ctx, time.Minute, l.open, l.use(nil))
			l.silent = true
			time.Sleep(6 * time.Second)
			p.Do(ctx, time.Minute, l.open, l.use(nil))
		}, []string{"open1", "use1", "close1", "open2", "use2"}},
		{"messages take turns, and waiting ends with the context", func(t *testing.T, p *Persistent[*fakeConn], l *connLog) {
			go p.Do(ctx, time.Minute, l.open, func(context.Context, *fakeConn) error {
				time.Sleep(10 * time.Second)
				return nil
			})
			synctest.Wait()
			short, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if err := p.Do(short, time.Minute, l.open, l.use(nil)); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if err := p.Do(ctx, time.Minute, l.open, l.use(nil)); err != nil {
				t.Error(err)
			}
		}, []string{"open1", "use1"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, l := &Persistent[*fakeConn]{}, &connLog{}
				c.run(t, p, l)
				if l.mu.Lock(); !slices.Equal(l.events, c.want) {
					t.Errorf("got %v, want %v", l.events, c.want)
				}
				l.mu.Unlock()
				p.Close()
			})
		})
	}
}
