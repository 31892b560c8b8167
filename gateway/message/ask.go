package message

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/standardwebhook"
	"github.com/caddy-notify/caddy-notify/internal/timetext"
)

// Ask is the question of a message: which answers it takes, and how the client gets the answer.
type Ask struct {
	Options  []string      // the answer is one of them
	Text     bool          // the answer is a text
	Timeout  time.Duration // time to answer; 0 for [DefaultAskTimeout]
	Default  string        // the answer that is taken if nobody answers; "" for none
	Login    bool          // the page needs the login of the site
	Tell     bool          // those who were asked are told the outcome
	Callback string        // the address that gets the outcome; "" for none
	Secret   string        // secret of Standard Webhooks for the callback; "" for none
}

// The bounds of a question.
const (
	MinOptions        = 2
	MaxOptions        = 6
	MaxOption         = 40 // characters
	MaxAnswer         = 2000
	MinAskTimeout     = 10 * time.Second
	MaxAskTimeout     = 7 * 24 * time.Hour
	DefaultAskTimeout = time.Hour
	maxCallback       = 2000 // bytes
)

// Check returns a [*message.Error] that names the field if the question cannot be asked. It sets the
// timeout if there is none.
func (a *Ask) Check() error {
	if a.Timeout == 0 {
		a.Timeout = DefaultAskTimeout
	}
	if a.Timeout < MinAskTimeout || a.Timeout > MaxAskTimeout {
		return invalidAsk("the field ask.timeout must be from 10s to 7d")
	}
	if err := a.checkAnswers(); err != nil {
		return err
	}
	return a.checkCallback()
}

// checkAnswers checks the options and the default.
func (a *Ask) checkAnswers() error {
	switch {
	case a.Text && len(a.Options) > 0:
		return invalidAsk("the field ask has options and text; leave out options for a free answer, or text for a choice")
	case a.Text && utf8.RuneCountInString(a.Default) > MaxAnswer:
		return invalidAsk("the field ask.default is longer than %d characters", MaxAnswer)
	case a.Text:
		return nil
	case len(a.Options) < MinOptions || len(a.Options) > MaxOptions:
		return invalidAsk("the field ask.options must have %d to %d options, and has %d; for a free answer, set text instead", MinOptions,
			MaxOptions, len(a.Options))
	}
	for i, o := range a.Options {
		switch n := utf8.RuneCountInString(o); {
		case n == 0 || n > MaxOption || strings.TrimSpace(o) != o || strings.ContainsFunc(o, unicode.IsControl):
			return invalidAsk("the field ask.options[%d] must be 1 to %d characters in one line, without a space at its ends", i, MaxOption)
		case slices.Contains(a.Options[:i], o):
			return invalidAsk("the field ask.options[%d] is the same as one before it; make the options different", i)
		}
	}
	if a.Default != "" && !slices.Contains(a.Options, a.Default) {
		return invalidAsk("the field ask.default must be one of the options")
	}
	return nil
}

// checkCallback checks the callback address. Whether it may be called is decided when it is called.
func (a *Ask) checkCallback() error {
	if a.Callback == "" {
		if a.Secret != "" {
			return invalidAsk("the field ask.secret signs the callback, so that it needs the field ask.callback")
		}
		return nil
	}
	u, err := url.Parse(a.Callback)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(a.Callback) > maxCallback {
		return invalidAsk("the field ask.callback must be an http or https address without a password, of at most %d bytes", maxCallback)
	}
	if a.Secret != "" {
		if _, err := standardwebhook.ParseKey(a.Secret); err != nil {
			return invalidAsk("the field ask.secret %w", err)
		}
	}
	return nil
}

// CallbackHost returns the host of the callback address, without a port, or "".
func (a *Ask) CallbackHost() string {
	u, err := url.Parse(a.Callback)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// invalidAsk returns the error for an invalid question.
func invalidAsk(format string, args ...any) error {
	e := Errorf(Invalid, format, args...)
	e.Field = "ask"
	return e
}

// CheckAnswer returns an error of one sentence if text does not answer the question.
func CheckAnswer(text string, options []string) error {
	switch {
	case len(options) > 0 && !slices.Contains(options, text):
		return fmt.Errorf("the answer must be one of the options: %s", strings.Join(options, ", "))
	case strings.TrimSpace(text) == "":
		return errors.New("the answer is empty; type one")
	case utf8.RuneCountInString(text) > MaxAnswer:
		return fmt.Errorf("the answer is longer than %d characters; make it shorter", MaxAnswer)
	}
	return nil
}

// AskState is what clients see of a question.
type AskState struct {
	State string    `json:"state"` // open, answered, expired or cancelled
	Until time.Time `json:"until"` // when it expires, or would have

	// Answer is for clients that may send to the key or manage. An expired question has its
	// default.
	Answer  *string    `json:"answer,omitempty"`
	By      string     `json:"by,omitempty"`      // who has answered
	At      *time.Time `json:"at,omitempty"`      // when it was decided
	Through string     `json:"through,omitempty"` // the destination whose link was used
}

// text returns the state in a sentence.
func (s *AskState) text() string {
	switch {
	case s.State == "open":
		return "The question is open until " + timetext.FormatSeconds(s.Until)
	case s.Answer == nil:
		return "The question is " + s.State
	case s.By == "":
		return "The question is " + s.State + ": " + *s.Answer
	}
	return "The question is " + s.State + ": " + *s.Answer + ", by " + s.By
}
