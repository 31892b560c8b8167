package view

import "time"

// ResponsePage shows the response to a request.
type ResponsePage struct {
	Title   string
	Reason  string // why nothing was done, a sentence; "" if something was
	Home    string // the address of the start page, for an error without another link
	Lines   []ResponseLine
	Log     bool   // the lines are shown with their levels and times
	FormURL string // the address of a form for messages; "" for none
	BackURL string // the address of the page whose button was used; "" for none
}

// ResponseLine is a line of a response.
type ResponseLine struct {
	Level    string // INFO, WARNING or ERROR
	Optional bool   // an error that does not count
	Time     time.Time
	Text     string
}

var responseParts = newParts(source{templates: []string{"response.html"}, styles: []string{mainStyle}, policy: policyReadOnly})

func (p ResponsePage) view() view { return view{title: p.Title, parts: responseParts} }
