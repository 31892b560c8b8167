package services

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // prescribed
	"crypto/rand"
	"errors"
	"fmt"
	"net/textproto"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// growlRequest is a GNTP request in the making.
type growlRequest struct{ bytes.Buffer }

// newGrowlRequest begins a request, which is signed where there is a
// password: a key is made of it and of a salt, and the hash of the key is
// sent. Of the hashes that the protocol has, MD5 is the one that every
// receiver knows.
func newGrowlRequest(kind, password string) *growlRequest {
	r := &growlRequest{}
	fmt.Fprintf(r, "GNTP/1.0 %s NONE", kind)
	if password != "" {
		salt := make([]byte, 16)
		_, _ = rand.Read(salt)                              // never fails
		key := md5.Sum(append([]byte(password), salt...))   //nolint:gosec // see above
		fmt.Fprintf(r, " MD5:%X.%X", md5.Sum(key[:]), salt) //nolint:gosec // see above
	}
	r.end()
	return r
}

// growlBreaks makes the line breaks of a value such as do not end it.
var growlBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "")

func (r *growlRequest) header(name, value string) {
	fmt.Fprintf(r, "%s: %s\r\n", name, growlBreaks.Replace(value))
}

// end ends a line, or a block of headers.
func (r *growlRequest) end() { r.WriteString("\r\n") }

// resource ends the headers with one whose value is data.
func (r *growlRequest) resource(name string, data []byte) {
	id := fmt.Sprintf("%x", md5.Sum(data)) //nolint:gosec // a name, no signature
	r.header(name, "x-growl-resource://"+id)
	r.end()
	r.header("Identifier", id)
	r.header("Length", fmt.Sprint(len(data)))
	r.end()
	r.Write(data)
	r.end()
	r.end()
}

// growlLine is a text in one line.
func growlLine(s string) string { return strings.Join(strings.Fields(growlBreaks.Replace(s)), " ") }

// exchange sends a request on a connection of its own, as the protocol has it,
// and reads what the desktop says to it.
func (g *growl) exchange(ctx context.Context, c *notifier.Client, r *growlRequest) error {
	conn, err := wire.Dial(ctx, c, g.Host, cmp.Or(g.Port, 23053), nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := wire.WithAnswerTimeout(ctx, c.AnswerTimeout())
	defer cancel()
	defer wire.InterruptOnDone(ctx, conn)()
	// A desktop that does not like the beginning may answer and hang up before
	// it has read the rest, so its answer is worth more than our failure.
	_, sending := conn.Write(r.Bytes())
	err = growlAnswer(textproto.NewReader(bufio.NewReader(conn)))
	if _, refused := errors.AsType[*growlRefusal](err); err == nil || refused {
		return err
	}
	return errs.ContextError(ctx, fmt.Errorf("talking to the desktop: %w", cmp.Or(sending, err)))
}

// growlAnswer reads an answer.
func growlAnswer(r *textproto.Reader) error {
	line, err := r.ReadLine()
	if err != nil {
		return err
	}
	f := strings.Fields(line)
	if len(f) < 2 || !strings.HasPrefix(f[0], "GNTP/1.") {
		return errors.New("what answers there does not speak GNTP")
	}
	if f[1] == "-OK" {
		return nil
	}
	header, _ := r.ReadMIMEHeader() // what there is of it
	return &growlRefusal{header.Get("Error-Code"), header.Get("Error-Description")}
}

// growlRefusal is an answer that says no.
type growlRefusal struct{ code, text string }

func (e *growlRefusal) Error() string {
	if e.code == "400" {
		return "the desktop does not accept the password, or wants one"
	}
	text := strings.Join(strings.Fields(e.code+" "+e.text), " ")
	return "the desktop refused the message: " + markup.Truncate(text, 300)
}

// forgotten says that the desktop does not know who sends.
func (e *growlRefusal) forgotten() bool { return e.code == "401" || e.code == "402" }
