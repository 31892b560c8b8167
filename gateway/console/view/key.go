package view

import (
	"slices"
	"strings"
	"time"
)

// KeyPage shows a tab of a key.
type KeyPage struct {
	Root     string // see KeysPage
	Key      string
	Address  string // of this page; its forms are sent there
	Tab      KeyTab // that the page shows
	Tabs     []Tab  // all that have something to show
	Editable bool   // its configuration can be changed here
	Fixed    bool   // it is in the configuration of the gateway
	Saved    bool   // something is saved under the key
	Problem  string // why the saved configuration cannot be used
	Added    string // the service of a destination that was just saved; "" for none
	Done     string // what a button has done; "" for nothing

	KeyState
	KeyMessages
	KeyDevices
	KeySend
	KeySettings
}

// KeyState is the state of a key's destinations and beats.
type KeyState struct {
	Destinations []Destination
	Health       *Health
	Waiting      int         // waiting deliveries
	Silence      string      // the address for silencing it; "" if it cannot be
	Beats        []Beat      // beats that it expects
	BeatLine     *CopiedLine // a command that sends one of them; nil if it comes from a source
	Watchdog     *Trouble    // why the watchdog of the gateway is not called; nil if all is well

	Incidents     []IncidentRow // open ones, the worst first
	MoreIncidents bool          // there are others
	AllIncidents  string        // address of the open incidents of the key
	Week          *IncidentWeek // nil if none was opened
	Silences      []KeySilence  // that hold now, or are planned
	AllSilences   string        // address of all silences
}

// KeySilence is a silence of a key.
type KeySilence struct {
	Of          string    // what it matches
	From        time.Time // when it begins; zero if it has begun
	Until       time.Time
	Reason, Who string
}

// KeyMessages are the messages of a key.
type KeyMessages struct {
	Recent     []ListedMessage
	RecentHint string
	Queue      *Queue       // nil without a queue
	Inbox      *KeyInbox    // nil if the key keeps no messages
	Lacks      []CopiedLine // lines of the Caddyfile that would bring more
}

// KeyDevices are the devices that get the messages of a key.
type KeyDevices struct {
	Devices        []Device
	DevicesProblem string      // why they cannot be shown; "" if they can
	Invite         bool        // devices can be invited
	Invitation     *Invitation // a new one, which is shown only once
}

// KeySend says how programs send to a key.
type KeySend struct {
	Lines []CopiedLine
	Login bool // the lines contain a login of the server
}

// KeySettings are the rules, the tokens and the saved configuration of a key.
type KeySettings struct {
	Facts    []Setting // of a key of the configuration
	Rules    []string  // the rules over time, a sentence each
	Tokens   int       // number of its tokens
	NewToken string    // a new one, which is shown only once
	Text     string    // text in the editor
	Format   string    // format of the text: text, yaml or, for detection, ""
	Draft    *Draft    // nil if Text is saved
}

// Setting is a setting of a key of the configuration.
type Setting struct {
	Name string
	Text string      // what holds, a sentence
	Line *CopiedLine // the line that brings it; nil if it is there
}

// KeyInbox says where the messages of a key are read.
type KeyInbox struct {
	Address string       // address of its page
	Keep    string       // how long messages are kept
	Lines   []CopiedLine // how programs read them; none if they cannot
	Readers int          // number of secrets that read it
}

// CopiedLine is a text to copy.
type CopiedLine struct {
	Name string // its purpose
	Note string // its use; "" if that is clear
	Text string
	Log  string  // address of the page that keeps the token in it out of access logs; "" for no token that they keep
	Code *QRCode // code for Text; nil for none
}

// Destination is a destination with a button that tests it.
type Destination struct {
	Number int  // from 1
	Bar    *Bar // nil for none
	Named
	URL, Tags string // URL has its secrets masked
	Address   string // address of the key's page
	Health    *Health
	Waits     *Waits // nil if nothing waits
	Fields    []HiddenField
	Silence   SilenceLink
	Label     string // label of the button, for screen readers
	Status    string // status of a test: delivered, failed or skipped; "" without one
	Result    string // result of the test, a sentence
}

// AsksForTest reports whether a test is the next thing to do: nothing waits, and the last message
// did not arrive, or there was none.
func (d Destination) AsksForTest() bool {
	return d.Waits == nil && (d.Health == nil || d.Health.Urgent() || d.Health.Delivered.IsZero())
}

// maxShown is how many destinations a key shows if all are well. With more, its state would not fit
// on a screen.
const maxShown = 6

// ShownDestinations returns the destinations that the page of the key shows at once: all that may
// need attention, the worst first, and the first others.
func (p KeyPage) ShownDestinations() []Destination { return p.destinations(false) }

// FoldedDestinations returns the other destinations.
func (p KeyPage) FoldedDestinations() []Destination { return p.destinations(true) }

func (p KeyPage) destinations(folded bool) (out []Destination) {
	for i, d := range p.Destinations {
		well := d.Status == "" && d.Waits == nil && d.Health != nil && (d.Health.State == Fine || d.Health.State == Silent)
		if fold := well && i >= maxShown; fold == folded {
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b Destination) int { return a.rank() - b.rank() })
	return out
}

// rank is the position of a destination in the list, 0 for the worst. Those that are well are equal.
func (d Destination) rank() int {
	if d.Health == nil {
		return Silent.rank()
	}
	return min(d.Health.State.rank(), Silent.rank())
}

// TagList returns the tags one by one.
func (d Destination) TagList() []string {
	if d.Tags == "" {
		return nil
	}
	return strings.Split(d.Tags, ", ")
}

// HiddenField is a hidden field of a form.
type HiddenField struct{ Name, Value string }

// Draft describes an unsaved configuration.
type Draft struct {
	Problem            string // why it is not saved, if it has no mistakes
	URLs               int    // number of URLs, if it has no mistakes
	Mistakes, Warnings []Mistake
}

// Mistake is a mistake in a configuration, or a warning.
type Mistake struct {
	Line int // 0 for the configuration as a whole
	Text string
}

// Outcome is the outcome of a message.
type Outcome string

// The outcomes of messages and deliveries.
const (
	Delivered Outcome = "delivered"
	Failed    Outcome = "failed"
	Queued    Outcome = "queued"
	Refused   Outcome = "refused"
	Cancelled Outcome = "cancelled"
	Skipped   Outcome = "skipped"
	GivenUp   Outcome = "dead"
	Planned   Outcome = "planned"
	Held      Outcome = "held"  // by a rule
	Later     Outcome = "later" // a step of an escalation that has not begun
)

// outcomeWords are the words for the outcomes on a page.
var outcomeWords = map[Outcome]string{
	Delivered: "Delivered", Failed: "Failed", Queued: "Waiting", Refused: "Refused",
	Cancelled: "Cancelled", Skipped: "Not needed", GivenUp: "Given up", Planned: "Planned", Held: "Held", Later: "Later",
}

// Word returns the word for the outcome on a page.
func (o Outcome) Word() string { return outcomeWords[o] }

// Queue has the waiting and dead messages of a key.
type Queue struct {
	Problem string // why the queue is not shown
	Groups  []QueuedGroup
	More    bool // there may be more
}

// QueueFirst reports whether the queue has something to show, so that it comes before the last
// messages.
func (p KeyPage) QueueFirst() bool {
	return p.Queue != nil && (p.Queue.Problem != "" || len(p.Queue.Groups) > 0)
}

// QueuedGroup has the deliveries to one destination that wait or are dead for the same reason.
type QueuedGroup struct {
	Named
	URL      string  // with its secrets masked
	Tags     string  // tags of the destination
	Outcome  Outcome // Queued, Held, Later or GivenUp
	Reason   string
	Hold     string // why a rule holds them; "" if none does
	Count    int
	First    time.Time // when the oldest of their messages arrived
	Next     time.Time // time of the next attempt; zero for none
	Messages []MessageLink
}

// MessageLink links to the page of a message.
type MessageLink struct {
	ID   string
	Time time.Time
}

// shownLinks is how many messages of a group have a link.
const shownLinks = 5

// Links are the first messages of the group, the latest first.
func (g QueuedGroup) Links() []MessageLink { return g.Messages[:min(len(g.Messages), shownLinks)] }

var keyParts = newParts(source{
	templates: []string{
		"key.html", "key_destinations.html", "key_editor.html", "key_recent.html", "key_lines.html", "key_devices.html",
		"key_inbox.html", "key_tabs.html", "key_state.html",
	},
	scripts: []string{"destination.js", "key_editor.js"},
	styles:  []string{mainStyle},
	policy:  policyForms,
})

func (p KeyPage) view() view {
	return view{title: "Key " + p.Key, parts: keyParts, wide: true, data: struct {
		KeyPage
		EditorLines []editorLine
	}{p, p.lines()}}
}

// Bounds of the height of the editor, in lines, as in the script.
const (
	minEditorLines = 12
	maxEditorLines = 1000
)

// editorLine is a line number beside the editor.
type editorLine struct {
	Number int
	Class  string // "" for a line without a mistake
}

// lines returns the line numbers beside the editor, one more than its lines.
func (p KeyPage) lines() []editorLine {
	n := max(minEditorLines, strings.Count(strings.TrimSuffix(p.Text, "\n"), "\n")+2)
	lines := make([]editorLine, min(n, maxEditorLines))
	for i := range lines {
		lines[i].Number = i + 1
	}
	mark := func(all []Mistake, class string) {
		for _, m := range all {
			if m.Line > 0 && m.Line <= len(lines) {
				lines[m.Line-1].Class = class
			}
		}
	}
	if p.Draft != nil {
		mark(p.Draft.Warnings, "warned")
		mark(p.Draft.Mistakes, "wrong")
	}
	return lines
}
