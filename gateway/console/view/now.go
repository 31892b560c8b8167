package view

import "time"

// NowPage is the first page of the console: the situation.
type NowPage struct {
	Root     string // see KeysPage
	Now      time.Time
	Sentence string // the situation; the page adds the last message if all is quiet
	State    State  // state of the situation, for the colour of the sentence: Failing, Waiting or Fine
	Keys     int    // keys of the site
	Last     time.Time
	Stored   bool   // there is a queue, which remembers deliveries
	Lost     int    // dead deliveries; -1 if unknown
	Waiting  int    // waiting deliveries
	Problem  string // why the page does not show everything; "" if it does
	Done     string // what a button has done; "" for nothing
	MayAdd   bool   // keys can be saved here

	Watchdog  *Trouble
	Incidents []IncidentRow
	AllOpen   string // the address of all incidents; "" for none
	More      int    // incidents left out
	Troubled  []TroubledDestinations
	MoreDown  int
	Questions []OpenQuestion
	Failures  []ListedMessage // that no success has followed
	Rows      []ListedKey
	MoreKeys  int

	MoreFailures int
}

// OpenQuestion is a question that nobody has answered yet.
type OpenQuestion struct {
	Title      string // "" if it has none or the client may not read it
	Address    string // address of its message
	Key        string
	KeyAddress string // address of the key's page
	Until      time.Time
	Default    string // the answer that is taken if nobody answers; "" for none
}

// Fact is a part of the line below the sentence.
type Fact struct {
	Text    string
	At      time.Time // its time, shown after the text as an age; zero for none
	Address string    // "" for none
}

// Facts returns what the sentence leaves out.
func (p NowPage) Facts() (facts []Fact) {
	add := func(text string) { facts = append(facts, Fact{Text: text}) }
	if p.State != Fine { // otherwise the sentence says these
		add(Count(p.Keys, "key", "keys"))
		if !p.Last.IsZero() {
			facts = append(facts, Fact{Text: "last message", At: p.Last})
		}
	}
	switch {
	case !p.Last.IsZero():
	case p.Stored:
		add("no message yet")
	default:
		add("no message since the gateway started")
	}
	if p.Waiting > 0 {
		add(Count(p.Waiting, "delivery waits", "deliveries wait"))
	}
	switch {
	case p.Lost > 0:
		facts = append(facts, Fact{
			Text:    Count(p.Lost, "delivery", "deliveries") + " given up",
			Address: p.Root + "notify/console/messages?state=failed",
		})
	case p.Lost == 0:
		add("nothing given up")
	}
	return facts
}

var nowParts = newParts(source{
	templates: []string{"now.html", "now_incidents.html", "now_questions.html", "now_failures.html"},
	styles:    []string{mainStyle},
	policy:    policyForms,
})

func (p NowPage) view() view { return view{title: "Now", parts: nowParts, wide: true} }
