package view

import "time"

// AskPage shows a question to anybody who has its link, and how it was decided.
type AskPage struct {
	Root    string // see KeysPage
	Key     string
	Title   string
	Text    string
	Type    string
	Asked   []string // names of those asked
	Until   time.Time
	Default string // the answer that is taken if nobody answers; "" for none
	Open    bool

	Done    string // what the form has done; "" for nothing
	Problem string // why the form did nothing

	Action   string // the address that the form is sent to
	User     string // who answers; "" if unknown
	NoName   bool   // no name has to be typed in
	Options  []AskOption
	FreeText bool
	Typed    string // a typed text that is not an answer
	MaxText  int

	Outcome string // how it was decided; "" while it is open
	Answer  string
	By      string
	At      time.Time
}

// AskOption is an answer to choose from.
type AskOption struct {
	Text   string
	Chosen bool // the link names it
}

var askParts = newParts(source{templates: []string{"ask.html"}, styles: []string{mainStyle}, policy: policyForms})

func (p AskPage) view() view { return view{title: "Question", parts: askParts, wide: true} }
