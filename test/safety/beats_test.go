package safety

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// titleBoard is a destination that counts messages by their titles.
type titleBoard struct {
	url string
	mu  sync.Mutex
	got map[string]int
}

func newTitleBoard(t *testing.T) *titleBoard {
	t.Helper()
	b := &titleBoard{got: map[string]int{}}
	s := serveHTTP(t, "127.0.0.1", func(_ http.ResponseWriter, r *http.Request) {
		var m struct{ Title string }
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			return // the gateway was killed while it sent
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.got[m.Title]++
	})
	b.url = "json://" + authority(s)
	return b
}

func (b *titleBoard) count(title string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got[title]
}

// TestBeatsOverKills checks that a missed beat is told once, also if the gateway is killed and
// started again, and told again after the next beat. Nothing is told of jobs whose beats could not
// come because the gateway was off for too long.
func TestBeatsOverKills(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	const jobs = 8
	due := amount(busy, 4, 2) // seconds
	b := newTitleBoard(t)
	var expects strings.Builder
	for i := range jobs {
		fmt.Fprintf(&expects, "expect job%d every %ds grace %ds\n", i, due, due)
	}
	g := start(t, queueOption(newFolder(t)), "key ops {\nurl "+b.url+"\nexpect fast every 1s grace 1s\n"+expects.String()+"}\n")
	beat := func(name string) {
		t.Helper()
		eventually(t, "the gateway takes the beat "+name, func() bool {
			status, _, _, err := g.tryPost("/notify/ops?beat="+name, message{})
			return err == nil && status == http.StatusOK
		})
	}
	var last time.Time
	beatAll := func() { // at most once a second
		t.Helper()
		if time.Since(last) < time.Second {
			return
		}
		last = time.Now()
		for i := range jobs {
			beat(fmt.Sprint("job", i))
		}
	}
	eventually(t, "the missed beat is told", func() bool { beatAll(); return b.count("fast is late") == 1 })
	beat("fast")
	eventually(t, "its success is told", func() bool { beatAll(); return b.count("fast is back") == 1 })
	eventually(t, "it is told again", func() bool { beatAll(); return b.count("fast is late") == 2 })
	for range amount(full, 2, 1) {
		last = time.Time{}
		beatAll()
		g.kill()
		time.Sleep(time.Duration(2*due+1) * time.Second) // longer than the jobs have, which nothing but time can show
		g.run()
		last = time.Time{}
		beatAll()
	}
	beat("fast")
	eventually(t, "its success is told", func() bool { beatAll(); return b.count("fast is back") == 2 })
	b.mu.Lock()
	defer b.mu.Unlock()
	for title, n := range b.got {
		if strings.HasPrefix(title, "job") || title == "fast is late" && n != 2 && n != 3 {
			t.Errorf("%s: %d times", title, n)
		}
	}
}

// TestMissedBeatOverKills checks that a gateway that is killed every few seconds tells a beat
// that does not come.
func TestMissedBeatOverKills(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	b := newTitleBoard(t)
	g := start(t, queueOption(newFolder(t)), "key ops {\nurl "+b.url+"\nexpect fast every 5s grace 1s\n}\n")
	const tries = 20 // it takes two or three
	for n := 0; b.count("fast is late") == 0; n++ {
		if n == tries {
			t.Fatalf("the missed beat is not told by a gateway that was killed %d times", n)
		}
		time.Sleep(4 * time.Second) // less than the beat has
		g.kill()
		g.run()
	}
}
