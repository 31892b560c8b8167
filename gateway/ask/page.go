package ask

import (
	"cmp"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Visit is a request for the page of a question.
type Visit struct {
	Chosen  string // the answer that the link names; it is only shown
	User    string // who is logged in; "" for nobody
	Action  string // the address that the form is sent to
	Root    string // the way to the root of the site
	Typed   string // the text that was sent
	Problem string // why it is no answer
	First   bool   // the answer counts
	Late    bool   // it does not, because the question was decided before

	Warnings []string // about what of the request could not be read
}

// CheckAnswer returns an error, one sentence, if text is no answer to the question.
func (x *Question) CheckAnswer(text string) error { return api.CheckAnswer(text, x.Options) }

// Page returns the page of the question for who has the link.
func (at *At) Page(v *Visit) view.AskPage {
	x := at.Question
	p := view.AskPage{
		Root: v.Root, Key: x.Key, Title: x.Title, Text: x.Body, Type: string(x.Type), Until: x.Until, Open: x.IsOpen(), Problem: v.Problem,
		Action: v.Action, FreeText: x.Text, Typed: v.Typed, MaxText: api.MaxAnswer, Default: x.Default, NoName: v.User != "" || at.Device() != "",
	}
	if p.User = v.User; p.User == "" {
		p.User = at.Device()
	}
	for _, t := range x.Targets {
		p.Asked = append(p.Asked, cmp.Or(t.Name, notifier.NameOf("", t.URL), "a destination"))
	}
	for _, o := range x.Options {
		p.Options = append(p.Options, view.AskOption{Text: o, Chosen: o == v.Chosen})
	}
	switch {
	case x.IsOpen():
	case v.First:
		p.Done = "Your answer counts. It is stored."
	case v.Late:
		p.Problem = "It was decided before; your answer does not count."
	}
	if p.Problem == "" {
		p.Problem = strings.Join(v.Warnings, ". ")
	}
	p.Outcome, p.Answer, p.By, p.At = x.decided(), x.Outcome.Answer, x.Outcome.By, x.Outcome.At
	return p
}

// decided says how the question was decided; "" while it is open.
func (x *Question) decided() string {
	switch x.Outcome.State {
	case Answered:
		return "Answered"
	case Expired:
		if x.Default != "" {
			return "Nobody has answered in time, so the default counts"
		}
		return "Nobody has answered in time"
	case Cancelled:
		return "The question was withdrawn"
	case Open:
	}
	return ""
}
