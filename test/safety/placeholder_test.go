package safety

import (
	"net/http"
	"strings"
	"testing"
)

// TestPlaceholderIsData checks that the value of a placeholder cannot change
// where a URL leads: a password with a slash or an @ in it is sent as the
// password, to the host that the configuration names.
func TestPlaceholderIsData(t *testing.T) {
	passwords := make(chan string, 1)
	s := serveHTTP(t, "127.0.0.1", func(_ http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		passwords <- password
	})
	for value, want := range map[string]string{
		"p@ss/word?x#y:z&a=b %": "p@ss/word?x#y:z&a=b %",
		"x@evil.invalid/":       "x@evil.invalid/",
		"p%40ss":                "p@ss",
		"p%2540ss":              "p%40ss",
	} {
		g := start(t, "", "key ops {\nurl json://user:{env.PASSWORD}@"+authority(s)+"/\n}", "PASSWORD="+value)
		r := g.post("/notify/ops", message{"body": "x"})
		if r.Status != http.StatusOK {
			t.Errorf("password %s: status %d %s", value, r.Status, r.Body)
			continue
		}
		if got := <-passwords; got != want {
			t.Errorf("password %s: the destination got %q, want %q", value, got, want)
		}
		if text := r.Body + g.log(); strings.Contains(text, "ss/word") || strings.Contains(text, "evil.invalid") {
			t.Errorf("the response or the log reveals a part of the password: %s", text)
		}
	}
}
