package rulestest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Gateway is how a model reaches the gateway under test.
type Gateway struct {
	// Do sends a request, whose body is a form, and returns the answer. The status is 0 if
	// there is none.
	Do func(method, path string, form url.Values) (status int, body []byte)

	// Wait lets a time pass, and Now is the time. Slack is by how much the time of an
	// arrival may be wrong.
	Wait  func(time.Duration)
	Now   func() time.Time
	Slack time.Duration

	// Restart starts the gateway again with the present rules. Nil if others do that.
	Restart func(how Restart)

	// Snapshot keeps what the gateway has stored when it is killed. Nil if others kill it.
	Snapshot func()
}

// Restart says how a gateway is started again.
type Restart int

// The ways.
const (
	Stopped  Restart = iota // it was stopped, and had the time to end
	Killed                  // it was killed when Snapshot was called
	Reloaded                // it goes on with other rules
)

// Model is a key with rules, what was sent to it, and what its destinations were told.
type Model struct {
	Gateway
	Key       string
	Rand      *rand.Rand
	Unit      time.Duration // the times of the rules are multiples of it
	Escalates bool          // there are steps
	Beats     bool          // a beat is expected
	Calendar  bool          // it is expected by a calendar, for which the unit is a minute
	Ruler     bool          // a ruler posts alerts, for whose times the unit is a minute
	Brief     bool          // an outage lasts for one attempt, because the next ones come much later

	rules     string // lines of the Caddyfile
	active    bool   // an escalation is one of the rules
	abandoned bool   // it was not at some time
	rate      rate   // of the rules; zero for none
	ack       time.Duration
	runs      []time.Time // when runs of the beat began
	running   bool        // the last one has not ended
	ruleless  time.Time   // when the rules ended; zero if they have not
	fires     []string    // the alerts that the ruler sees
	log       []string
	posts     []*post
	silences  []silence
	cared     []cared

	mu       sync.Mutex // guards what the destinations use
	targets  []*target
	dead     bool
	killNext int // the gateway is killed at this arrival, counted from now
}

// BeatName is the name of the beat.
const BeatName = "nightly"

// The times of the beat, in units.
const beatEvery, beatGrace, beatRun = 60, 10, 20

// post is a message that was sent to the key.
type post struct {
	number    int
	id        string // "" if there was no answer
	incident  string // its name; "" for none
	typ       string
	title     string
	sent      time.Time
	planned   time.Time // when it is due; zero for at once
	escalated bool
	cancelled bool
	unsent    bool     // it was cancelled before it was due
	closed    bool     // somebody has resolved the incident by its page after this message
	first     []result // of the answer
	results   []result
	unknown   bool // the results were lost with a gateway that was killed
}

// result is the result of a message at a destination.
type result struct {
	Status string
	Rule   string
	By     string
	Until  *time.Time
}

// rate is a rule of the key that limits messages.
type rate struct {
	count int
	per   time.Duration
	alone bool // no other rule holds messages
}

// silence is a silence that was made.
type silence struct {
	id    string
	until time.Time
}

// cared is a time in which no step tells anybody of an incident.
type cared struct {
	incident    string // its name, or number for one without a name
	from, until time.Time
	last        int // the number of the last message that it concerns; 0 for all further ones
}

// New returns a model with random rules.
func New(g Gateway, key string, seed uint64, unit time.Duration) *Model {
	//nolint:gosec // it is repeatable
	m := &Model{
		Gateway: g, Key: key, Rand: rand.New(rand.NewPCG(seed, 7)), Unit: unit, Escalates: seed%2 == 1,
		Beats: seed%4 == 2 && g.Restart != nil, Calendar: seed%8 == 6 && unit == time.Minute,
		Ruler: seed%4 >= 2 && unit == time.Minute,
	}
	m.targets = []*target{{}}
	if m.Escalates {
		m.targets = append(m.targets, &target{step: 1}, &target{step: 2})
	}
	m.NewRules()
	m.log = append(m.log, "rules: "+strings.ReplaceAll(m.rules, "\n", " "))
	return m
}

func (m *Model) logf(format string, args ...any) {
	m.log = append(m.log, m.Now().UTC().Format("02 15:04:05.0 ")+fmt.Sprintf(format, args...))
}

// Log returns what was done and what has arrived.
func (m *Model) Log() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out strings.Builder
	out.WriteString("key " + m.Key + "\n" + strings.Join(m.log, "\n"))
	for _, p := range m.posts {
		fmt.Fprintf(&out, "\nat the end m%d of %q is %+v", p.number, p.incident, p.results)
	}
	for i, t := range m.targets {
		fmt.Fprintf(&out, "\ndestination %d was told:", i)
		for _, a := range t.got {
			fmt.Fprintf(&out, "\n  %s taken %v killed %v %q %+v", a.at.UTC().Format("02 15:04:05.0"), a.taken, a.killed, a.title, a.tells)
		}
	}
	return out.String()
}

// units returns a random time.
func (m *Model) units(most int) string { return (time.Duration(1+m.Rand.IntN(most)) * m.Unit).String() }

// scope returns the block of a rule, or "".
func (m *Model) scope() string {
	if m.Rand.IntN(3) > 0 {
		return ""
	}
	types := slices.Clone(types)
	m.Rand.Shuffle(len(types), func(i, k int) { types[i], types[k] = types[k], types[i] })
	return " {\ntypes " + strings.Join(types[:1+m.Rand.IntN(3)], " ") + "\n}"
}

var types = []string{"info", "success", "warning", "failure"}

// NewRules makes other rules.
func (m *Model) NewRules() {
	var lines []string
	if m.Rand.IntN(2) == 0 {
		lines = append(lines, "dedupe "+m.units(90)+m.scope())
	}
	if m.Rand.IntN(3) == 0 {
		lines = append(lines, "hold "+m.units(12)+[]string{"", " {\ntypes failure\n}", " {\ntypes warning\n}"}[m.Rand.IntN(3)])
	}
	if m.Unit >= time.Minute {
		for range m.Rand.IntN(3) {
			hour := m.Rand.IntN(24)
			lines = append(lines, fmt.Sprintf("quiet %02d:00-%02d:00 UTC", hour, (hour+1+m.Rand.IntN(8))%24)+m.scope())
		}
		if m.Rand.IntN(3) == 0 {
			hour := m.Rand.IntN(24)
			lines = append(lines, fmt.Sprintf("silence %02d:00-%02d:00 UTC", hour, (hour+1+m.Rand.IntN(4))%24)+
				[]string{"", " {\ntitle disk\n}"}[m.Rand.IntN(2)])
		}
	}
	switch m.Rand.IntN(5) {
	case 0, 1:
		lines = append(lines, "digest "+m.units(40)+m.scope())
	case 2:
		if m.Unit >= time.Minute {
			lines = append(lines, fmt.Sprintf("digest %02d:30 UTC", m.Rand.IntN(24))+m.scope())
		}
	}
	m.rate = rate{}
	if m.Rand.IntN(3) == 0 {
		holds := slices.ContainsFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "dedupe") })
		m.rate = rate{1 + m.Rand.IntN(4), time.Duration(1+m.Rand.IntN(40)) * m.Unit, !holds}
		lines = append(lines, fmt.Sprintf("rate %d/%s", m.rate.count, m.rate.per))
	}
	if m.active = m.Escalates && (len(m.posts) == 0 || m.Rand.IntN(6) > 0); m.active {
		m.ack = time.Duration(20+m.Rand.IntN(200)) * m.Unit
		lines = append(lines, fmt.Sprintf("escalate after %s {\nrepeat %d\nack %s\n}", m.units(20), 1+m.Rand.IntN(3), m.ack))
	}
	m.abandoned = m.abandoned || m.Escalates && !m.active
	m.setRules(lines)
	for i := range m.cared { // an acknowledgement lasts no longer than the rule says
		if c := &m.cared[i]; m.active && !c.until.IsZero() {
			c.until = earlier(c.until, m.Now().Add(m.ack))
		}
	}
}

// setRules sets the rules. The promises hold for a key that has one.
func (m *Model) setRules(lines []string) {
	if len(lines) == 0 {
		lines = []string{"rate 1000/" + m.Unit.String()}
	}
	if m.Beats {
		when := fmt.Sprint("every ", beatEvery*m.Unit)
		if m.Calendar {
			when = `cron "0 * * * *" UTC`
		}
		lines = append(lines, fmt.Sprintf("expect %s %s grace %s max_run %s", BeatName, when, beatGrace*m.Unit, beatRun*m.Unit))
	}
	m.rules = strings.Join(lines, "\n")
}

// noRules ends all rules that hold messages.
func (m *Model) noRules() {
	lines := []string(nil)
	if m.active {
		lines = append(lines, fmt.Sprintf("escalate after %s {\nrepeat 1\nack %s\n}", m.Unit, m.ack))
	}
	m.setRules(lines)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Block returns the key as a Caddyfile has it. server is the address of the destinations,
// as in 127.0.0.1:8080.
func (m *Model) Block(server string) string {
	var b strings.Builder
	b.WriteString("key " + m.Key + " {\n")
	for i, t := range m.targets {
		tag := "all-of-us"
		if t.step != 0 && m.active {
			tag = fmt.Sprintf("%d:oncall", t.step)
		}
		b.WriteString("url json://" + server + m.path(i) + "?retry=0 " + tag + "\n")
	}
	return b.String() + m.rules + "\n}"
}

// request sends a request, again and again until there is an answer. It reports false if
// the gateway was killed meanwhile; then it may have done what it was asked for.
func (m *Model) request(method, path string, form url.Values) (status int, body []byte, first bool) {
	for first = true; ; first = false {
		if status, body = m.Do(method, path, form); status == http.StatusServiceUnavailable { // it asks to try again
			status = 0
		}
		m.mu.Lock()
		dead := m.dead
		m.mu.Unlock()
		if dead {
			m.revive()
			if method != http.MethodPost || !strings.HasSuffix(path, m.Key) {
				continue
			}
			return 0, nil, false
		}
		if status != 0 {
			return status, body, first
		}
		if method == http.MethodPost && strings.HasSuffix(path, m.Key) {
			return 0, nil, false
		}
		m.Wait(m.Unit / 10)
	}
}

// revive starts the gateway again that was killed.
func (m *Model) revive() {
	m.mu.Lock()
	dead := m.dead
	m.mu.Unlock()
	if !dead {
		return
	}
	m.logf("the gateway was killed")
	m.Gateway.Restart(Killed)
	m.mu.Lock()
	m.dead = false
	m.mu.Unlock()
}

// Step does one thing at random. It returns an error for a wrong answer.
func (m *Model) Step() error {
	m.Wait(time.Duration(m.Rand.IntN(int(m.Unit/20) + 1)))
	m.revive()
	var err error
	switch n := m.Rand.IntN(40); {
	case n < 17:
		err = m.send()
	case n < 26:
		m.Wait(time.Duration(m.Rand.IntN(12)) * m.Unit)
	case n < 28:
		m.outage()
	case n < 31:
		err = m.take()
	case n < 34:
		err = m.silence()
	case n == 34:
		err = m.cancel()
	case n == 35 && m.Gateway.Restart != nil:
		m.logf("restart")
		m.Gateway.Restart(Stopped)
	case n == 36 && m.Gateway.Restart != nil:
		m.NewRules()
		m.logf("reload: %s", strings.ReplaceAll(m.rules, "\n", " "))
		m.Gateway.Restart(Reloaded)
	case n == 37 && m.Gateway.Snapshot != nil:
		m.mu.Lock()
		m.killNext = 1 + m.Rand.IntN(3)
		m.mu.Unlock()
	case m.Beats:
		err = m.beat()
	}
	if err == nil && m.Ruler && m.Rand.IntN(4) == 0 {
		err = m.rule()
	}
	m.revive()
	return err
}

// send posts a message.
func (m *Model) send() error {
	p := &post{typ: types[m.Rand.IntN(len(types))]}
	if m.Rand.IntN(5) > 0 {
		p.incident = fmt.Sprint("inc", m.Rand.IntN(3))
	}
	words := []string{"disk", "OK: disk", "job", "DISK"}[m.Rand.IntN(4)]
	for range 20 {
		again := *p
		if done, err := m.post(&again, words); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("no answer to a message")
}

// post sends a message with a new number. It reports false if there is no answer.
func (m *Model) post(p *post, words string) (done bool, err error) {
	p.number, p.sent = len(m.posts)+1, m.Now()
	m.posts = append(m.posts, p)
	before := m.present(p.incident)
	p.escalated = m.active && p.typ == "failure"
	form := url.Values{"title": {fmt.Sprintf("%s m%d", words, p.number)}, "body": {"x"}, "type": {p.typ}}
	if p.incident != "" {
		form.Set("incident", p.incident)
	} else if m.Rand.IntN(2) == 0 { // it may be suppressed
		form.Set("title", words)
	}
	if p.incident == "" && !p.escalated && m.Rand.IntN(3) == 0 {
		after := time.Duration(1+m.Rand.IntN(40)) * m.Unit
		p.planned = m.Now().Add(after)
		form.Set("send_at", after.String())
	}
	p.title = form.Get("title")
	status, body, ok := m.request(http.MethodPost, "/notify/"+m.Key, form)
	opens := p.typ == "failure" || p.typ == "warning"
	name := p.name()
	if p.typ == "success" || opens && (before == nil || !before.isOpen()) { // of an incident
		for i := range m.cared {
			if c := &m.cared[i]; c.incident == name && c.last == 0 {
				c.last = p.number - 1
			}
		}
	}
	if !ok {
		m.logf("m%d %s %q %q: no answer", p.number, p.typ, p.incident, words)
		return false, nil
	}
	var a struct {
		ID      string
		Results []result
	}
	if err := json.Unmarshal(body, &a); err != nil || a.ID == "" || status != http.StatusOK && status != http.StatusAccepted {
		return false, fmt.Errorf("m%d: status %d: %s", p.number, status, body)
	}
	p.id = a.ID
	if p.typ == "success" && p.incident != "" {
		m.care(p, time.Time{})
	}
	m.logf("m%d %s %q %q %s: %+v", p.number, p.typ, p.incident, form.Get("title"), p.id[24:], a.Results)
	p.first = a.Results
	return true, m.checkRate(p)
}

// checkRate checks that the rate holds a failure only if as many failures and openings of
// incidents before it may have used up what is theirs.
func (m *Model) checkRate(p *post) error {
	if m.rate.count == 0 || !m.rate.alone || m.Beats || p.typ != "failure" || p.escalated {
		return nil
	}
	for i, r := range p.first {
		if r.Rule != "held" || r.Until == nil {
			continue
		}
		used := 0
		for _, o := range m.posts[:p.number-1] {
			later := o.id == "" || i >= len(o.first) || o.first[i].Status == "queued" // it may have been sent since
			if (o.typ == "failure" || o.typ == "warning") && (later || p.sent.Sub(o.sent) <= m.rate.per+m.Slack) {
				used++
			}
		}
		if used < m.rate.count {
			return fmt.Errorf("the rate holds m%d at %d, after %d of %d alerts: %+v", p.number, i, used, m.rate.count, r)
		}
	}
	return nil
}

// name returns the name of the incident of a message, which may be its own.
func (p *post) name() string {
	if p.incident == "" {
		return fmt.Sprint("m", p.number)
	}
	return p.incident
}

func (p *post) isOpen() bool { return (p.typ == "failure" || p.typ == "warning") && !p.closed }

// tellsState reports whether the message changes the state of an incident.
func (p *post) tellsState() bool { return p.incident != "" && p.typ != "info" }

// present returns the last message with a state of an incident, or nil. It is one that
// the gateway has answered, if there is one after those without an answer.
func (m *Model) present(incident string) *post {
	for _, p := range slices.Backward(m.posts) {
		if p.incident == incident && p.tellsState() && p.id != "" {
			return p
		}
	}
	return nil
}

// care notes that no step tells of the incident of a message and of those before it.
func (m *Model) care(p *post, until time.Time) {
	m.cared = append(m.cared, cared{incident: p.name(), from: m.Now(), until: until})
}

// take acknowledges or resolves an incident on its page.
func (m *Model) take() error {
	if !m.Escalates || len(m.posts) == 0 {
		return nil
	}
	var open []*post
	for _, p := range m.posts {
		own := p.incident == "" && p.escalated
		if p.id != "" && p.isOpen() && (own || p == m.present(p.incident)) {
			open = append(open, p)
		}
	}
	if len(open) == 0 {
		return nil
	}
	p := open[m.Rand.IntN(len(open))]
	do := "acknowledge"
	if m.Rand.IntN(3) == 0 {
		do = "resolve"
	}
	var a struct {
		ID string `json:"incident_id"`
	}
	status, body, _ := m.request(http.MethodGet, "/notify/messages/"+p.id, nil)
	if status == http.StatusNotFound { // no rule concerns it, so that only the gateway that has sent it knows it yet
		return nil
	}
	if err := json.Unmarshal(body, &a); err != nil || a.ID == "" {
		return err // there was no rule when it opened
	}
	status, body, _ = m.request(http.MethodPost, "/notify/incidents/"+a.ID, url.Values{"do": {do}, "by": {"Eve"}})
	m.logf("%s %s: %d", do, p.name(), status)
	if status != http.StatusOK {
		return fmt.Errorf("%s %s: status %d: %s", do, p.name(), status, body)
	}
	var x struct {
		State        string
		Acknowledged *struct{ Until *time.Time }
	}
	if err := json.Unmarshal(body, &x); err != nil {
		return err
	}
	m.logf("%s", body)
	switch {
	case do == "resolve" || p.incident == "":
		p.closed = true
		m.care(p, time.Time{})
	case m.active && !m.acknowledged(p):
		until := m.Now().Add(m.ack)
		if a := x.Acknowledged; a != nil && a.Until != nil { // somebody has done it before, under other rules
			until = earlier(until, *a.Until)
		}
		m.care(p, until)
	}
	return nil
}

// acknowledged reports whether the incident of a message is acknowledged already.
func (m *Model) acknowledged(p *post) bool {
	return slices.ContainsFunc(m.cared, func(c cared) bool {
		return c.incident == p.name() && c.last == 0 && c.until.After(m.Now())
	})
}

// silence makes a silence, which may begin later, or ends one.
func (m *Model) silence() error {
	m.silences = slices.DeleteFunc(m.silences, func(s silence) bool { return !s.until.After(m.Now()) })
	if len(m.silences) > 0 && m.Rand.IntN(2) == 0 {
		return m.endSilence(m.Rand.IntN(len(m.silences)))
	}
	form := url.Values{"for": {m.units(120)}}
	if m.Rand.IntN(3) == 0 {
		form.Set("from", m.Now().Add(time.Duration(m.Rand.IntN(60))*m.Unit).UTC().Format(time.RFC3339))
	}
	switch m.Rand.IntN(4) {
	case 0, 1:
		form.Set("incident", fmt.Sprint("inc", m.Rand.IntN(3)))
	case 2:
		form.Set("title", "disk")
	default:
		form.Set("tag", "all")
	}
	status, body, _ := m.request(http.MethodPost, "/notify/"+m.Key+"/silences", form)
	var s struct {
		ID    string
		Until time.Time
	}
	if err := json.Unmarshal(body, &s); err != nil || status != http.StatusCreated {
		return fmt.Errorf("a silence: status %d: %s", status, body)
	}
	m.silences = append(m.silences, silence{s.ID, s.Until})
	m.logf("silence %s %v", s.ID[24:], form)
	return nil
}

func (m *Model) endSilence(i int) error {
	s := m.silences[i]
	m.silences = slices.Delete(m.silences, i, i+1)
	status, body, _ := m.request(http.MethodDelete, "/notify/"+m.Key+"/silences/"+s.id, nil)
	m.logf("silence %s ends: %d", s.id[24:], status)
	if status != http.StatusOK && status != http.StatusNotFound {
		return fmt.Errorf("ending a silence: status %d: %s", status, body)
	}
	return nil
}

// cancel cancels a message.
func (m *Model) cancel() error {
	if len(m.posts) == 0 {
		return nil
	}
	p := m.posts[max(0, len(m.posts)-1-m.Rand.IntN(6))]
	if p.id == "" {
		return nil
	}
	status, body, _ := m.request(http.MethodDelete, "/notify/messages/"+p.id, nil)
	m.logf("cancel m%d: %d", p.number, status)
	if status != http.StatusOK && status != http.StatusConflict && status != http.StatusNotFound {
		return fmt.Errorf("cancelling m%d: status %d: %s", p.number, status, body)
	}
	p.cancelled = true
	p.unsent = status == http.StatusOK && m.Now().Before(p.planned.Add(-m.Slack))
	return nil
}

// outage begins or ends an outage of a destination.
func (m *Model) outage() {
	m.mu.Lock()
	t := m.targets[m.Rand.IntN(len(m.targets))]
	t.down = !t.down || m.Brief
	down := t.down
	m.mu.Unlock()
	m.logf("a destination is down: %v", down)
}

// beat sends a beat, or the start of a run.
func (m *Model) beat() error {
	query, at := "", m.Now()
	if m.running = m.Rand.IntN(2) == 0; m.running {
		query = "&state=start"
		m.runs = append(m.runs, at)
	}
	status, body, _ := m.request(http.MethodGet, "/notify/"+m.Key+"?beat="+BeatName+query, nil)
	m.logf("beat%s: %d", query, status)
	if status != http.StatusOK {
		return fmt.Errorf("a beat: status %d: %s", status, body)
	}
	return nil
}

// RuledAlert is the name of the alerts of the ruler.
const RuledAlert = "Ruled"

// ruledLasts is for how long an alert fires that the ruler has posted: longer than a model is
// away from it. Package ruler has a model of rulers that fall silent.
const ruledLasts = 240 * time.Hour

// rule lets an alert of the ruler fire or end, and posts what fires and what does not.
func (m *Model) rule() error {
	name := fmt.Sprint("db", m.Rand.IntN(3))
	if i := slices.Index(m.fires, name); i >= 0 {
		m.fires = slices.Delete(m.fires, i, i+1)
	} else if m.Rand.IntN(2) == 0 {
		m.fires = append(m.fires, name)
	}
	return m.postAlerts()
}

// postAlerts posts what the ruler sees.
func (m *Model) postAlerts() error {
	var alerts []map[string]any
	for i := range 3 {
		name, ends := fmt.Sprint("db", i), m.Now()
		if slices.Contains(m.fires, name) {
			ends = ends.Add(ruledLasts)
		}
		alerts = append(alerts, map[string]any{
			"labels": map[string]string{"alertname": RuledAlert, "instance": name, "severity": "critical"},
			"endsAt": ends.UTC(),
		})
	}
	body, err := json.Marshal(alerts)
	if err != nil {
		return err
	}
	m.logf("the ruler posts %v", m.fires)
	status, answer, _ := m.request(http.MethodPost, "/notify/"+m.Key+"/prometheus/api/v2/alerts", url.Values{JSONBody: {string(body)}})
	if status != http.StatusOK {
		return fmt.Errorf("alerts of a ruler: status %d: %s", status, answer)
	}
	return nil
}

// JSONBody is the field of a form that is sent as JSON in place of the form.
const JSONBody = "json"
