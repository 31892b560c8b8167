package safety

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
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
// after a newer one, and the present state of each incident is told last. All rules come if
// full is set, and otherwise those that have most to do with each other.
func TestRulesOverKills(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a while")
	}
	for _, tt := range racetest.Part([]struct{ name, rules string }{
		{"digest and rate", "digest 1s {\ntypes warning\n}\nrate 10/2s\ndedupe 1s {\ntypes info\n}"},
		{"digest", "digest 1s"},
		{"rate", "rate 5/1s"},
	}, 3) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			incidents, total, kills := 8, amount(soak, 2400, 240), amount(soak, 12, 3)
			b := newRuledBoard(t)
			g := start(t, queueOption(newFolder(t), "wait 500ms"), "key ops {\nurl "+b.url+"\n"+tt.rules+"\n}\nkey other {\nurl "+b.url+"\n}\n")
			g.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 32
			var accepted atomic.Int64
			last := make([]int, incidents)
			var sending sync.WaitGroup
			for i := range incidents {
				sending.Go(func() {
					incident := "incident-" + strconv.Itoa(i)
					for n := 1; n <= total/incidents && !t.Failed(); n++ {
						m := message{
							"title": incident + " " + strconv.Itoa(n), "body": "x", "incident": incident,
							"type": []string{"failure", "warning", "success"}[rand.IntN(3)],
						}
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

// TestTextsOfRules checks that what rules hold, suppress and collect is readable nowhere:
// neither in logs, metrics, pages and the admin API nor in the files of the queue. Titles
// are shown of incidents alone.
func TestTextsOfRules(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	k := newRecorder(t)
	refuses := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	folder, now := newFolder(t), time.Now().UTC()
	g := start(t, tracing+"\n"+queueOption(folder, "wait 100ms"), fmt.Sprintf(`console {
manage open
}
key ops {
url %s/
url json://%s/
dedupe 10m
digest 1s
}
key night {
url %[1]s/
quiet %02[3]d:00-%02[4]d:00 UTC
}`, k.url, authority(refuses), now.Add(-11*time.Hour).Hour(), now.Add(12*time.Hour).Hour()))
	const title, body, name, content = "Qz-title-of-a-message", "Qz-body-of-a-message", "Qz-file-of-a-message", "Qz-content-of-a-message"
	post := func(key string, m message) (id, rule string) {
		t.Helper()
		r := g.post("/notify/"+key, m)
		var answer struct {
			ID      string
			Results []struct{ Rule string }
		}
		if err := json.Unmarshal([]byte(r.Body), &answer); err != nil || r.Status != http.StatusOK || len(answer.Results) == 0 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		return answer.ID, answer.Results[0].Rule
	}
	file := map[string]any{"base64": []byte(content), "filename": name}
	var ids []string
	for i, want := range []string{"digested", "digested", "suppressed"} {
		m := message{"title": title, "body": body, "type": "failure", "incident": "db1", "attach": file}
		if i == 1 {
			m = message{"title": title + " 2", "body": body}
		}
		id, rule := post("ops", m)
		if ids = append(ids, id); rule != want {
			t.Errorf("message %d is %s, want %s", i, rule, want)
		}
	}
	held, rule := post("night", message{"title": title, "body": body, "attach": file})
	if ids = append(ids, held); rule != "held" {
		t.Errorf("the message at night is %s, want held", rule)
	}
	var told []string
	eventually(t, "all that can be told is told, and the rest is given up", func() bool {
		told = append(told, k.take()...)
		_, dead := g.get(g.adminURL+"/notify/queue/dead", "application/json")
		_, recent := g.get(g.adminURL+"/notify/recent", "application/json")
		all := strings.Join(told, "\n")
		return strings.Contains(all, title) && strings.Contains(all, title+" 2") &&
			strings.Contains(dead, "400") && strings.Contains(recent, `"outcome":"failed"`)
	})

	readable := map[string]string{"logs, metrics, pages and the admin API": g.exposed("ops")}
	read := func(address string) {
		t.Helper()
		code, text := g.get(address, "text/html")
		if code != http.StatusOK {
			t.Errorf("GET %s: status %d: %.300s", address, code, text)
		}
		readable[strings.TrimPrefix(address, g.url)] = text
	}
	for _, path := range []string{"", "/keys", "/keys/ops", "/keys/night", "/messages", "/queue"} {
		read(g.url + "/notify/console" + path)
	}
	for _, id := range ids {
		read(g.url + "/notify/console/messages/" + id)
		read(g.url + "/notify/messages/" + id)
	}
	for _, path := range []string{"/notify/queue", "/notify/queue/dead", "/notify/destinations"} {
		read(g.adminURL + path)
	}
	files := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if !errors.Is(err, fs.ErrNotExist) && err != nil {
			return err
		}
		readable["the file "+filepath.Base(path)], files = string(data), files+1
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%d files of the queue were read: %v", files, err)
	}
	incidents := []string{
		g.url + "/notify/console", g.url + "/notify/console/incidents", g.url + "/notify/console/keys/ops", g.adminURL + "/notify/incidents",
	}
	for _, address := range incidents {
		if read(address); !strings.Contains(readable[strings.TrimPrefix(address, g.url)], title) {
			t.Errorf("%s does not have the title of the incident", address)
		}
	}
	for where, all := range readable {
		for _, text := range []string{title, body, name, content} {
			isIncident := slices.ContainsFunc(incidents, func(address string) bool { return strings.HasSuffix(address, where) })
			if i := strings.Index(all, text); i >= 0 && !(isIncident && text == title) {
				t.Errorf("%s: %s", where, excerpt(text, all, i, i+len(text)))
			}
		}
	}
}
