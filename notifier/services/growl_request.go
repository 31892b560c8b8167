package services

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // required by GNTP
	"crypto/rand"
	"errors"
	"fmt"
	"net/textproto"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

// growlRequest builds a GNTP request.
type growlRequest struct{ text bytes.Buffer }

// newGrowlRequest begins a request. With a password the request is signed: the key
// is the hash of the password and a salt, and the request contains the hash of the
// key. MD5 is the only hash that every implementation of GNTP supports.
func newGrowlRequest(kind, password string) *growlRequest {
	r := &growlRequest{}
	fmt.Fprintf(&r.text, "GNTP/1.0 %s NONE", kind)
	if password != "" {
		salt := make([]byte, 16)
		_, _ = rand.Read(salt)                                    // never fails
		key := md5.Sum(append([]byte(password), salt...))         //nolint:gosec // see above
		fmt.Fprintf(&r.text, " MD5:%X.%X", md5.Sum(key[:]), salt) //nolint:gosec // see above
	}
	r.end()
	return r
}

// growlLineBreaks replaces line breaks, because \r\n would end a header.
var growlLineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "")

func (r *growlRequest) header(name, value string) {
	fmt.Fprintf(&r.text, "%s: %s\r\n", name, growlLineBreaks.Replace(value))
}

// end ends a line, or a block of headers.
func (r *growlRequest) end() { r.text.WriteString("\r\n") }

// resource adds a header whose value is data, and ends the headers.
func (r *growlRequest) resource(name string, data []byte) {
	id := fmt.Sprintf("%x", md5.Sum(data)) //nolint:gosec // an identifier, not a signature
	r.header(name, "x-growl-resource://"+id)
	r.end()
	r.header("Identifier", id)
	r.header("Length", fmt.Sprint(len(data)))
	r.end()
	r.text.Write(data)
	r.end()
	r.end()
}

// growlLine returns s in one line.
func growlLine(s string) string {
	return strings.Join(strings.Fields(growlLineBreaks.Replace(s)), " ")
}

// exchange sends a request on a new connection, as GNTP requires, and reads the
// answer.
func (g *growl) exchange(ctx context.Context, c *notifier.Client, r *growlRequest) error {
	conn, err := wire.Dial(ctx, c, g.Host, cmp.Or(g.Port, 23053), nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := wire.WithAnswerTimeout(ctx, c.AnswerTimeout())
	defer cancel()
	defer wire.InterruptOnDone(ctx, conn)()
	// A desktop that refuses a request may answer and close the connection before
	// it has read everything. Its answer is then better than the write error.
	_, writeErr := conn.Write(r.text.Bytes())
	err = growlAnswer(c, textproto.NewReader(bufio.NewReader(conn)))
	if _, refused := errors.AsType[*growlError](err); err == nil || refused {
		return err
	}
	return errs.ContextError(ctx, fmt.Errorf("talking to the desktop: %w", cmp.Or(writeErr, err)))
}

// growlAnswer reads an answer. It returns a *growlError if the request was refused.
func growlAnswer(c *notifier.Client, r *textproto.Reader) error {
	line, err := r.ReadLine()
	if err != nil {
		return err
	}
	f := strings.Fields(line)
	if len(f) < 2 || !strings.HasPrefix(f[0], "GNTP/1.") {
		return errors.New("the server does not speak GNTP")
	}
	if f[1] == "-OK" {
		return nil
	}
	header, _ := r.ReadMIMEHeader() // may be incomplete
	code := header.Get("Error-Code")
	refused := &growlError{code, c.Excerpt(code + " " + header.Get("Error-Description"))}
	if refused.wrongPassword() {
		return notifier.Denied(refused)
	}
	return refused
}

// growlError is an answer that refuses the request. text begins with the code.
type growlError struct{ code, text string }

func (e *growlError) Error() string {
	if e.wrongPassword() {
		return "the desktop refused the password, or requires one"
	}
	return "the desktop refused the message: " + e.text
}

func (e *growlError) wrongPassword() bool { return e.code == "400" }

// notRegistered reports whether the desktop does not know the application.
func (e *growlError) notRegistered() bool { return e.code == "401" || e.code == "402" }
