package safety

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
)

// TestSecretsAtCuts checks that neither the client nor the log gets a part of a
// secret if the server's response repeats it where the gateway cuts the
// response, or repeats it escaped several times.
func TestSecretsAtCuts(t *testing.T) {
	const secret = `Zq7x"W9kLm/2Vb4&Nc8R`
	inJSON := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	answers := map[string]string{
		"JSON in JSON":          inJSON(inJSON(secret)),
		"JSON in JSON in JSON":  inJSON(inJSON(inJSON(secret))),
		"percent escapes twice": url.QueryEscape(url.QueryEscape(secret)),
		"half escaped":          secret[:10] + url.QueryEscape(secret[10:]),
	}
	for n := 1; n < len(secret); n++ {
		answers[fmt.Sprintf("%d characters before 64 KiB", n)] = strings.Repeat(" ", 64<<10-n) + secret
		answers[fmt.Sprintf("%d characters before 300", n)] = strings.Repeat(".", 300-n) + secret
	}
	s := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, answers[r.URL.Query().Get("answer")])
	})
	mail := listen(t, "127.0.0.1:0", textServer("220 mail.example ESMTP", func(line string) string {
		if strings.HasPrefix(line, "EHLO") {
			return "250-mail.example\r\n250 AUTH PLAIN"
		}
		return "535 " + strings.Repeat(".", 285) + secret
	}))
	g := start(t, "", "egress {\nallow 127.0.0.0/8\n}")
	urls := map[string]string{
		"mail": "mailto://user:" + url.QueryEscape(secret) + "@" + mail + "?from=me@example.com&to=you@example.com&mode=insecure",
	}
	for name := range answers {
		urls[name] = "json://user:" + url.QueryEscape(secret) + "@" + authority(s) + "?-answer=" + url.QueryEscape(name)
	}
	for name, u := range urls {
		r := g.post("/notify", message{"urls": []string{u}, "body": "x"})
		if r.Status != http.StatusFailedDependency {
			t.Errorf("%s: status %d %s", name, r.Status, r.Body)
		}
		for text, where := range map[string]string{r.text(): "the answer", g.log(): "the log"} {
			if piece := shownPart(text, secret); piece != "" {
				t.Fatalf("%s: %s shows %q of the secret: %.1000s", name, where, piece, text)
			}
		}
	}
}

// shownPart returns the first five characters of a part of secret that text
// shows, or "".
func shownPart(text, secret string) string {
	for i := 0; i+5 <= len(secret); i++ {
		if strings.Contains(text, secret[i:i+5]) {
			return secret[i : i+5]
		}
	}
	return ""
}

// textServer returns a server that greets, and answers each line.
func textServer(greeting string, answer func(line string) string) func(net.Conn) {
	return func(c net.Conn) {
		conn := textproto.NewConn(c)
		_ = conn.PrintfLine("%s", greeting)
		for {
			line, err := conn.ReadLine()
			if err != nil {
				return
			}
			_ = conn.PrintfLine("%s", answer(line))
		}
	}
}
