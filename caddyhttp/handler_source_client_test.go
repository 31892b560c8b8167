package caddyhttp

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestDiscordClient sends messages with the Discord service to the source discord, and
// checks that texts, embeds and files arrive. The service has a fixed address, so its
// requests are passed on to the handler.
func TestDiscordClient(t *testing.T) {
	s := newStation(t)
	h := newGateway(t, "key ops {\nurl "+s.url("/ops")+"?format=markdown\n}\nfrom discord {\ntoken secret\n}", "")
	var answers []int
	discord := servicetest.API(func(q *http.Request, body string) (int, string) {
		r := httptest.NewRequest(q.Method, "/notify/ops/discord"+q.URL.RequestURI(), strings.NewReader(body))
		maps.Copy(r.Header, q.Header)
		got := do(t, h, r)
		answers = append(answers, got.status)
		return got.status, got.body
	})
	file := func() *notifier.Attachment {
		return notifier.NewAttachment("graph.txt", "text/plain", []byte("the\x00file\n"))
	}
	for _, tt := range []struct {
		name, url string
		m         notifier.Message
		want      []arrived // without attachments
		files     int       // number of files of the last message
	}{
		{
			"content", "discord://1/secret?format=text",
			notifier.Message{Title: "Disk full", Body: "91% é 漢字"},
			[]arrived{{Message: "Disk full\n91% é 漢字", Type: "info"}},
			0,
		},
		{
			"an embed with a field and a footer", "discord://1/secret?format=markdown&footer=yes",
			notifier.Message{Title: "Disk full", Body: "91% used\n# Host\ndb1", Type: notifier.Failure, Format: notifier.Markdown},
			[]arrived{{Title: "Disk full", Message: "[Caddy](https://caddyserver.com/)\n91% used\nHost: ```md\ndb1\n```\nCaddy Notifications", Type: "failure"}},
			0,
		},
		{
			"files", "discord://1/secret?format=text",
			notifier.Message{Body: "see the graph", Attachments: []*notifier.Attachment{file(), file()}},
			[]arrived{{Message: "see the graph", Type: "info"}, {Type: "info"}},
			2,
		},
	} {
		answers = nil
		if err := discord.Destination(t, tt.url)(&tt.m); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		got := s.take()
		if len(got) != len(tt.want) || len(answers) != len(tt.want) || slices.ContainsFunc(answers, func(status int) bool { return status != http.StatusNoContent }) {
			t.Errorf("%s: the answers are %v, arrived %+v", tt.name, answers, got)
			continue
		}
		for i, want := range tt.want {
			if got[i].Title != want.Title || strings.ReplaceAll(got[i].Message, "\r", "") != want.Message || got[i].Type != want.Type {
				t.Errorf("%s: arrived %+v", tt.name, got[i])
			}
		}
		files := got[len(got)-1].Attachments
		if len(files) != tt.files || tt.files > 0 && (files[0].Filename != "graph.txt" || string(files[0].Base64) != "the\x00file\n") {
			t.Errorf("%s: the files %+v arrived", tt.name, files)
		}
	}
	answers = nil
	if err := discord.Destination(t, "discord://1/another")(&notifier.Message{Body: "x"}); err == nil || len(s.take()) > 0 {
		t.Errorf("a wrong token is accepted: %v", answers)
	}
}

// TestSlackClients sends messages with the services for Slack, Mattermost and
// Rocket.Chat to the source slack, and checks that they arrive.
func TestSlackClients(t *testing.T) {
	s := newStation(t)
	const token = "TIiajkdnlazkcOXrIdevi7FQ"
	h := newGateway(t, "key ops {\nurl "+s.url("/ops")+"?format=markdown\n}\nfrom slack {\ntoken "+token+"\n}", "")
	slack := servicetest.API(func(q *http.Request, body string) (int, string) {
		r := httptest.NewRequest(q.Method, "/notify/ops/slack"+q.URL.RequestURI(), strings.NewReader(body))
		maps.Copy(r.Header, q.Header)
		got := do(t, h, r)
		return got.status, got.body
	})
	const text = "**91%** on [db1](https://db1.example.net)"
	for url, want := range map[string]arrived{
		"slack://T1JJ3T3L2/A1BRTD4JD/" + token:                    {Message: "Disk full\n" + text + "\nCaddy", Type: "failure"},
		"slack://T1JJ3T3L2/A1BRTD4JD/" + token + "?blocks=yes":    {Title: "Disk full", Message: text + "\nCaddy", Type: "failure"},
		"mmosts://mattermost.example.net/" + token:                {Message: "Disk full\n" + text, Type: "info"},
		"rockets://chat.example.net/general?webhook=abc/" + token: {Message: "Disk full\n" + text, Type: "info"},
	} {
		if err := slack.Destination(t, url)(&notifier.Message{Title: "Disk full", Body: text, Type: notifier.Failure, Format: notifier.Markdown}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		got := s.take()
		if len(got) != 1 || got[0].Title != want.Title || strings.ReplaceAll(got[0].Message, "\r", "") != want.Message || got[0].Type != want.Type {
			t.Errorf("%s: arrived %+v", url, got)
		}
	}
	if err := slack.Destination(t, "rockets://chat.example.net/general?webhook=abc/another")(&notifier.Message{Body: "x"}); err == nil || len(s.take()) > 0 {
		t.Error("a wrong token is accepted")
	}
}
