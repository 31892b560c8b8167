package view

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// IncidentState is the state of an incident.
type IncidentState string

// The states of incidents, the worst first.
const (
	IncidentOpen         IncidentState = "open"         // nobody has acknowledged it
	IncidentAcknowledged IncidentState = "acknowledged" // somebody works on it
	IncidentResolved     IncidentState = "resolved"     // it has ended
)

// incidentWords are the words for the states on a page.
var incidentWords = map[IncidentState]string{IncidentOpen: "Open", IncidentAcknowledged: "Acknowledged", IncidentResolved: "Resolved"}

// IncidentsPage lists incidents, the worst first.
type IncidentsPage struct {
	Root      string // see KeysPage
	Filter    IncidentFilter
	Keys      []string // to choose from
	Incidents []IncidentRow
	Action    string       // the address that the forms are sent to; "" for none
	Done      string       // what a button has done; "" for nothing
	Problem   string       // why incidents are not shown; "" if they are
	Rules     bool         // a key has rules, so its incidents are stored
	Lacks     []CopiedLine // lines of the Caddyfile with which a key has rules
	First     string       // the address of the first page; "" if this is the first
	More      string       // the address of the next page; "" for none
	AnyDay    string       // the address of the same list for all days
	Week      *IncidentWeek
}

// IncidentFilter selects incidents. An empty field selects all.
type IncidentFilter struct {
	Key   string
	State IncidentState
	Day   string // such as "2026-11-28"
}

// On returns the day in words; "" for none.
func (f IncidentFilter) On() string {
	day, err := time.Parse(time.DateOnly, f.Day)
	if err != nil {
		return ""
	}
	return day.Format("Monday, 2 January")
}

// ListedIncident is an incident without the texts of its messages.
type ListedIncident struct {
	Address    string // address of its page; "" for none
	Title      string // title of the message that opened it; "" if it had none
	Name       string // the field incident of its messages; "" for none
	Key        string
	KeyAddress string // address of the key's page; "" for none
	Type       string // failure or warning
	State      IncidentState
	Since      time.Time // when it was opened
	Changed    time.Time // when it was acknowledged or resolved; zero before
	By         string    // who acknowledged or resolved it; "" if unknown
	Until      time.Time // when an acknowledgement ends; zero for never

	Line     *Line     // its escalation; nil for none
	Silenced time.Time // until when a silence holds back part of it; zero for none
	Partly   bool      // the silence affects only some destinations

	SilentToEnd bool // the silence ends when the incident is resolved, and at Silenced at the latest

	SilentFor string // names them, for managers
}

// IsSilent reports whether a silence keeps the incident from every destination.
func (x ListedIncident) IsSilent() bool { return !x.Silenced.IsZero() && !x.Partly }

// SaysSilence reports whether words say what a silence keeps back, because no line shows all of it.
func (x ListedIncident) SaysSilence() bool {
	return !x.Silenced.IsZero() && (x.Partly || !x.Line.HasBand())
}

// IncidentRow is an incident of a list, with its buttons.
type IncidentRow struct {
	ListedIncident
	Now      time.Time // of the page
	Action   string    // address that the forms are sent to
	PublicID string    // ID in the forms
	Silence  string    // the address at which it can be silenced; "" for none
	Resolve  bool      // it can be resolved here
	Forget   bool      // it can be forgotten

	Equal *EqualIncidents // nil for an incident alone
}

// EqualIncidents are equal incidents of a key, which are one row. The row has the buttons for all.
type EqualIncidents struct {
	Rows       []IncidentRow // the worst of them
	Count      int           // of all
	More       int           // those without a row
	Newest     time.Time     // when the newest was opened
	PublicIDs  string        // IDs in the form that acknowledges all, with spaces between them
	Address    string        // address of the list of all
	SilenceAll string        // the address at which all can be silenced; "" for none
	SilenceOf  string        // what that silences, such as "“Disk full on web-…”"
}

// Titles returns the first titles, and the number of others.
func (e *EqualIncidents) Titles() string {
	const shown = 2
	var titles []string
	for _, x := range e.Rows[:min(len(e.Rows), shown)] {
		titles = append(titles, cmp.Or(x.Title, x.Name, "Without a title"))
	}
	text := strings.Join(titles, ", ")
	if more := e.Count - len(titles); more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}

// Choices for the filter.
var filterIncidents = []Choice{
	{Value: "", Label: "any"},
	{Value: string(IncidentOpen), Label: "open"},
	{Value: string(IncidentAcknowledged), Label: "acknowledged"},
	{Value: string(IncidentResolved), Label: "resolved"},
}

var incidentsParts = newParts(source{templates: []string{"incidents.html"}, styles: []string{mainStyle}, policy: policyForms})

func (p IncidentsPage) view() view {
	return view{title: "Incidents", parts: incidentsParts, wide: true, data: struct {
		IncidentsPage
		States []Choice
		Line   FilterLine
	}{
		p, choose(filterIncidents, string(p.Filter.State)),
		newFilterLine(p.Root+"notify/console/incidents", named("key", p.Filter.Key), label(filterIncidents, string(p.Filter.State)),
			named("opened on", p.Filter.On())),
	}}
}

// IncidentPage shows an incident. Anybody with its address may see it. Only managers see who was
// told and the text of a message.
type IncidentPage struct {
	Root     string // see KeysPage
	Console  bool   // the reader may manage, so there is a list of incidents
	Incident ListedIncident
	Done     Says   // what a button has done; the zero value for nothing
	Problem  string // why the button did nothing
	Text     string // text of the last message with its state; "" if no inbox keeps it or the reader may not manage
	Events   []IncidentEvent

	Action      string // the address that the forms are sent to
	User        string // who is logged in; "" for a field with the name
	Acknowledge bool   // it can be acknowledged
	Resolve     bool   // it can be resolved
	Silence     string // the address at which it can be silenced; "" for none
}

// IncidentEvent is an event in the life of an incident, the latest first.
type IncidentEvent struct {
	Time  time.Time
	Text  string
	Worse bool // it was opened, became worse, or nobody was reached
}

var incidentParts = newParts(source{templates: []string{"incident.html"}, styles: []string{mainStyle}, policy: policyForms})

func (p IncidentPage) view() view { return view{title: "Incident", parts: incidentParts, wide: true} }
