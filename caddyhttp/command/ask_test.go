package command

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestAsk asks questions of a running server, and answers them as people do: with the link of
// a message.
func TestAsk(t *testing.T) {
	p := gatewaytest.NewPager(t, http.StatusOK)
	serve(t, `
	queue
	public_url `+gatewaytest.PublicURL+`
	key ops {
		url `+p.NotifyURL()+` chat
	}
	`, "stateless off")
	type outcome struct {
		out, errs string
		code      int
	}
	start := func(args ...string) <-chan outcome {
		done := make(chan outcome, 1)
		go func() {
			out, errs, code := command(t, "", append([]string{"ask", "--address=" + caddyhttptest.Admin, "--key=ops"}, args...)...)
			done <- outcome{out, errs, code}
		}()
		return done
	}
	answer := func(n int, text string) {
		t.Helper()
		gatewaytest.Eventually(t, func() bool { return p.Count() == n })
		link, ok := strings.CutPrefix(p.Got()[n-1].AnswerURL, gatewaytest.PublicURL)
		if !ok {
			t.Fatalf("the link is %q", p.Got()[n-1].AnswerURL)
		}
		resp, err := http.PostForm(caddyhttptest.Server+link, url.Values{"answer": {text}, "by": {"Ann"}})
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("answering: %v %v", err, resp)
		}
		_ = resp.Body.Close()
	}
	options := []string{"--option=deploy", "--option=wait", "Deploy 1.4?"}
	for n, tt := range []struct {
		args   []string
		answer string
		code   int
		out    string
		err    string
	}{
		{options, "deploy", 0, "deploy\n", "Answered by Ann"},
		{options, "wait", 1, "wait\n", "Answered by Ann"},
		{[]string{"--text", "Which host?"}, "db1", 0, "db1\n", "Asked at 1 destination."},
		{append([]string{"--json"}, options...), "wait", 1, `"answer":"wait"`, ""},
	} {
		done := start(tt.args...)
		answer(n+1, tt.answer)
		got := <-done
		if got.code != tt.code || !strings.Contains(got.out, tt.out) || !strings.Contains(got.errs, tt.err) {
			t.Errorf("%s: exit %d, %q, %q", tt.args, got.code, got.out, got.errs)
		}
		if strings.Contains(got.out+got.errs, "/notify/asks/") {
			t.Errorf("%s: who asks sees the link: %s%s", tt.args, got.out, got.errs)
		}
	}
	for want, args := range map[string][]string{
		"Error: --option must have 2 to 6 options, and has 1": {"--option=a", "?"},
		"Error: --timeout must be from 10s to 7d":             append([]string{"--timeout=1s"}, options...),
	} {
		if got := <-start(args...); got.code != 2 || !strings.Contains(got.errs, want) {
			t.Errorf("%s: exit %d, %s", args, got.code, got.errs)
		}
	}
}

// TestAskExpires checks the exit codes of a question that nobody answers.
func TestAskExpires(t *testing.T) {
	racetest.LeaveToCI(t) // the shortest timeout is 10 s
	p := gatewaytest.NewPager(t, http.StatusOK)
	serve(t, `
	queue
	public_url `+gatewaytest.PublicURL+`
	key ops {
		url `+p.NotifyURL()+`
	}
	`, "stateless off")
	began := time.Now()
	results := make(chan string, 3)
	for _, tt := range []struct {
		args []string
		code int
		out  string
	}{
		{[]string{}, 3, ""},
		{[]string{"--default=wait"}, 3, "wait\n"},
		{[]string{"--default=wait", "--accept-default"}, 1, "wait\n"},
	} {
		go func() {
			args := append([]string{
				"ask", "--address=" + caddyhttptest.Admin, "--key=ops",
				"--timeout=10s", "--option=deploy", "--option=wait", "Deploy?",
			}, tt.args...)
			out, errs, code := command(t, "", args...)
			if code != tt.code || out != tt.out || !strings.Contains(errs, "Nobody has answered in time.") {
				t.Errorf("%s: exit %d, %q, %q", tt.args, code, out, errs)
			}
			results <- ""
		}()
	}
	for range 3 {
		<-results
	}
	if took := time.Since(began); took < 10*time.Second {
		t.Errorf("they have waited %s", took)
	}
}

// TestAskMistakes checks that what is wrong with a question has the exit code 2, and that
// nothing is sent.
func TestAskMistakes(t *testing.T) {
	p := gatewaytest.NewPager(t, http.StatusOK)
	serve(t, `
	queue
	key ops {
		url `+p.NotifyURL()+`
	}
	`, "stateless off")
	for want, args := range map[string][]string{
		"--key is missing":               {"--option=a", "--option=b", "?"},
		"write one question":             {"--key=ops", "--option=a", "--option=b"},
		"--accept-default has no effect": {"--key=ops", "--option=a", "--option=b", "--accept-default", "?"},
		"the answers to choose from":     {"--key=ops", "?"},
		"--text and --option exclude":    {"--key=ops", "--text", "--option=a", "?"},
		"unknown flag: --opt":            {"--key=ops", "--opt=a", "?"},
		"there is no such key":           {"--key=none", "--option=a", "--option=b", "?"},
		"needs public_url":               {"--key=ops", "--option=a", "--option=b", "?"},
	} {
		if out, errs, code := command(t, "", append([]string{"ask", "--address=" + caddyhttptest.Admin},
			args...)...); code != 2 || !strings.Contains(errs, want) || out != "" {
			t.Errorf("%s: exit %d, %s%s", args, code, out, errs)
		}
	}
	if p.Count() != 0 {
		t.Errorf("told %q", p.Told())
	}
}
