package rulestest

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// target is a destination of the key.
type target struct {
	step int // its number in an escalation; 0 for none
	down bool
	got  []arrival
}

// arrival is a request that a destination got.
type arrival struct {
	at     time.Time // when it began
	taken  bool      // the answer was 200
	killed bool      // the gateway was killed at that time, so that it may not know the outcome
	title  string
	tells  []told
	beat   string // "is late", "is back" or "has not ended" if it is about the beat
	ruled  string // "open" or "over" if it is about the alerts of the ruler
}

// told is a state of an incident that an arrival tells.
type told struct {
	number   int  // of the message
	again    bool // the gateway repeats it, because it is still open
	resolved bool // the gateway tells that somebody has resolved it
	digest   bool // it is a line of several
}

// before reports whether a is an older state than b of the same incident.
func (a told) before(b told) bool {
	return a.number < b.number || a.number == b.number && !a.resolved && b.resolved
}

// A message has its number in its title, which is also the end of its line in a digest.
var number = regexp.MustCompile(`([\w: ]*?)\bm(\d+)\b`)

// tellsOf returns what a title and a text tell.
func tellsOf(text string) (out []told) {
	for _, x := range number.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(x[2])
		out = append(out, told{number: n, again: strings.Contains(x[1], "Still open: "), resolved: strings.Contains(x[1], "Resolved: ")})
	}
	return out
}

// beatOf returns what a title tells of the beat.
func beatOf(text string) string {
	for _, state := range []string{"is late", "is back", "has not ended"} {
		if strings.Contains(text, BeatName+" "+state) {
			return state
		}
	}
	return ""
}

// ruledLine is what a line of a digest tells of the alerts of the ruler.
var ruledLine = regexp.MustCompile(`(failure|warning|success): ` + RuledAlert + `\b`)

// ruledOf returns what a message of a type tells of the alerts of the ruler.
func ruledOf(typ, title, text string) string {
	if strings.HasSuffix(title, RuledAlert) {
		if strings.HasPrefix(title, "Resolved: ") {
			return "over"
		}
		text = typ + ": " + RuledAlert
	}
	switch x := ruledLine.FindStringSubmatch(text); {
	case x == nil:
		return ""
	case x[1] == "success":
		return "over"
	}
	return "open"
}

// path returns the path of a target's URL, below the server's path.
func (m *Model) path(i int) string { return "/" + m.Key + "/" + strconv.Itoa(i) }

// ServeHTTP is the destinations: it answers the requests whose path begins with the
// name of the key.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"+m.Key+"/"))
	if err != nil || i < 0 || i >= len(m.targets) {
		http.NotFound(w, r)
		return
	}
	at := m.Gateway.Now()
	var x struct{ Title, Message, Type string }
	if err := json.NewDecoder(r.Body).Decode(&x); err != nil {
		return // the gateway was killed while it sent
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead { // requests of a process that runs no more
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	t := m.targets[i]
	a := arrival{
		at: at, title: x.Title, tells: tellsOf(x.Title + "\n" + x.Message),
		beat: beatOf(x.Title + "\n" + x.Message), ruled: ruledOf(x.Type, x.Title, x.Message),
	}
	a.taken = !t.down
	t.down = t.down && !m.Brief
	for k := range a.tells {
		a.tells[k].digest = strings.HasPrefix(x.Title, m.Key+": ")
	}
	if m.killNext > 0 {
		if m.killNext--; m.killNext == 0 {
			m.dead, a.killed = true, true
			m.Gateway.Snapshot()
			m.cut(at)
		}
	}
	t.got = append(t.got, a)
	if m.dead || !a.taken {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// cut notes that the outcomes of deliveries may be unknown that were under way at a time.
func (m *Model) cut(at time.Time) {
	for _, t := range m.targets {
		for i := range t.got {
			if a := &t.got[i]; !a.at.Before(at.Add(-m.Gateway.Slack)) {
				a.killed = true
			}
		}
	}
}
