// Package settings says what holds for a key of the configuration.
package settings

import (
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// Of returns what holds for a key of the configuration, with the lines that would change it.
// queued reports whether the key uses the queue.
func Of(k *site.Key, queued bool) []view.Setting {
	line := func(text string) *view.CopiedLine { return &view.CopiedLine{Name: "The line for the key", Text: text} }
	tokens := view.Setting{Name: "Who may send", Text: "Only who has its token."}
	switch n := len(k.Tokens); {
	case n == 0:
		tokens.Text = "Everybody who reaches the site and knows the name of the key. With this line, only who has the token:"
		tokens.Line = line("token {env.OPS_TOKEN}")
	case n > 1:
		tokens.Text = "Only who has one of its " + view.Count(n, "token", "tokens") + "."
	}
	if !queued {
		return []view.Setting{tokens, {
			Name: "Queue", Text: "It uses no queue: what cannot be delivered at once is lost, and nothing is remembered. This line in the global " +
				"option notify brings a queue:", Line: line("queue"),
		}}
	}
	inbox := view.Setting{Name: "Inbox", Text: "Messages are kept for " + view.Length(k.Inbox) + "."}
	if k.Inbox == 0 {
		inbox.Text, inbox.Line = "Messages are not kept, so nobody can read here what one said. This line keeps them:", line("inbox 7d")
	}
	incidents := view.Setting{Name: "Incidents", Text: "What is open is remembered until it is over."}
	if k.Rules.Empty() {
		incidents.Text = "Nothing is remembered as open, and nothing can be acknowledged. A rule changes that, such as this one, which " +
			"tells repetitions only once in ten minutes:"
		incidents.Line = line("dedupe 10m")
	}
	beats := view.Setting{Name: "Beats", Text: view.Count(len(k.Expects), "beat is", "beats are") + " expected; the tab State has them."}
	if len(k.Expects) == 0 {
		beats.Text = "No job has to report. With this line, a backup that does not report is a failure:"
		beats.Line = line("expect backup every 24h grace 2h")
	}
	return []view.Setting{tokens, inbox, incidents, beats}
}
