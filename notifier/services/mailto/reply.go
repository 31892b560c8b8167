package mailto

import (
	"errors"
	"fmt"
	"net/textproto"
	"os"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// timedConn bounds what a server can have us wait for and read.
type timedConn struct {
	*wire.Conn
	timeout time.Duration // for one answer; 0 for any
}

func (w *timedConn) Read(p []byte) (int, error) {
	if w.timeout <= 0 {
		return w.Conn.Read(p)
	}
	if err := w.SetReadDeadline(time.Now().Add(w.timeout)); err != nil {
		return 0, err
	}
	n, err := w.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("no answer within %s (rto)", w.timeout)
	}
	return n, err
}

// stepError says at which step what went wrong.
func stepError(step string, err error) error {
	answer, ok := errors.AsType[*textproto.Error](err)
	if !ok {
		return fmt.Errorf("talking to the mail server (%s): %w", step, err)
	}
	text := markup.Truncate(strings.Join(strings.Fields(answer.Msg), " "), 300)
	return &replyError{step: step, code: answer.Code, text: strings.ToValidUTF8(text, "")}
}

// stepEnd is the step behind which a server says what it thinks of a mail.
const stepEnd = "end of the mail"

// replyError is an answer by which a server declines.
type replyError struct {
	step string
	code int
	text string
}

// Is says that a mail which was heard to its end, or that is too large (552),
// was refused for what it is.
func (e *replyError) Is(err error) bool {
	return err == notifier.ErrRefused && (e.code == 552 || e.code/100 == 5 && e.step == stepEnd)
}

func (e *replyError) Error() string {
	return fmt.Sprintf("the mail server answered %d %s (%s)", e.code, e.text, e.step)
}
