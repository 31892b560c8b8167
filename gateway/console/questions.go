package console

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/askpage"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
)

// saysOfQuestion returns the outcome of a message that asks, in the words of its line. delivered is
// the outcome of its deliveries.
func saysOfQuestion(x *ask.Question, delivered view.Outcome) (view.Outcome, view.Says) {
	switch x.Outcome.State {
	case ask.Open:
		return view.Queued, view.Says{Text: "Asked, no answer yet; ends", At: x.Until}
	case ask.Answered:
		return view.Delivered, view.Says{Text: "Answered “" + x.Outcome.Answer + "” by " + cmp.Or(x.Outcome.By, "somebody")}
	case ask.Cancelled:
		return view.Cancelled, view.Says{Text: "Withdrawn"}
	case ask.Expired:
	}
	return delivered, view.Says{Text: askpage.HowDecided(x)}
}

// pageQuestion returns a question as the page of its message shows it.
func pageQuestion(x *ask.Question) *view.Question {
	return &view.Question{
		Options: x.Options, Asked: askpage.Asked(x), Until: x.Until, Default: x.Default, Open: x.IsOpen(), Outcome: askpage.HowDecided(x),
		Answer: x.Outcome.Answer, By: x.Outcome.By, At: x.Outcome.At,
	}
}

// withdrawQuery is the query parameter of a POST to the address of a message that withdraws its
// question.
const withdrawQuery = "withdraw"

// postWithdraw withdraws the question of a message.
func (h *messagePages) postWithdraw(w http.ResponseWriter, r *http.Request, at *httpapi.Route) error {
	q, e, err := h.pageMessage(r, at)
	if err != nil {
		return err
	}
	if _, err := q.Questions.Withdraw(r.Context(), e.Message.ID); err != nil {
		return httpapi.Answer(err)
	}
	if _, err := messagesOf(r, q).Cancel(context.WithoutCancel(r.Context()), e.Message.ID); err != nil {
		return httpapi.Answer(err)
	}
	return h.queue.changedDeliveries(w, r, httpapi.AddressOf(r, httpapi.RouteConsoleMessages)+"/"+at.ID, 1)
}

// openQuestions returns the questions of the site that nobody has answered.
func (h *shared) openQuestions(ctx context.Context, q *gateway.Rooms) ([]*ask.Question, error) {
	ctx, cancel := context.WithTimeout(ctx, outbox.AdminTimeout)
	defer cancel()
	var places []string
	for _, k := range h.Resolved.Keys {
		places = append(places, k.Place(h.Site()).String())
	}
	if h.Resolved.Saved.On() {
		names, err := h.Saved.List(ctx)
		if err != nil {
			return nil, err
		}
		saved, err := h.Resolved.Saved.Places(ctx, names)
		if err != nil {
			return nil, err
		}
		places = slices.AppendSeq(places, maps.Values(saved))
	}
	return q.Questions.OpenOf(ctx, places, h.Site())
}

// setQuestions sets the questions of the site that nobody has answered.
func (h *nowPage) setQuestions(r *http.Request, p *view.NowPage, q *gateway.Rooms) {
	open, err := h.openQuestions(r.Context(), q)
	if err != nil {
		p.Problem = httpapi.ErrQueueUnread
		return
	}
	listed := make([]view.ListedMessage, len(open))
	for i, x := range open {
		listed[i] = view.ListedMessage{ID: x.ID.String(), Key: h.App.Conf.NameOf(r.Context(), x.Place)}
		if e, err := q.Outbox.Messages().Get(r.Context(), h.Site(), x.ID); err == nil { // else the queue has forgotten its results
			listed[i].Time = e.Message.Created
		}
	}
	if err := h.messages.titles(r).set(r.Context(), listed); err != nil {
		p.Problem = httpapi.ErrQueueUnread
	}
	for i, x := range open {
		m := &listed[i]
		p.Questions = append(p.Questions, view.OpenQuestion{
			Title: cmp.Or(m.Title, m.Words), Address: httpapi.AddressOf(r, httpapi.RouteConsoleMessages) + "/" + m.ID, Key: m.Key,
			KeyAddress: httpapi.ConsoleKey(r, m.Key), Until: x.Until, Default: x.Default,
		})
	}
}
