package notifier

import (
	"net/http"
	"strings"
	"testing"
)

func TestFormatsAndLimits(t *testing.T) {
	var bodies []string
	base := target(t, func(w http.ResponseWriter, r *http.Request) { bodies = append(bodies, r.FormValue("body")) })
	s := newTestSender(t)
	m := &Message{Body: "<p>a <b>b</b></p>", Format: HTML}
	for format, want := range map[string]string{"text": "a b", "markdown": "a **b**", "html": m.Body} {
		bodies = nil
		if send(t, s, m, Options{}, base+"/tok?format="+format); len(bodies) != 1 || bodies[0] != want {
			t.Errorf("%s: %q", format, bodies)
		}
	}
	bodies = nil
	long := &Message{Body: strings.Repeat("word ", 500) + ":smile:"}
	send(t, s, long, Options{}, base+"/tok?overflow=split&emojis=yes")
	if len(bodies) != 3 || !strings.HasSuffix(bodies[2], "😄") {
		t.Errorf("%d parts: %q", len(bodies), bodies)
	}
}
