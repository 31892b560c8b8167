package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/askpage"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// Errors for questions that cannot be asked here.
var (
	errAskNoKey   = askError(http.StatusBadRequest, "the field ask needs a key: post to /notify/{KEY}, because its destinations are asked")
	errAskNoLogin = askError(http.StatusBadRequest, "the field ask.login needs a console, whose login the page is behind; "+
		"the operator can add console, or leave out login")
	errAskCallback = askError(http.StatusForbidden, "the field ask.callback is turned off here, as are other addresses of clients; "+
		"wait for the answer with ?wait=60, or the operator can write ask_callback on")
	errAskSource = askError(http.StatusBadRequest, "the field ask is not read in the format of another program; post to /notify/{KEY}")
)

func askError(status int, text string) *api.Error {
	return &api.Error{Status: status, Field: "ask", Err: errors.New(text)}
}

// question sets the question of a request to a key, which may be nil, in d, if it asks one.
func (h *Sender) question(q *api.Request, at *Route, k *site.Key, d *dispatch.Delivery) (err error) {
	if d.Question, err = q.Ask(h.ParseDuration); err != nil || d.Question == nil {
		return err
	}
	switch {
	case k == nil:
		return errAskNoKey
	case at.Source != "":
		return errAskSource
	}
	if _, err := h.App.Questions(h.Resolved, k); err != nil {
		return err // before the attachments are fetched
	}
	if d.Question.Login && !h.Has.Console {
		return errAskNoLogin
	}
	return h.canCallBack(d.Question)
}

// canCallBack returns an error if the site does not let clients name the address that gets the
// outcome of a question. The IP addresses of its host are checked when it is called.
func (h *Sender) canCallBack(a *message.Ask) error {
	host := a.CallbackHost()
	switch {
	case host == "":
		return nil
	case !h.Resolved.Callbacks:
		return errAskCallback
	}
	if err := h.Resolved.Limits.Egress.CheckHost(host); err != nil {
		return &api.Error{Status: http.StatusBadRequest, Field: "ask", Err: errs.Prefix("the field ask.callback", err)}
	}
	return nil
}

// ask asks the question of d, a message to a key, and answers its request.
func (h *Sender) ask(r *http.Request, k *site.Key, d dispatch.Delivery) (*api.Response, error) {
	q, err := h.App.Questions(h.Resolved, k)
	if err != nil {
		d.Release()
		return nil, err
	}
	report, id, err := q.Ask(r.Context(), d, d.Question)
	if report == nil {
		d.Release()
		e, ok := errors.AsType[*queue.DuplicateError](err)
		if !ok {
			return nil, outbox.QueueError(err)
		}
		resp, err := h.repeated(r, e, api.Preference{}, &d)
		if err == nil {
			resp.SetAsked(e.ID.String(), messageAddress(r, e.ID.String()))
		}
		return resp, err
	}
	resp := api.NewResponse(report)
	resp.SetAsked(id, messageAddress(r, id))
	return resp, nil
}

// maxWait is how long one request can wait for an answer.
const maxWait = 60 * time.Second

// WaitOf returns how long the client of r wants to wait for the answer to a question.
func WaitOf(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return api.ParsePrefer(r.Header).Wait, nil
	}
	n, err := strconv.Atoi(strings.TrimSuffix(text, "s"))
	if errors.Is(err, strconv.ErrRange) && n > 0 {
		err = nil
	}
	if err != nil || n < 0 {
		return 0, api.Errorf(http.StatusBadRequest, "wait must be a number of seconds, at most %d", int(maxWait.Seconds()))
	}
	return time.Duration(min(n, int(maxWait.Seconds()))) * time.Second, nil
}

// waitForAnswer returns the question of a message when it is decided, or after the time that the
// client of r wants to wait. It is nil if the message asks nothing.
func (h *Messages) waitForAnswer(r *http.Request, q *ask.Questions, id uuid.UUID) (*ask.Question, error) {
	wait, err := WaitOf(r)
	if err != nil {
		return nil, err
	}
	x, err := q.Wait(r.Context(), h.Site(), id, 0, nil)
	if err == nil && wait > 0 && x.IsOpen() {
		leave, full := h.enterWaiting(r, x.Place)
		if full != nil {
			return nil, full
		}
		defer leave()
		x, err = q.Wait(r.Context(), h.Site(), id, wait, h.streams.Ending)
	}
	if errors.Is(err, ask.ErrNone) {
		return nil, nil
	}
	return x, Answer(err)
}

// enterWaiting counts the client of r among the clients that wait for a key instead of the messages
// under way. The caller calls leave in the end.
func (h *Base) enterWaiting(r *http.Request, at site.Place) (leave func(), err error) {
	if leave, err = h.Shared.Waiting.Enter(at.String(), ClientAddress(r)); err == nil {
		leaveEntered(r)
	}
	return leave, err
}

// askState returns the part of a question that the client of r may see.
func (h *Messages) askState(r *http.Request, x *ask.Question) *message.AskState {
	return x.JSON(h.maySeeAnswer(r, h.App.Conf.NameOf(r.Context(), x.Place)))
}

// maySeeAnswer reports whether the client of r may see the answer to a question of a key: it may
// manage, or send to the key.
func (h *Messages) maySeeAnswer(r *http.Request, key string) bool {
	if h.MayManage(r) == nil {
		return true
	}
	_, err := h.Lookup(key).toSend(r)
	return err == nil
}

// MaxAnswerForm bounds the form of a question, in bytes.
const MaxAnswerForm = 16 << 10

// Asks shows and answers questions: /notify/asks/{ID}.
type Asks struct{ *Base }

// serveAsk answers a request for the page of a question. GET and HEAD change nothing, because
// scanners of mails and previews of chats follow links.
func (h *Asks) serveAsk(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Robots-Tag", "noindex, nofollow")
	if err := h.doAsk(w, r, at); err != nil {
		return h.ErrorResponse(r, err)
	}
	return nil
}

var errAskLogin = api.Errorf(http.StatusForbidden,
	"this question is answered by people who are logged in; log in, or ask the operator to put an authentication in front of the console")

func (h *Asks) doAsk(w http.ResponseWriter, r *http.Request, at *Route) error {
	if err := at.CheckMethod(w, r); err != nil {
		return err
	}
	q, err := h.App.Open(nil)
	if err != nil {
		return err
	}
	login := at.Pattern == RouteConsoleAsk
	if login && userOf(r) == "" && h.MayManage(r) != nil {
		return errAskLogin
	}
	x, own, err := h.followQuestion(r.Context(), q, at.ID, login)
	if err != nil {
		return err
	}
	may := h.rightsTo(r, own)
	v := askpage.Visit{
		Chosen: r.URL.Query().Get(ask.AnswerParameter), User: may.user, Action: RelativeAddress(r),
		Root: api.RootOf(r.URL.Path),
	}
	status := http.StatusOK
	if r.Method == http.MethodPost {
		if status, err = h.answer(w, r, q.Questions, x, &v); err != nil {
			return err
		}
	}
	if api.PrefersHTML(r) {
		return h.WritePage(w, r, status, "", askpage.Of(x, &v))
	}
	w.Header().Add("Vary", "Accept")
	if own && h.mayActOn(r, h.App.Conf.NameOf(r.Context(), x.Place)) {
		return WriteJSON(w, status, askAnswer{x.JSON(true), v.Warnings})
	}
	return WriteJSON(w, status, askAnswer{x.GuestJSON(), v.Warnings})
}

// askAnswer is the JSON of a question, with warnings about the request.
type askAnswer struct {
	*message.AskState

	Warnings []string `json:"warnings,omitempty"`
}

// answer answers a question with the form of r. The page shows a problem.
func (h *Asks) answer(w http.ResponseWriter, r *http.Request, q *ask.Questions, x *ask.At, v *askpage.Visit) (status int, err error) {
	if err := CheckOwnOrigin(r); err != nil {
		return 0, err
	}
	form := askpage.ReadForm(w, r, MaxAnswerForm)
	v.Warnings = form.Warnings
	if text := x.CheckAnswer(form.Answer); text != nil && x.IsOpen() {
		if !api.PrefersHTML(r) {
			return 0, &api.Error{Status: http.StatusBadRequest, Field: ask.AnswerParameter, Err: text}
		}
		v.Problem, v.Typed = text.Error(), form.Answer
		return http.StatusBadRequest, nil
	}
	now, first, err := q.Answer(r.Context(), x, form.Answer, message.Who{User: cmp.Or(v.User, x.Device()), Typed: form.By}.String())
	if err != nil {
		return 0, Answer(err)
	}
	x.Question = now
	if v.First = first; !first {
		v.Late = true
		return http.StatusConflict, nil
	}
	return http.StatusOK, nil
}

// question answers a request for a message that the queue has forgotten, because the queue keeps
// results for a shorter time than a question can be open. Withdrawing the question then needs more
// than its ID.
func (h *Messages) question(r *http.Request, q *ask.Questions, id uuid.UUID) (*api.Response, error) {
	x, err := q.Wait(r.Context(), h.Site(), id, 0, nil)
	if errors.Is(err, ask.ErrNone) {
		return nil, outbox.ErrNoMessage
	}
	if err != nil {
		return nil, Answer(err)
	}
	if r.Method == http.MethodDelete {
		if !h.mayActOn(r, h.App.Conf.NameOf(r.Context(), x.Place)) {
			return nil, errCancelToken
		}
		if x, err = q.Withdraw(r.Context(), id); err != nil {
			return nil, Answer(err)
		}
	}
	m := x.Message()
	m.Ask = h.askState(r, x)
	return api.MessageResponse(m), nil
}
