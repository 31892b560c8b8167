package safety

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"unicode"
)

// foreign is a text with which a server would change what a terminal shows: it clears the
// screen, sets a title and turns the direction of text around.
const foreign = "no\x1b[2J\x1b]0;x\a\u009b31m room \u202etfel\u202c \u2066in\u2069\u200f box\x7f"

// TestForeignTextIsPrintable checks that answers in plain text and the output of the command send
// have no control characters of a destination or a client, and none of their characters that change
// the direction of text.
func TestForeignTextIsPrintable(t *testing.T) {
	t.Parallel()
	hostile := serveHTTP(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, foreign)
	})
	url := "json://" + authority(hostile) + "/"
	g := start(t, "", "key ops {\nurl "+url+"\n}\negress {\nallow 127.0.0.1\n}")
	check := func(name, text, want string) {
		t.Helper()
		if !strings.Contains(text, want) {
			t.Errorf("%s: %q does not have %q", name, text, want)
		}
		for _, r := range text {
			if unicode.IsControl(r) && r != '\n' || unicode.In(r, unicode.Bidi_Control) {
				t.Errorf("%s: %q has %U", name, text, r)
				break
			}
		}
	}
	send := func(path, contentType, body string) string {
		r, err := http.NewRequest(http.MethodPost, g.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Accept", "text/plain")
		return g.ask(r).Body
	}
	check("the answer of a destination", send("/notify/ops", "application/json", `{"body":"x"}`), "room tfel in box")
	check("an error that quotes the client", send("/notify/ops?type="+"a%1b%5b2J%e2%80%ae", "application/json", `{"body":"x"}`), "type")
	check("an answer in the format of Slack", send("/notify/ops/slack", "application/json", `{"text":"x"}`), "could not be sent")

	c := exec.Command(program, "notify", "send", "--body", "x", url)
	c.Env = g.env
	out, err := c.CombinedOutput()
	if err == nil {
		t.Error("the command send succeeds though the destination refuses")
	}
	check("the command send", string(out), "room tfel in box")
}

// TestKnownSecretsAreRefused checks that a configuration does not load if a source's
// secret is one that everyone knows: once, the prefix of an empty one was an empty key, and
// forged signatures were accepted.
func TestKnownSecretsAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ check, secret, want string }{
		{"sign standard", "whsec_", "the secret is empty"},
		{"sign standard", "whsec_QUJD", "at least 16"},
		{"sign stripe", "whsec_", "the secret is empty"},
		{"sign github", " ", "the secret is empty"},
		{"token", " ", "token: it is empty"},
	} {
		g := prepare(t, "",
			"key ops {\nurl json://127.0.0.1:9/\n}\nfrom mine {\ntitle x\n"+tt.check+" {env.SOURCE_SECRET}\n}",
			"SOURCE_SECRET="+tt.secret)
		c := exec.Command(program, "validate", "--config", g.config)
		c.Env = g.env
		out, err := c.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "from mine: ") || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s %q: %v\n%s", tt.check, tt.secret, err, out)
		}
	}
}
