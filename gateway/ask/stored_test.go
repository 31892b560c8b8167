package ask_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestAskKilled checks what a gateway knows after another one was killed: an open question can be
// answered at the link that was sent, a decided one stays so, and nobody is asked again.
func TestAskKilled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, form string
		later      time.Duration
		want       string
		status     int
	}{
		{"open", "", 0, "answered deploy", http.StatusOK},
		{"answered", "answer=wait&by=Ann", 0, "answered wait by Ann (typed)", http.StatusConflict},
		{"expired while nothing runs", "", 20 * time.Minute, "expired wait", http.StatusConflict},
	} {
		dirs, x, c := []string{t.TempDir(), t.TempDir()}, gatewaytest.NewTeam(t, 3), newCalled(t)
		gatewaytest.InBubble(t, func(t *testing.T) {
			o := options(dirs[0], x.Key(escalate))
			o.Queue.Secret = "a secret of the tests"
			g := gatewaytest.New(t, o)
			id := ask(t, g, `{"options":["deploy","wait"],"timeout":"10m","default":"wait","callback":"`+c.URL+`"}`)
			settle(time.Second)
			link := linkOf(t, x.Phones[0], 0)
			var dir string
			if tt.form == "" {
				dir = g.BackUp(dirs[1])
			} else if got := answer(g, link, tt.form); got.Status == http.StatusOK {
				dir = g.BackUp(dirs[1])
			}
			g.Stop()
			called := len(c.take())
			asked := x.Phones[0].Count() + x.Chat.Count() + x.Phones[1].Count()
			time.Sleep(tt.later)
			o.Queue.Path, o.Process = dir, nil
			next := gatewaytest.New(t, o)
			settle(2 * time.Second)
			wantAnswered(t, next, link, "answer=deploy", tt.status, tt.want)
			if got := said(state(t, next, id, "")); got != tt.want {
				t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
			}
			settle(time.Hour)
			if n := x.Phones[0].Count() + x.Chat.Count() + x.Phones[1].Count(); n != asked {
				t.Errorf("%s: %d messages after the start", tt.name, n-asked)
			}
			if n := len(c.take()); n+called < 1 || n > 1 {
				t.Errorf("%s: called %d times before and %d after the start", tt.name, called, n)
			}
		})
	}
}

// TestAskReload checks that a reload changes nothing: the wait ends, and can go on.
func TestAskReload(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := options(dir, gatewaytest.Key("k", p.NotifyURL()))
		o.Process = gatewaytest.NewProcess(t)
		g := gatewaytest.New(t, o)
		id := ask(t, g, deploy)
		settle(time.Second)
		began := time.Now()
		var waits sync.WaitGroup
		waits.Go(func() {
			if got := said(state(t, g, id, "?wait=60")); got != "open" || time.Since(began) != 5*time.Second {
				t.Errorf("%s after %s", got, time.Since(began))
			}
		})
		settle(5 * time.Second)
		next := gatewaytest.New(t, o)
		g.Stop()
		waits.Wait()
		waits.Go(func() {
			if got := said(state(t, next, id, "?wait=60")); got != "answered wait" {
				t.Error(got)
			}
		})
		settle(time.Second)
		wantAnswered(t, next, linkOf(t, p, 0), "answer=wait", http.StatusOK, "answered wait")
		waits.Wait()
		if p.Count() != 1 {
			t.Errorf("%d messages", p.Count())
		}
	})
}

// TestAskAtOnce checks that one of many simultaneous answers counts, and that all see it.
func TestAskAtOnce(t *testing.T) {
	t.Parallel()
	dir, x := t.TempDir(), gatewaytest.NewTeam(t, 3)
	gatewaytest.InBubble(t, func(t *testing.T) {
		g := gatewaytest.New(t, options(dir, x.Key(escalate)))
		id := ask(t, g, deploy)
		settle(time.Second)
		links := []string{linkOf(t, x.Chat, 0), linkOf(t, x.Phones[0], 0)}
		var all sync.WaitGroup
		var mu sync.Mutex
		first, told := 0, map[string]bool{}
		for i := range 20 {
			all.Go(func() {
				got := answer(g, links[i%2], "answer="+[]string{"deploy", "wait"}[i%2]+"&by=p"+string(rune('a'+i)))
				mu.Lock()
				defer mu.Unlock()
				if got.Status == http.StatusOK {
					first++
				}
				told[got.Body] = true
			})
		}
		all.Wait()
		if first != 1 || len(told) != 1 {
			t.Errorf("%d answers count; told %v", first, told)
		}
		for body := range told {
			if s := state(t, g, id, ""); s.Answer == nil || !strings.Contains(body, `"answer":"`+*s.Answer+`"`) || !strings.Contains(body, s.By) {
				t.Errorf("%s, %s", body, said(s))
			}
		}
		settle(time.Hour)
		x.WantCounts(t, 1, 1, 0, 0)
	})
}

// TestAskForgotten checks that a question is known after the queue has forgotten the results
// of its message, and forgotten a day after it was decided.
func TestAskForgotten(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := options(dir, gatewaytest.Key("k", p.NotifyURL()))
		o.Queue.Keep = time.Hour
		g := gatewaytest.New(t, o)
		id := ask(t, g, `{"options":["a","b"],"timeout":"7d"}`)
		settle(3 * 24 * time.Hour)
		if got := said(state(t, g, id, "")); got != "open" {
			t.Error(got)
		}
		if got := g.Message(http.MethodDelete, id, gatewaytest.TypeJSON); got.Status != http.StatusForbidden {
			t.Errorf("anybody withdraws it: status %d: %s", got.Status, got.Body)
		}
		wantAnswered(t, g, linkOf(t, p, 0), "answer=a", http.StatusOK, "answered a")
		settle(23 * time.Hour)
		if got := said(state(t, g, id, "")); got != "answered a" {
			t.Error(got)
		}
		settle(2 * time.Hour)
		if got := g.Message(http.MethodGet, id, gatewaytest.TypeJSON); got.Status != http.StatusNotFound {
			t.Errorf("status %d: %s", got.Status, got.Body)
		}
		if got := g.Get(linkOf(t, p, 0)); got.Status != http.StatusNotFound {
			t.Errorf("the page: status %d", got.Status)
		}
	})
}

// TestAskShare checks that the questions of a key, open or not, have a share of max_size, so that
// one is refused that has no room, nobody is asked, and the messages of others are kept.
func TestAskShare(t *testing.T) {
	gatewaytest.InBubbleWithPager(t, func(t *testing.T, p *gatewaytest.Pager, dir string) {
		o := options(dir, gatewaytest.Key("k", p.NotifyURL()), gatewaytest.Key("other", p.NotifyURL()))
		o.Queue.MaxSize, o.Queue.Keep = 1<<20, time.Minute
		g := gatewaytest.New(t, o)
		body := `{"body":"` + strings.Repeat("x", 8<<10) + `","ask":{"options":["a","b"],"timeout":"7d"}}`
		n, status := 0, http.StatusAccepted
		var last gatewaytest.Reply
		for status == http.StatusAccepted && n < 50 {
			last = g.Post("/notify/k", gatewaytest.TypeJSON, body)
			if status = last.Status; status == http.StatusAccepted {
				n++
			}
			settle(10 * time.Minute) // so that the messages themselves are forgotten
			if n%2 == 1 {
				answer(g, linkOf(t, p, n-1), "answer=a")
			}
		}
		if status != http.StatusTooManyRequests || n < 5 || n > 8 || p.Count() != n || !strings.Contains(last.Body, "64 KiB of max_size") ||
			last.Header.Get("Retry-After") == "" {
			t.Errorf("after %d questions: status %d %s; %d messages", n, status, last.Body, p.Count())
		}
		if got := g.PostForm("/notify/other", "type=failure&body=x"); got.Status != http.StatusOK {
			t.Errorf("a failure of another key: status %d: %s", got.Status, got.Body)
		}
		settle(2 * 24 * time.Hour)
		if got := g.Post("/notify/k", gatewaytest.TypeJSON, body); got.Status != http.StatusAccepted {
			t.Errorf("when some are forgotten: status %d: %s", got.Status, got.Body)
		}
	})
}
