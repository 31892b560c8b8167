// Package askpage makes the page of a question and reads its form.
package askpage

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Visit is a request for the page of a question.
type Visit struct {
	Chosen  string // the answer in the link, which is only shown
	User    string // who is logged in; "" for nobody
	Action  string // the address that the form is sent to
	Root    string // the relative address of the root of the site
	Typed   string // the text that was sent
	Problem string // why it is not an answer
	First   bool   // the answer counts
	Late    bool   // the question was decided before

	Warnings []string // about parts of the request that could not be read
}

// Of returns the page of the question for anybody with its link.
func Of(at *ask.At, v *Visit) view.AskPage {
	x := at.Question
	p := view.AskPage{
		Root: v.Root, Key: x.Key, Title: x.Title, Text: x.Body, Type: string(x.Type), Until: x.Until, Open: x.IsOpen(), Problem: v.Problem,
		Action: v.Action, FreeText: x.Text, Typed: v.Typed, MaxText: message.MaxAnswer, Default: x.Default, NoName: v.User != "" ||
			at.Device() != "",
	}
	if p.User = v.User; p.User == "" {
		p.User = at.Device()
	}
	p.Asked = Asked(x)
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
	p.Outcome, p.Answer, p.By, p.At = HowDecided(x), x.Outcome.Answer, x.Outcome.By, x.Outcome.At
	return p
}

// Asked returns the names of those who were asked.
func Asked(x *ask.Question) (names []string) {
	for _, t := range x.Targets {
		names = append(names, cmp.Or(t.Name, notifier.NameOf("", t.URL), "a destination"))
	}
	return names
}

// HowDecided says how the question was decided, or "" while it is open.
func HowDecided(x *ask.Question) string {
	switch x.Outcome.State {
	case ask.Answered:
		return "Answered"
	case ask.Expired:
		if x.Default != "" {
			return "Nobody has answered in time, so “" + x.Default + "” is taken"
		}
		return "Nobody has answered in time; nothing is decided"
	case ask.Cancelled:
		return "The question was withdrawn"
	case ask.Open:
	}
	return ""
}

// Form is the content of the form on the page.
type Form struct {
	Answer, By string
	Warnings   []string // about parts that could not be read
}

// ReadForm reads a body of up to max bytes: the form, its fields in another format, or the answer
// itself.
func ReadForm(w http.ResponseWriter, r *http.Request, max int64) Form {
	q := api.ReadSignal(w, r, message.Limits{MaxBody: max}, ask.AnswerParameter, "by")
	defer q.Close()
	// Only the body counts: the address of a link may have an answer, too, which decides nothing.
	answer := strings.ReplaceAll(cmp.Or(q.SignalField(ask.AnswerParameter), q.SignalText()), "\r\n", "\n")
	return Form{answer, q.SignalField("by"), q.Warnings()}
}
