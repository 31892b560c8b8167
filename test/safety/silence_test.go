package safety

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// serveTold serves a destination. told returns the titles and texts that it has got.
func serveTold(t *testing.T) (s *httptest.Server, told func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	s = serveHTTP(t, "127.0.0.1", func(_ http.ResponseWriter, r *http.Request) {
		var m struct{ Title, Message string }
		if json.NewDecoder(r.Body).Decode(&m) == nil {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, m.Title+"\n"+m.Message)
		}
	})
	return s, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// TestSilenceOverKill kills the gateway in the middle of a silence. It holds afterwards,
// what is over before it ends is silent, and what is still open is told when it ends.
func TestSilenceOverKill(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	s, all := serveTold(t)
	g := start(t, queueOption(newFolder(t), "wait 2s"), "console {\nmanage open\n}\nkey ops {\nurl json://"+authority(s)+"/?retry=0\n}\n")
	post := func(typ, incident string) {
		t.Helper()
		if r := g.post("/notify/ops", message{
			"title": incident + " is " + typ, "body": "x", "type": typ, "incident": incident,
		}); r.Status != http.StatusOK {
			t.Fatalf("%s: status %d %s", incident, r.Status, r.Body)
		}
	}
	post("warning", "known")
	r := g.do("/notify/ops/silences", "application/x-www-form-urlencoded", strings.NewReader("for=1h&tag=all"))
	var silence struct{ ID string }
	if err := json.Unmarshal([]byte(r.Body), &silence); err != nil || r.Status != http.StatusCreated {
		t.Fatalf("status %d %s", r.Status, r.Body)
	}
	for _, incident := range []string{"known", "over", "open-1", "open-2"} {
		post("failure", incident)
	}
	g.kill()
	g.run()
	post("success", "over")
	post("success", "known")
	post("failure", "open-3")
	if got := all(); len(got) != 2 || !strings.HasPrefix(got[1], "known is success") {
		t.Fatalf("told during the silence: %q", got)
	}
	g.kill()
	g.run()
	request, err := http.NewRequest(http.MethodDelete, g.url+"/notify/ops/silences/"+silence.ID, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if r := g.ask(request); r.Status != http.StatusOK {
		t.Fatalf("ending the silence: status %d %s", r.Status, r.Body)
	}
	eventually(t, "what is open is told", func() bool { return len(all()) > 2 })
	post("info", "last")
	eventually(t, "the last message arrives", func() bool {
		return slices.ContainsFunc(all(), func(x string) bool { return strings.HasPrefix(x, "last is info") })
	})
	text := strings.Join(all()[2:], "\n")
	for _, want := range []string{"3 failures", "open-1 is failure", "open-2 is failure", "open-3 is failure"} {
		if !strings.Contains(text, want) {
			t.Errorf("the message lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "over is") || len(all()) != 4 {
		t.Errorf("told %q", all())
	}
}

// TestSilenceToldOverKill kills the gateway before a planned silence begins, and in the middle of
// it. Its beginning and its end are told once, and so is what is open then.
func TestSilenceToldOverKill(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	s, told := serveTold(t)
	count := func(beginning string) (n int) {
		for _, x := range told() {
			if strings.HasPrefix(x, beginning) {
				n++
			}
		}
		return n
	}
	g := start(t, queueOption(newFolder(t), "wait 2s"), "console {\nmanage open\n}\nkey ops {\nurl json://"+authority(s)+"/?retry=0\n}\n")
	begin := time.Now().Add(500 * time.Millisecond)
	form := "from=" + begin.UTC().Format(time.RFC3339Nano) + "&for=1h&tag=all&reason=move&tell=yes"
	var silence struct{ ID, State string }
	if r := g.do("/notify/ops/silences", "application/x-www-form-urlencoded",
		strings.NewReader(form)); r.Status != http.StatusCreated || json.Unmarshal([]byte(r.Body), &silence) != nil {
		t.Fatalf("status %d %s", r.Status, r.Body)
	}
	g.kill()
	g.run()
	eventually(t, "the beginning is told", func() bool { return count("A silence has begun: move") > 0 })
	for _, incident := range []string{"over", "open"} {
		if r := g.post("/notify/ops", message{
			"title": incident, "body": "x", "type": "failure", "incident": incident,
		}); r.Status != http.StatusOK {
			t.Fatalf("%s: status %d %s", incident, r.Status, r.Body)
		}
	}
	g.kill()
	g.run()
	g.post("/notify/ops", message{"title": "over", "body": "x", "type": "success", "incident": "over"})
	request, err := http.NewRequest(http.MethodDelete, g.url+"/notify/ops/silences/"+silence.ID, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if r := g.ask(request); r.Status != http.StatusOK {
		t.Fatalf("ending the silence: status %d %s", r.Status, r.Body)
	}
	eventually(t, "the end is told", func() bool { return count("A silence has ended: move\nIt began ") > 0 })
	eventually(t, "what is open is told", func() bool { return count("open\n") > 0 })
	if begun, ended := count("A silence has begun"), count("A silence has ended"); begun != 1 || ended != 1 || count("over") > 0 {
		t.Errorf("told %q", told())
	}
}
