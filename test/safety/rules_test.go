package safety

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// ruledBoard is a destination that reads what it is told of incidents from messages
// about one and about several.
type ruledBoard struct {
	url string

	mu       sync.Mutex
	status   int            // of the answers
	last     map[string]int // the number of the last state, by incident
	got      int
	problems []string
}

// toldState matches the title of a message of an incident, also as a line of a digest.
var toldState = regexp.MustCompile(`(incident-\d+) (\d+)`)

func newRuledBoard(t *testing.T) *ruledBoard {
	t.Helper()
	b := &ruledBoard{status: http.StatusOK, last: map[string]int{}}
	s := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			Title   string
			Message string
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			return // the gateway was killed while it sent
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.status != http.StatusOK {
			w.WriteHeader(b.status)
			return
		}
		b.got++
		for _, told := range toldState.FindAllStringSubmatch(m.Title+"\n"+m.Message, -1) {
			n, _ := strconv.Atoi(told[2])
			if n < b.last[told[1]] {
				b.problems = append(b.problems, fmt.Sprintf("%s: %d after %d in %q", told[1], n, b.last[told[1]], m.Title))
			}
			b.last[told[1]] = n
		}
	})
	b.url = "json://" + authority(s) + "/?retry=0"
	return b
}

func (b *ruledBoard) be(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = status
}

// TestRulesOverKills sends states of incidents to a key whose rules hold them, while the
// destination has outages and the gateway is killed again and again. No state is told
// after a newer one, and the present state of each incident is told last.
func TestRulesOverKills(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a while")
	}
	for name, rules := range map[string]string{
		"digest":          "digest 1s",
		"rate":            "rate 5/1s",
		"digest and rate": "digest 1s {\ntypes warning\n}\nrate 10/2s\ndedupe 1s {\ntypes info\n}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			incidents, total, kills := 8, amount(soak, 4000, 240), amount(soak, 12, 3)
			b := newRuledBoard(t)
			g := start(t, queueOption(newFolder(t), "wait 500ms"), "key ops {\nurl "+b.url+"\n"+rules+"\n}\nkey other {\nurl "+b.url+"\n}\n")
			g.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 32
			var accepted atomic.Int64
			last := make([]int, incidents)
			var sending sync.WaitGroup
			for i := range incidents {
				sending.Go(func() {
					incident := "incident-" + strconv.Itoa(i)
					for n := 1; n <= total/incidents && !t.Failed(); n++ {
						m := message{"title": incident + " " + strconv.Itoa(n), "body": "x", "incident": incident, "type": []string{"failure", "warning", "success"}[rand.IntN(3)]}
						var header []string
						if rand.IntN(2) == 0 {
							header = []string{"Prefer", "respond-async"}
						}
						if !g.postInTheEnd("/notify/ops", m, header...) {
							return
						}
						last[i] = n
						accepted.Add(1)
						time.Sleep(time.Duration(50+rand.IntN(50)) * time.Millisecond)
					}
				})
			}
			stop := make(chan struct{})
			var outages sync.WaitGroup
			outages.Go(func() {
				for {
					b.be([]int{http.StatusOK, http.StatusServiceUnavailable, http.StatusOK}[rand.IntN(3)])
					select {
					case <-stop:
						b.be(http.StatusOK)
						return
					case <-time.After(time.Duration(rand.IntN(600)) * time.Millisecond):
					}
				}
			})
			for k := range kills {
				want := int64(total * (k + 1) / (kills + 1))
				eventually(t, "the gateway accepts messages", func() bool { return t.Failed() || accepted.Load() >= want })
				g.kill()
				g.run()
			}
			sending.Wait()
			close(stop)
			outages.Wait()
			waitArrived(t, func() (late []string) {
				// A success wakes what waits for the destination.
				g.post("/notify/other", message{"body": "wake"})
				b.mu.Lock()
				defer b.mu.Unlock()
				for i := range incidents {
					if name := "incident-" + strconv.Itoa(i); b.last[name] != last[i] {
						late = append(late, fmt.Sprintf("%s: %d of %d", name, b.last[name], last[i]))
					}
				}
				return late
			})
			if err := g.stop(); err != nil {
				t.Errorf("the gateway ended: %v", err)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, p := range b.problems {
				t.Error(p)
			}
			t.Logf("%d messages, %d delivered", accepted.Load(), b.got)
		})
	}
}
