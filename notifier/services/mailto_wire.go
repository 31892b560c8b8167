package services

import (
	"errors"
	"fmt"
	"net/textproto"
	"os"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// mailtoWire bounds what a server can have us wait for and read.
type mailtoWire struct {
	*limitedConn
	patience time.Duration // for one answer; 0 for any
}

func (w *mailtoWire) Read(p []byte) (int, error) {
	if w.patience <= 0 {
		return w.limitedConn.Read(p)
	}
	if err := w.SetReadDeadline(time.Now().Add(w.patience)); err != nil {
		return 0, err
	}
	n, err := w.limitedConn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("no answer within %s (rto)", w.patience)
	}
	return n, err
}

// mailtoError says at which step what went wrong.
func mailtoError(step string, err error) error {
	var answer *textproto.Error
	if !errors.As(err, &answer) {
		return fmt.Errorf("talking to the mail server (%s): %w", step, err)
	}
	text := strings.Join(strings.Fields(answer.Msg), " ")
	if r := []rune(text); len(r) > 300 {
		text = string(r[:300]) + "…"
	}
	return &mailtoRefusal{step: step, code: answer.Code, text: strings.ToValidUTF8(text, "")}
}

// mailtoEnd is the step behind which a server says what it thinks of a mail.
const mailtoEnd = "end of the mail"

// mailtoRefusal is an answer by which a server declines.
type mailtoRefusal struct {
	step string
	code int
	text string
}

// Is says that a mail which was heard to its end, or that is too large (552),
// was refused for what it is.
func (e *mailtoRefusal) Is(err error) bool {
	return err == notifier.ErrRefused && (e.code == 552 || e.code/100 == 5 && e.step == mailtoEnd)
}

func (e *mailtoRefusal) Error() string {
	return fmt.Sprintf("the mail server answered %d %s (%s)", e.code, e.text, e.step)
}
