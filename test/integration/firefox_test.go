package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// firefox is a Firefox that a test drives with WebDriver BiDi, of which it knows what
// the tests need. See https://www.w3.org/TR/webdriver-bidi/.
type firefox struct {
	conn    *websocket.Conn
	next    int
	context string // of the tab
}

// newFirefox starts Firefox with settings.
func newFirefox(t *testing.T, settings map[string]any) *firefox {
	t.Helper()
	profile := t.TempDir()
	var prefs strings.Builder
	for name, value := range settings {
		v, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&prefs, "user_pref(%q, %s);\n", name, v)
	}
	if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(prefs.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program(t, "firefox-esr", "firefox-esr"), "--headless",
		"--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "MOZ_CRASHREPORTER_DISABLE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	f := &firefox{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "WebDriver BiDi listening on "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }() // until the process ends
			if f.conn, _, err = websocket.DefaultDialer.Dial(address+"/session", nil); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if f.conn == nil {
		t.Fatal("Firefox does not listen")
	}
	t.Cleanup(func() { f.conn.Close() })
	f.call(t, "session.new", map[string]any{"capabilities": map[string]any{}}, nil)
	var tree struct {
		Contexts []struct{ Context string }
	}
	f.call(t, "browsingContext.getTree", map[string]any{}, &tree)
	f.context = tree.Contexts[0].Context
	return f
}

// call sends a command and decodes its result.
func (f *firefox) call(t *testing.T, method string, params map[string]any, result any) {
	t.Helper()
	f.next++
	if err := f.conn.WriteJSON(map[string]any{"id": f.next, "method": method, "params": params}); err != nil {
		t.Fatal(err)
	}
	_ = f.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	for {
		var got struct {
			ID      int
			Error   string
			Message string
			Result  json.RawMessage
		}
		if err := f.conn.ReadJSON(&got); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if got.ID != f.next {
			continue // an event
		}
		if got.Error != "" {
			t.Fatalf("%s: %s: %s", method, got.Error, got.Message)
		}
		if result != nil {
			if err := json.Unmarshal(got.Result, result); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
}

func (f *firefox) open(t *testing.T, address string) {
	t.Helper()
	f.call(t, "browsingContext.navigate", map[string]any{"context": f.context, "url": address, "wait": "complete"}, nil)
}

// eval returns the value of an expression in the page as text, or of the promise that
// it is. The page believes that somebody has clicked.
func (f *firefox) eval(t *testing.T, expression string) string {
	t.Helper()
	var got struct {
		Type             string
		Result           struct{ Value any }
		ExceptionDetails struct{ Text string }
	}
	f.call(t, "script.evaluate", map[string]any{
		"expression": "Promise.resolve(" + expression + ").then(String)", "awaitPromise": true,
		"userActivation": true, "target": map[string]any{"context": f.context},
	}, &got)
	if got.Type != "success" {
		t.Fatalf("%s: %s", expression, got.ExceptionDetails.Text)
	}
	return fmt.Sprint(got.Result.Value)
}

// shows waits until the element has the text.
func (f *firefox) shows(t *testing.T, selector, want string) {
	t.Helper()
	eventually(t, selector+" shows "+want, func() bool {
		return strings.Contains(f.eval(t, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector)), want)
	})
}
