package rulestest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Phones are the destinations of a key that escalates: a chat without a number, which is
// 0, and phones, whose numbers are the steps. They note what they are told of each
// incident, whose name is the title of its messages.
type Phones struct {
	n   int
	mu  sync.Mutex
	got []Page
}

// Page is a message that a phone or the chat got.
type Page struct {
	Phone    int
	Incident string
	Type     string
	Title    string
	At       time.Time
	Link     string // the path of the page of the incident
	Missed   bool   // it tells of a message before it that was not delivered
}

// NewPhones returns a chat and n phones.
func NewPhones(n int) *Phones { return &Phones{n: n} }

// URLs returns the lines of a key in a Caddyfile. server is where p is served.
func (p *Phones) URLs(server string) string {
	var out strings.Builder
	out.WriteString("url json://" + server + "/0?retry=0 chat\n")
	for i := range p.n {
		fmt.Fprintf(&out, "url json://%s/%d?retry=0 %[2]d:oncall\n", server, i+1)
	}
	return out.String()
}

// ServeHTTP takes a message.
func (p *Phones) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	at := time.Now()
	var m struct {
		Title, Type, Message string

		Link string `json:"acknowledge_url"`
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		return // the gateway was killed while it sent
	}
	x := Page{
		Type: m.Type, Title: m.Title, Incident: strings.TrimPrefix(m.Title, "Still open: "),
		At: at, Missed: strings.Contains(m.Message, "not delivered"),
	}
	if u, err := url.Parse(m.Link); err == nil {
		x.Link = u.Path
	}
	_, _ = fmt.Sscanf(r.URL.Path, "/%d", &x.Phone)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, x)
}

// Of returns what a phone was told of an incident.
func (p *Phones) Of(incident string, phone int) []Page {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.got), func(x Page) bool { return x.Incident != incident || x.Phone != phone })
}

// Link returns the path of the page of an incident that the first phone was told of, or "".
func (p *Phones) Link(incident string) string {
	for _, x := range p.Of(incident, 1) {
		return x.Link
	}
	return ""
}

// Fate is what becomes of an incident.
type Fate string

// The fates.
const (
	Forgotten    Fate = "forgotten" // nobody takes care of it
	Acknowledged Fate = "acknowledged"
	Resolved     Fate = "resolved"
)

// Told is an incident with steps, and what is expected of it.
type Told struct {
	Incident string
	Fate     Fate
	At       time.Time // when somebody took care of it and had the answer
	Rounds   int       // of the rule
}

// Missing returns what is not told yet of an incident, or "".
func (p *Phones) Missing(x *Told) string {
	for i := range p.n + 1 {
		got := p.Of(x.Incident, i)
		switch n := len(got); {
		case x.Fate == Forgotten && i == 0 && n == 0, x.Fate == Forgotten && i > 0 && n < x.Rounds:
			return fmt.Sprintf("%d was told %d times of %s, which nobody took care of", i, n, x.Incident)
		case i < 2 && n == 0:
			return fmt.Sprintf("%d does not know %s", i, x.Incident)
		case x.Fate == Resolved && n > 0 && got[n-1].Type != "success":
			return fmt.Sprintf("%d was told of %s, and not that it is resolved", i, x.Incident)
		}
	}
	return ""
}

// Check returns what was told of an incident that must not have been, and how many
// messages came more than once. slack is how long after an acknowledgement a message may
// arrive that was under way.
func (p *Phones) Check(x *Told, slack time.Duration) (problems []string, again int) {
	for i := range p.n + 1 {
		failures, successes := 0, 0
		for _, page := range p.Of(x.Incident, i) {
			if page.Type == "success" {
				successes++
				if failures == 0 && !page.Missed {
					problems = append(problems, fmt.Sprintf("%d was told that %s is resolved, and knew nothing of it", i, x.Incident))
				}
				continue
			}
			failures++
			if successes > 0 {
				problems = append(problems, fmt.Sprintf("%d was told of %s after its resolution", i, x.Incident))
			}
			if late := page.At.Sub(x.At); i > 0 && x.Fate != Forgotten && late > slack {
				problems = append(problems, fmt.Sprintf("%d was told of %s %s after it was %s", i, x.Incident, late, x.Fate))
			}
		}
		rounds := x.Rounds
		if i == 0 {
			rounds = 1
		}
		again += max(failures-rounds, 0) + max(successes-1, 0)
	}
	return problems, again
}
