package safety

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestPlaceholderIsData checks that the value of a placeholder cannot change
// where a URL leads: a password with a slash or an @ in it is sent as the
// password, to the host that the configuration names.
func TestPlaceholderIsData(t *testing.T) {
	t.Parallel()
	passwords := make(chan string, 1)
	s := serveHTTP(t, "127.0.0.1", func(_ http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		passwords <- password
	})
	tests := []struct{ value, want string }{
		{"p@ss/word?x#y:z&a=b %", "p@ss/word?x#y:z&a=b %"},
		{"x@evil.invalid/", "x@evil.invalid/"},
		{"p%40ss", "p@ss"},
		{"p%2540ss", "p%40ss"},
	}
	block, env := "", []string(nil)
	for i, tt := range tests {
		block += fmt.Sprintf("key k%d {\nurl json://user:{env.PASSWORD%[1]d}@%s/\n}\n", i, authority(s))
		env = append(env, fmt.Sprintf("PASSWORD%d=%s", i, tt.value))
	}
	g := start(t, "", block, env...)
	for i, tt := range tests {
		r := g.post(fmt.Sprintf("/notify/k%d", i), message{"body": "x"})
		if r.Status != http.StatusOK {
			t.Errorf("password %s: status %d %s", tt.value, r.Status, r.Body)
			continue
		}
		if got := <-passwords; got != tt.want {
			t.Errorf("password %s: the destination got %q, want %q", tt.value, got, tt.want)
		}
		if text := r.Body + g.log(); strings.Contains(text, "ss/word") || strings.Contains(text, "evil.invalid") {
			t.Errorf("the response or the log reveals a part of the password: %s", text)
		}
	}
}
