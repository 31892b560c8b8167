package docs_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/caddy-notify/caddy-notify/internal/porttest"
)

// action is action.yml, as far as a runner needs it.
type action struct {
	Inputs map[string]struct {
		Description string
		Required    bool
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []struct {
			ID, Shell, Run string
			Env            map[string]string
		}
	}
}

// run runs the step of the action with these inputs, as a runner does. It returns the outputs and what the step prints.
func (a *action) run(ctx context.Context, t *testing.T, dir string, inputs map[string]string) (
	outputs map[string]string, printed string, ok bool,
) {
	t.Helper()
	step := a.Runs.Steps[0]
	script, output := filepath.Join(t.TempDir(), "step.sh"), filepath.Join(t.TempDir(), "output")
	writeFile(t, script, step.Run)
	writeFile(t, output, "")
	c := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-eo", "pipefail", script)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 20 * time.Second
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "GITHUB_OUTPUT=" + output}
	for name, value := range step.Env {
		input := strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")
		if _, known := a.Inputs[input]; !known {
			t.Errorf("the variable %s is %s, which is no input", name, value)
		}
		c.Env = append(c.Env, name+"="+inputs[input])
	}
	out, err := c.CombinedOutput()
	if left, _ := os.ReadDir(strings.TrimPrefix(c.Env[1], "TMPDIR=")); len(left) > 0 {
		t.Errorf("the step leaves %s", left[0].Name())
	}
	outputs = map[string]string{}
	for text := readOutput(t, output); text != ""; {
		line, rest, _ := strings.Cut(text, "\n")
		if name, delimiter, several := strings.Cut(line, "<<"); several {
			outputs[name], rest, _ = strings.Cut(rest, "\n"+delimiter+"\n")
		} else {
			name, value, _ := strings.Cut(line, "=")
			outputs[name] = value
		}
		text = rest
	}
	return outputs, string(out), err == nil
}

func readOutput(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func readAction(t *testing.T) *action {
	t.Helper()
	var a action
	if err := yaml.Unmarshal([]byte(readFile(t, "action.yml")), &a); err != nil {
		t.Fatal(err)
	}
	return &a
}

// TestActionIsWhole checks what a runner checks only when it runs the action: no input is part of a
// script, each is used, and each output is one of a step.
func TestActionIsWhole(t *testing.T) {
	a := readAction(t)
	if a.Runs.Using != "composite" || len(a.Runs.Steps) != 1 {
		t.Fatalf("%+v", a.Runs)
	}
	step := a.Runs.Steps[0]
	if strings.Contains(step.Run, "${{") || step.Shell != "bash" {
		t.Error("an expression is part of the script, or the shell is another one")
	}
	used := map[string]bool{}
	for name, value := range step.Env {
		used[value] = true
		if !strings.Contains(step.Run, "$"+name) && !strings.Contains(step.Run, "${"+name) {
			t.Errorf("the script does not use %s", name)
		}
	}
	for name, input := range a.Inputs {
		if !used["${{ inputs."+name+" }}"] || input.Description == "" {
			t.Errorf("the input %s is not used, or not described", name)
		}
	}
	for name, output := range a.Outputs {
		if output.Value != "${{ steps."+step.ID+".outputs."+name+" }}" || !regexp.MustCompile(`"?`+name+`(=|<<)`).MatchString(step.Run) {
			t.Errorf("the output %s is %s", name, output.Value)
		}
	}
}

// TestAction runs the action against a gateway: it sends what it is given, whatever that holds, asks,
// and goes on or fails with the answer.
func TestAction(t *testing.T) {
	t.Parallel()
	type sent struct {
		Title, Message, Type string
		AnswerURL            string `json:"answer_url"`
	}
	messages := make(chan sent, 10)
	chat := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m sent
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		messages <- m
	}))
	t.Cleanup(chat.Close)
	down := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(down.Close)
	const token = "token-of-the-action"
	g, address := &gateway{dir: t.TempDir(), client: &http.Client{Timeout: time.Minute}}, porttest.Address()
	g.config = filepath.Join(g.dir, "Caddyfile")
	writeFile(t, g.config, `{
	admin off
	notify {
		queue
		public_url http://`+address+`
	}
}
http://`+address+` {
	notify {
		egress {
			allow private_ranges
		}
		key ops {
			url `+strings.Replace(chat.URL, "http", "json", 1)+` chat
			url `+strings.Replace(down.URL, "http", "json", 1)+` down
			token `+token+`
		}
	}
	respond 404
}
`)
	if err := g.start(t, g.config, address); err != nil {
		t.Fatal(err)
	}
	a, dir := readAction(t), t.TempDir()
	base := map[string]string{"url": "http://" + address + "/", "key": "ops", "token": token, "tags": "chat", "body": "b"}
	with := func(pairs ...string) map[string]string {
		inputs := maps.Clone(base)
		for i := 0; i < len(pairs); i += 2 {
			inputs[pairs[i]] = pairs[i+1]
		}
		return inputs
	}
	received := func() sent {
		t.Helper()
		select {
		case m := <-messages:
			return m
		case <-time.After(time.Minute):
			t.Fatal("no message arrived")
			return sent{}
		}
	}

	// What the inputs hold is data.
	hostile := "@/etc/passwd `touch a` $(touch b) \"; touch c; ' & é %41 + \n::set-output name=id::x\n${{ github.token }} \\"
	outputs, printed, ok := a.run(t.Context(), t, dir, with("title", "$(touch d) @x", "body", hostile, "type", "warning"))
	if m := received(); !ok || m.Message != hostile || m.Title != "$(touch d) @x" || m.Type != "warning" {
		t.Errorf("%v %s: the message is %+v", ok, printed, m)
	}
	if outputs["id"] == "" || strings.Contains(printed, token) {
		t.Errorf("the outputs are %v, and it prints %s", outputs, printed)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("an input was run: %v", files)
	}

	// URLs in place of a key.
	urls := strings.Replace(chat.URL, "http", "json", 1)
	if _, printed, ok = a.run(t.Context(), t, dir, with("key", "", "token", "", "tags", "", "urls", urls)); !ok {
		t.Error(printed)
	}
	received()

	for name, x := range map[string]struct {
		inputs map[string]string
		want   string
	}{
		"a destination fails": {with("tags", "down"), "::error::the gateway answered 424"},
		"a wrong token":       {with("token", "wrong"), "::error::the gateway answered 40"},
		"a token with lines":  {with("token", "x\nHost: y"), "::error::the input token has a line break"},
		"no URL":              {with("url", "-o /tmp/x"), "::error::the input url must begin with"},
		"a path as a key":     {with("key", "../config"), "::error::the input key has a character"},
		"two targets":         {with("urls", urls), "::error::give either"},
		"nobody to ask":       {with("key", "", "urls", urls, "ask", "a\nb"), "::error::a question needs the input key"},
		"nothing to require":  {with("require", "a"), "::error::the input require needs"},
		"one answer":          {with("ask", "go"), "::error::the gateway answered 400"},
	} {
		_, printed, ok := a.run(t.Context(), t, dir, x.inputs)
		if ok || !strings.Contains(printed, x.want) || strings.Contains(printed, token) {
			t.Errorf("%s: %v, it prints %s, want %s", name, ok, printed, x.want)
		}
	}

	// Questions.
	type outcome struct {
		outputs map[string]string
		printed string
		ok      bool
	}
	ask := func(ctx context.Context, inputs map[string]string) chan outcome {
		done := make(chan outcome, 1)
		go func() {
			var o outcome
			o.outputs, o.printed, o.ok = a.run(ctx, t, dir, inputs)
			done <- o
		}()
		return done
	}
	text := "two lines,\n\"quoted\" \\n <b> } é \U0001F600\u2028"
	for name, x := range map[string]struct {
		inputs       map[string]string
		answer, want string
		ok           bool
	}{
		"the answer":                {with("ask", "ship it\r\n  hold", "require", "ship it"), "ship it", "ship it", true},
		"another one":               {with("ask", "ship it\nhold", "require", "ship it"), "hold", "hold", false},
		"no matter which":           {with("ask", `a "b" \c`+"\nd"), `a "b" \c`, `a "b" \c`, true},
		"a text":                    {with("ask", "text"), text, text, true},
		"a body with the same JSON": {with("ask", "a\nb", "body", `{"ask":{"state":"answered","answer":"b"}}`), "a", "a", true},
	} {
		done := ask(t.Context(), x.inputs)
		resp, err := g.client.PostForm(received().AnswerURL, url.Values{"answer": {x.answer}, "by": {`Ann "A"`}})
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: answering: %v %v", name, resp, err)
		}
		_ = resp.Body.Close()
		if o := <-done; o.ok != x.ok || o.outputs["answer"] != x.want || o.outputs["state"] != "answered" {
			t.Errorf("%s: %v, %q, it prints %s", name, o.ok, o.outputs, o.printed)
		}
	}

	// A run that is cancelled withdraws its question.
	ctx, cancel := context.WithCancel(t.Context())
	done := ask(ctx, with("ask", "a\nb"))
	link := received().AnswerURL
	time.AfterFunc(time.Second, cancel)
	if o := <-done; o.ok {
		t.Errorf("a cancelled step succeeds: %s", o.printed)
	}
	resp, err := g.client.PostForm(link, url.Values{"answer": {"a"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		t.Error("the question of a cancelled run can be answered")
	}

	// Nobody answers.
	unanswered := map[string]chan outcome{
		"":  ask(t.Context(), with("ask", "a\nb", "ask-timeout", "10s")),
		"b": ask(t.Context(), with("ask", "a\nb", "ask-timeout", "10s", "ask-default", "b")),
	}
	for want, done := range unanswered {
		received()
		o := <-done
		if o.ok != (want != "") || o.outputs["answer"] != want || o.outputs["state"] != "expired" {
			t.Errorf("nobody answers, default %q: %v, %q, it prints %s", want, o.ok, o.outputs, o.printed)
		}
	}
}
