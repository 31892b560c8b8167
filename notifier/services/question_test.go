package services

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestQuestion checks that each service that shows links sends the link of a question of any type,
// and which services have a button for each of two, three, five and six answers.
func TestQuestion(t *testing.T) {
	racetest.SkipIfSlow(t)
	const page = "https://alerts.example.com/notify/asks/k4fzmoyq2xr6vnw7tdbhj3ce5ak4fzmoyq2xr6vnw7tdbhj3ce5a2345"
	encoded := map[string]bool{"AWS SES": true, "Pushjet": true, "Session Open Group Server": true, "Web Push": true}
	question := func(answers int) *notifier.Message {
		m := servicetest.Message(t, "plain")
		m.Link = notifier.Link{Label: "Answer", URL: page}
		for i := range answers {
			m.Choices = append(m.Choices, notifier.Link{Label: fmt.Sprint("choice", i), URL: fmt.Sprint(page, "?answer=choice", i)})
		}
		return m
	}
	asked, buttons := map[string]bool{}, map[string]int{}
	tried := map[string]bool{}
	for _, file := range servicetest.Files(t, ".") {
		for _, c := range servicetest.ReadCases(t, file) {
			s := serviceOf(c.URL)
			if s == nil || !strings.Contains(c.Want, "\ndelivered") {
				continue
			}
			tried[s.Name] = true
			for _, n := range []int{0, 2, 3, 5, 6} {
				got := requests(c, question(n))
				asked[s.Name] = asked[s.Name] || strings.Contains(got, page)
				all := n > 0
				for i := range n {
					all = all && strings.Contains(got, fmt.Sprint("answer=choice", i))
				}
				if all {
					buttons[s.Name] = max(buttons[s.Name], n)
				}
				if !all && strings.Contains(got, "answer=choice") {
					t.Errorf("%s: %s has some of %d answers", file, c.URL, n)
				}
			}
		}
	}
	for _, s := range notifier.Services() {
		if want := s.Acknowledge != notifier.AcknowledgeNowhere; tried[s.Name] && !encoded[s.Name] && asked[s.Name] != want {
			t.Errorf("%s: it sends the link: %t, want %t", s.Name, asked[s.Name], want)
		}
	}
	want := map[string]int{
		"Discord": 5, "Google Chat": 6, "HomeAssistant": 3,
		"Power Automate / Workflows (for MSTeams)": 6, "Slack": 6, "Telegram": 6, "ntfy": 3,
	}
	if !maps.Equal(buttons, want) {
		t.Errorf("buttons for answers: %v, want %v", buttons, want)
	}
}
