package safety

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/mail"
	"net/url"
	"strings"
	"testing"
)

// mailServer runs a mail server. It returns its address and a channel of the
// messages as they came over the wire.
func mailServer(t *testing.T) (address string, got <-chan string) {
	letters := make(chan string, 10)
	return listen(t, "127.0.0.1:0", func(c net.Conn) {
		in := bufio.NewReader(c)
		say := func(text string) { _, _ = fmt.Fprintf(c, "%s\r\n", text) }
		say("220 mail.example ESMTP")
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			switch verb := strings.ToUpper(strings.Fields(line + " x")[0]); verb {
			case "EHLO":
				say("250-mail.example\r\n250-8BITMIME\r\n250 SMTPUTF8")
			case "MAIL", "RCPT", "RSET", "NOOP", "HELO":
				say("250 ok")
			case "DATA":
				say("354 go ahead")
				var letter strings.Builder
				for {
					line, err := in.ReadString('\n')
					if err != nil {
						return
					}
					if line == ".\r\n" {
						break
					}
					letter.WriteString(strings.TrimPrefix(line, "."))
				}
				letters <- letter.String()
				say("250 taken")
			case "QUIT":
				say("221 bye")
				return
			default:
				t.Errorf("unexpected command %q", line)
				say("500 what?")
			}
		}
	}), letters
}

// TestTextsInMail checks that a client's text adds no header to a mail and does
// not end it early.
func TestTextsInMail(t *testing.T) {
	t.Parallel()
	address, letters := mailServer(t)
	host, port, _ := strings.Cut(address, ":")
	g := start(t, "", "key k {\nurl \"mailto://"+host+":"+port+
		"?mode=insecure&from=gw@example.com&to=ops@example.com\"\n}\negress {\nallow 127.0.0.1\n}")
	const evil = "a\r\nX-Evil: 1\nX-Evil: 2\r\n\r\nMAIL FROM:<x@example.com>\r\n.\r\nRCPT TO:<evil@example.com>\x00"
	check := func(what string, got reply) {
		t.Helper()
		if got.Status != 200 {
			t.Errorf("%s: status %d: %s", what, got.Status, got.Body)
			return
		}
		text := <-letters
		letter, err := mail.ReadMessage(strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v\n%s", what, err, text)
			return
		}
		for header, values := range letter.Header {
			if strings.Contains(header, "Evil") || len(values) > 1 && header != "Received" {
				t.Errorf("%s: header %s: %q", what, header, values)
			}
		}
		if to := letter.Header.Get("To"); !strings.Contains(to, "ops@example.com") || strings.Contains(to, "evil") {
			t.Errorf("%s: To: %s", what, to)
		}
		_, params, err := mime.ParseMediaType(letter.Header.Get("Content-Type"))
		if err != nil || params["boundary"] == "" {
			return
		}
		parts := multipart.NewReader(letter.Body, params["boundary"])
		for {
			p, err := parts.NextPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", what, err, text)
				return
			}
			for header := range p.Header {
				if !strings.HasPrefix(header, "Content-") {
					t.Errorf("%s: a header got into a part: %v", what, p.Header)
				}
			}
			_, disposition, _ := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
			if name := disposition["filename"]; strings.ContainsAny(name, "/\\\r\n\x00") {
				t.Errorf("%s: the file is named %q", what, name)
			}
		}
	}
	for _, format := range []string{"text", "html", "markdown"} {
		check("texts, "+format, g.post("/notify/k", message{"title": evil, "body": evil, "format": format}))
	}
	file := base64.StdEncoding.EncodeToString([]byte(evil))
	for _, name := range []string{
		evil, "../../x", `..\x`, "a\"; x=\"b", "ü\u2028\r\nX-Evil: 1",
		"=?utf-8?q?a=0D=0AX-Evil:_1?=", strings.Repeat("x", 5000),
	} {
		for _, kind := range []string{
			"", evil, "text/plain;\r\n\r\nx=\"evil\"", "text/plain; name=\"a\r\nX-Evil: 1\"",
			"message/rfc822", "multipart/mixed; boundary=x",
		} {
			check(fmt.Sprintf("file %.20q of type %.20q", name, kind), g.post("/notify/k", message{
				"body": "x", "attach": []any{map[string]string{"base64": file, "filename": name, "mimetype": kind}},
			}))
		}
	}
	// A client may choose the addresses of its URL.
	for _, p := range []string{"from", "to", "cc", "bcc", "reply", "name", "user", "+X-Header", "+X-Header%0d%0aX-Evil:", "smtp"} {
		u := "mailto://" + address + "?mode=insecure&from=gw@example.com&to=ops@example.com&" + p + "=" + url.QueryEscape("ops@example.com"+evil)
		got := g.post("/notify", message{"body": "x", "urls": u})
		if got.Status == 200 {
			check(p, got)
		}
		for more := true; more; { // there may be several mails, or none
			select {
			case text := <-letters:
				if head, _, _ := strings.Cut(text, "\r\n\r\n"); strings.Contains(head, "\nX-Evil") {
					t.Errorf("%s: %s", p, text)
				}
			default:
				more = false
			}
		}
	}
}
