package safety

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestStrangersMentionNobody checks that the title of an issue, which anybody can write,
// mentions nobody and names no link at Slack and Discord, at once and from the queue after
// a restart. What a client sends mentions whom it names.
func TestStrangersMentionNobody(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	const text = "<!channel> @everyone [click](https://evil.example) <https://evil.example|more>"
	p := newProxy(t)
	p.answerWith([]byte("ok"))
	g := start(t, "notify {\nqueue {\npath "+newFolder(t)+"\n}\n}", `
		key ops {
			url slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ
			url discord://1098765432109876543/AbCdEf-0123456789_GhIjKlMn
		}`, p.environment()...)
	issue, err := json.Marshal(message{
		"action": "opened", "issue": message{"number": 7, "title": text, "html_url": "https://github.com/acme/shop/issues/7"},
		"repository": message{"full_name": "acme/shop"}, "sender": message{"login": "mallory"},
	})
	if err != nil {
		t.Fatal(err)
	}
	webhook := func() reply {
		r, err := http.NewRequest(http.MethodPost, g.url+"/notify/ops/github", bytes.NewReader(issue))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "X-Github-Event": {"issues"}}
		return g.ask(r)
	}
	check := func(when string) {
		t.Helper()
		var slack, discord string
		eventually(t, "both have the message "+when, func() bool {
			slack, discord = slack+p.last("hooks.slack.com"), discord+p.last("discord.com")
			return slack != "" && discord != ""
		})
		for host, tt := range map[string]struct {
			got          string
			want, absent []string
		}{
			"Slack": {slack, []string{"&lt;!channel&gt;", "https://github.com/acme/shop/issues/7"}, []string{"<!", "<https"}},
			"Discord": {
				discord,
				[]string{`"allowed_mentions":{"parse":[]`, `\\[click\\](https://evil.example)`, "https://github.com/acme/shop/issues/7"},
				[]string{" [click]"},
			},
		} {
			for _, want := range tt.want {
				if !strings.Contains(tt.got, want) {
					t.Errorf("%s: %s got %s, which lacks %s", when, host, tt.got, want)
				}
			}
			for _, absent := range tt.absent {
				if strings.Contains(tt.got, absent) {
					t.Errorf("%s: %s got %s, which has %s", when, host, tt.got, absent)
				}
			}
		}
	}
	if got := webhook(); got.Status != http.StatusOK {
		t.Fatalf("status %d: %s", got.Status, got.Body)
	}
	check("at once")
	p.is("503")
	if got := webhook(); got.Status != http.StatusOK || !strings.Contains(got.Body, `"queued"`) {
		t.Fatalf("status %d: %s", got.Status, got.Body)
	}
	g.kill()
	p.answerWith([]byte("ok"))
	g.run()
	check("after a restart")

	if got := g.post("/notify/ops", message{"title": "from a client", "body": text}); got.Status != http.StatusOK {
		t.Fatalf("status %d: %s", got.Status, got.Body)
	}
	if slack, discord := p.last("hooks.slack.com"),
		p.last("discord.com"); !strings.Contains(slack, "<!channel>") || strings.Contains(discord, "allowed_mentions") {
		t.Errorf("the message of a client arrives as %s and %s", slack, discord)
	}
}
