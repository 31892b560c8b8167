package admin

import (
	"errors"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// questionRequest is the body of a request that asks a question.
type questionRequest struct {
	Title   string   `json:"title"`
	Body    string   `json:"body"`
	Type    string   `json:"type"`
	Tag     string   `json:"tag"`
	Options []string `json:"options"`
	Text    bool     `json:"text"`
	Timeout string   `json:"timeout"`
	Default string   `json:"default"`
	Tell    bool     `json:"tell"`
}

// maxQuestionRequest bounds the body of a request that asks a question, in bytes.
const maxQuestionRequest = 64 << 10

// questionJSON is the JSON of a question.
type questionJSON struct {
	ID           string `json:"id"`
	Destinations int    `json:"destinations,omitempty"` // that were asked, in the answer to POST
	*message.AskState
}

// serveAskQuestion asks a question of a key.
func serveAskQuestion(w http.ResponseWriter, r *http.Request) error {
	app, definitions, err := findSilenced(w, r)
	if err != nil {
		return err
	}
	if len(definitions) > 1 {
		return apiError(http.StatusConflict, errors.New("several sites define this key in their own way; "+
			"ask with a request to one of them: POST /notify/"+r.PathValue("key")))
	}
	q, err := app.Questions(definitions[0].Site, definitions[0].Key)
	if err != nil {
		return answerError(w, err)
	}
	var x questionRequest
	if err := readBody(w, r, maxQuestionRequest, &x,
		"the body must be one JSON object with body and options, and if needed title, type, tag, text, timeout, default and tell"); err != nil {
		return err
	}
	d, err := x.delivery(app, definitions[0])
	if err != nil {
		return err
	}
	a, err := x.ask()
	if err != nil {
		return err
	}
	report, id, err := q.Ask(r.Context(), d, a)
	if report == nil || err != nil {
		return answerError(w, err)
	}
	parsed, err := uuid.Parse(id)
	if err != nil {
		return err
	}
	asked, err := q.Get(r.Context(), parsed)
	if err != nil {
		return answerError(w, err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	return writeJSON(w, questionJSON{id, len(report.Results), asked.JSON(true)})
}

// delivery returns the message of a question to a key.
func (x *questionRequest) delivery(app *gateway.Gateway, at site.Definition) (d dispatch.Delivery, err error) {
	if x.Body == "" {
		return d, apiError(http.StatusBadRequest, errors.New("body is missing; write what is asked"))
	}
	typ, err := notifier.ParseType(x.Type)
	if err != nil {
		return d, apiError(http.StatusBadRequest, errs.Prefix("type", err))
	}
	tag, err := notifier.ParseTags(x.Tag)
	if err != nil {
		return d, apiError(http.StatusBadRequest, errs.Prefix("tag", err))
	}
	targets, err := at.Key.Choose(tag)
	if err != nil {
		return d, apiError(http.StatusFailedDependency, err)
	}
	m := &notifier.Message{Title: markup.OneLine(x.Title), Body: x.Body, Type: typ, Time: time.Now()}
	return dispatch.NewDelivery(at.Site, site.SourceHTTP, app.Conf.SiteID(at.Site), m, &message.Selection{Targets: targets}).ToKey(at.Key),
		nil
}

// ask returns how the question can be answered.
func (x *questionRequest) ask() (*message.Ask, error) {
	a := &message.Ask{Options: x.Options, Text: x.Text, Default: x.Default, Tell: x.Tell}
	if x.Timeout != "" {
		var err error
		if a.Timeout, err = caddy.ParseDuration(x.Timeout); err != nil || a.Timeout == 0 {
			return nil, apiError(http.StatusBadRequest, errors.New("timeout must be a duration such as 10m or 2h"))
		}
	}
	return a, nil // Questions.Ask checks it
}

// serveQuestion returns a question. With ?wait= and a number of seconds, it waits for the
// answer.
func serveQuestion(w http.ResponseWriter, r *http.Request) error {
	q, id, err := questionOf(w, r)
	if err != nil {
		return err
	}
	wait, err := httpapi.WaitOf(r)
	if err != nil {
		return answerError(w, err)
	}
	x, err := q.Get(r.Context(), id)
	if err == nil {
		x, err = q.Wait(r.Context(), x.Site, id, wait, nil)
	}
	if err != nil {
		return answerError(w, err)
	}
	return writeJSON(w, questionJSON{ID: id.String(), AskState: x.JSON(true)})
}

// serveWithdraw withdraws a question.
func serveWithdraw(w http.ResponseWriter, r *http.Request) error {
	q, id, err := questionOf(w, r)
	if err != nil {
		return err
	}
	x, err := q.Withdraw(r.Context(), id)
	if err != nil {
		return answerError(w, err)
	}
	return writeJSON(w, questionJSON{ID: id.String(), AskState: x.JSON(true)})
}

// questionOf returns the ID of the question in the path of r, and all questions.
func questionOf(w http.ResponseWriter, r *http.Request) (*ask.Questions, uuid.UUID, error) {
	q, err := runningQueue()
	if err != nil {
		return nil, uuid.UUID{}, err
	}
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return nil, id, answerError(w, ask.ErrNone)
	}
	return q.Questions, id, nil
}
