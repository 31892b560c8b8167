package view

import (
	"strings"
	"time"
)

// MessagesPage lists messages and refused requests, the latest first.
type MessagesPage struct {
	Root     string // see KeysPage
	Filter   MessageFilter
	Keys     []string // to choose from
	Titles   bool     // the filter has a field for the title
	Stored   bool     // there is a queue
	Messages []ListedMessage
	Planned  []PlannedMessage // in the order in which they are due
	Later    int              // number of planned messages left out
	Problem  string           // why the queue is not shown; "" if it is
	Hint     string           // what the list is based on
	Lacks    []CopiedLine     // lines of the Caddyfile that would bring more
	Scanned  bool             // the search has reached the limit of one page
	Until    time.Time
	Newest   string // the address of the first page; "" if this is the first
	Older    string // the address of the page with older messages; "" for none
}

// MessageFilter selects messages. An empty field selects all.
type MessageFilter struct {
	Key   string
	State string // an Outcome, or cancelled
	Type  string
	Since string // 1h, 24h or 7d
	Title string // a part of it
	Chips []Chip // what else it selects
}

// Chip is a part of a filter that has no field: it can only be removed.
type Chip struct {
	Text        string    // "" for a time
	From, Until time.Time // zero for a text
	Name, Value string    // of the query
	Without     string    // the address of the list without it
}

// ListedMessage is a line of the list: a message, equal messages, or refused requests of one kind.
type ListedMessage struct {
	ID         string // "" for none
	Address    string // address of its page; "" for none
	Time       time.Time
	First      *time.Time // time of the oldest of several; nil for one
	Key        string
	KeyAddress string // address of the key's page; "" for none
	Source     string
	Type       string
	Title      string // "" if it has none or no inbox keeps it
	Words      string // the first words of a message without a title, if an inbox keeps it
	Kept       bool   // the inbox of the key has the message
	Incident   string // the name of its incident; "" for none
	Outcome    Outcome
	Says       Says     // its outcome in words
	Count      int      // number of refused requests or equal messages
	Same       []Folded // equal messages, without this one
	Reason     string   // of refusals and failures
	Client     string   // of refusals: the client's address
	Lines      []string
	More       int // number of results left out
}

// Says is the outcome of a message in words: a text, a time, and a text after it. The time may be
// zero, and each text "".
type Says struct {
	Text string
	At   time.Time
	Then string
}

// Until reports whether the text ends with a word such as "until", which a clock time follows.
// Otherwise the page says how long ago the time was, or how soon it is.
func (s Says) Until() bool {
	return strings.HasSuffix(s.Text, " until") || strings.HasSuffix(s.Text, " for") || strings.HasSuffix(s.Text, " ends")
}

// PlannedMessage is a message that is sent later.
type PlannedMessage struct {
	ID         string
	Address    string // address of its page
	Cancel     string // the address that a button posts to; "" for none
	Key        string
	KeyAddress string // address of the key's page
	Tags       string // the tag expression; "" for none
	Title      string // "" if it has none or the client may not read it
	At         time.Time
}

// Group folds equal messages: those that have not arrived, and consecutive ones that have, with the
// same title, first words or incident. The result has at most n.
func Group(all []ListedMessage, n int) []ListedMessage {
	type id struct {
		outcome                                Outcome
		key, source, reason, client            string
		typ, title, words, incident, says, and string
		lines                                  string
	}
	var out []ListedMessage
	var last id
	at := map[id]int{}
	for _, m := range all {
		before := last
		last = id{
			m.Outcome, m.Key, m.Source, m.Reason, m.Client, m.Type, m.Title, m.Words, m.Incident, m.Says.Text, m.Says.Then,
			strings.Join(m.Lines, "\n"),
		}
		i, known := at[last]
		if m.Outcome == Delivered {
			i, known = len(out)-1, before == last && m.Title+m.Words+m.Incident != ""
		}
		switch {
		case known:
			out[i].fold(&m)
		case len(out) < n:
			at[last] = len(out)
			out = append(out, m)
		}
	}
	return out
}

// fold makes an equal message, which arrived before m, part of the line of m.
func (m *ListedMessage) fold(older *ListedMessage) {
	first := older.Time
	m.Count, m.First = max(m.Count, 1)+max(older.Count, 1), &first
	if older.Address != "" {
		m.Same = append(m.Same, Folded{older.Address, older.Time})
	}
}

// Folded is a message without a line of its own.
type Folded struct {
	Address string
	Time    time.Time
}

// Day has the messages of a day.
type Day struct {
	Time     time.Time // time of the first of them
	Messages []ListedMessage
}

// days divides messages by their days in UTC. page.js divides them by the reader's days.
func days(all []ListedMessage) (out []Day) {
	for _, m := range all {
		if n := len(out); n > 0 && out[n-1].Time.UTC().Format(time.DateOnly) == m.Time.UTC().Format(time.DateOnly) {
			out[n-1].Messages = append(out[n-1].Messages, m)
			continue
		}
		out = append(out, Day{m.Time, []ListedMessage{m}})
	}
	return out
}

// Choices for the filter.
var (
	filterStates = []Choice{
		{Value: "", Label: "any"},
		{Value: "queued", Label: "waiting"},
		{Value: "failed", Label: "failed"},
		{Value: "planned", Label: "planned"},
		{Value: "delivered", Label: "delivered"},
		{Value: "skipped", Label: "not needed"},
		{Value: "cancelled", Label: "cancelled"},
		{Value: "refused", Label: "refused"},
	}
	// filterUnqueued are the states without a queue.
	filterUnqueued = []Choice{
		{Value: "", Label: "any"},
		{Value: "failed", Label: "failed"},
		{Value: "delivered", Label: "delivered"},
		{Value: "refused", Label: "refused"},
	}

	filterTypes = []Choice{
		{Value: "", Label: "any"},
		{Value: "failure", Label: "failure"},
		{Value: "warning", Label: "warning"},
		{Value: "success", Label: "success"},
		{Value: "info", Label: "info"},
	}
	filterSince = []Choice{
		{Value: "", Label: "any time"},
		{Value: "1h", Label: "1 hour"},
		{Value: "24h", Label: "24 hours"},
		{Value: "7d", Label: "7 days"},
	}
)

// choose returns choices with the one of this value chosen.
func choose(all []Choice, value string) []Choice {
	out := make([]Choice, len(all))
	for i, c := range all {
		c.Chosen = c.Value == value
		out[i] = c
	}
	return out
}

var messagesParts = newParts(source{templates: []string{"messages.html"}, styles: []string{mainStyle}, policy: policyForms})

func (p MessagesPage) view() view {
	states := filterStates
	if !p.Stored {
		states = filterUnqueued
	}
	return view{title: "Messages", parts: messagesParts, wide: true, data: struct {
		MessagesPage
		States, Types, Since []Choice
		Line                 FilterLine
	}{p, choose(states, p.Filter.State), choose(filterTypes, p.Filter.Type), choose(filterSince, p.Filter.Since), p.filterLine()}}
}

// filterLine returns the line above the filter.
func (p MessagesPage) filterLine() FilterLine {
	title := ""
	if p.Filter.Title != "" {
		title = "title with “" + p.Filter.Title + "”"
	}
	bar := "" // the list below says which
	if len(p.Filter.Chips) > 0 {
		bar = "what a bar shows"
	}
	return newFilterLine(p.Root+"notify/console/messages", bar, named("key", p.Filter.Key), label(filterStates, p.Filter.State),
		label(filterTypes, p.Filter.Type), named("last", label(filterSince, p.Filter.Since)), title)
}

// MessagePage shows a message of the queue, without its text. It has the title if an inbox keeps
// it.
type MessagePage struct {
	Root       string // see KeysPage
	Message    ListedMessage
	Deliveries []Delivery
	Keep       string    // how long the queue keeps its results
	Retry      bool      // it can be tried again, or sooner
	Drop       bool      // it has waiting or dead deliveries
	Planned    time.Time // when the message is sent; zero if it is not planned
	Incident   string    // the address of the page of its incident; "" for none
	Question   *Question // nil if it asks nothing
	Inbox      string    // the address of the inbox with its text; "" for none
	Silence    string    // the address at which messages such as this one are silenced; "" for none
}

// Question is what a message asks, for who may manage.
type Question struct {
	Options []string // none for a text
	Asked   []string // names of those asked
	Until   time.Time
	Default string // the answer that is taken if nobody answers; "" for none
	Open    bool
	Outcome string // how it was decided; "" while it is open
	Answer  string
	By      string
	At      time.Time
}

// Delivery is the delivery of a message to one destination.
type Delivery struct {
	Named
	URL, Tags string
	Silence   SilenceLink
	Outcome   Outcome
	Says      Says // details of its outcome
	Again     int  // how many later rounds tell the destination again
	Attempts  int
	Elapsed   string    // time of all attempts together
	Next      time.Time // time of the next attempt; zero for none
	Error     string
	Tries     []Try // the last ones, the oldest first
}

// Try is an attempt.
type Try struct {
	Time  time.Time
	Error string // "" for a success
	Count int    // number of consecutive attempts with the same error
	First time.Time
}

var messageParts = newParts(source{templates: []string{"message.html"}, styles: []string{mainStyle}, policy: policyForms})

func (p MessagePage) view() view { return view{title: "Message", parts: messageParts, wide: true} }
