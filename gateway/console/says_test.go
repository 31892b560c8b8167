package console

import (
	"errors"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestSays checks the words of the line of a message.
func TestSays(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 2, 15, 0, 0, time.UTC)
	result := func(name string, status notifier.Status, rule notifier.Rule) message.QueuedResult {
		return message.QueuedResult{Result: message.Result{Name: name, Status: status, Rule: rule}}
	}
	until := func(rule notifier.Rule) message.QueuedResult {
		r := result("Slack #ops", message.StatusQueued, rule)
		r.Until = &at
		return r
	}
	step := func(name string, n int, after time.Duration) message.QueuedResult {
		next := at.Add(after)
		r := result(name, message.StatusQueued, notifier.RuleEscalating)
		r.Step, r.Next = n, &next
		return r
	}
	unusable := result("Slack", notifier.Skipped, "")
	text := errors.New("the URL is wrong").Error()
	unusable.Error = &text
	optional := result("Slack #ops", notifier.Failed, "")
	optional.Optional = true
	delivered, skipped := result("Slack #ops", notifier.Delivered, ""), func(rule notifier.Rule) message.QueuedResult {
		return result("Slack #ops", notifier.Skipped, rule)
	}
	for _, tt := range []struct {
		results []message.QueuedResult
		by      string
		outcome view.Outcome
		says    view.Says
	}{
		{[]message.QueuedResult{delivered}, "", view.Delivered, view.Says{Text: "Delivered"}},
		{[]message.QueuedResult{delivered}, "Ann", view.Delivered, view.Says{Text: "Acknowledged by Ann"}},
		{[]message.QueuedResult{delivered, optional}, "", view.Delivered, view.Says{Text: "Delivered"}},
		{[]message.QueuedResult{delivered, unusable}, "", view.Failed, view.Says{Text: "1 of 2 delivered; failed: Slack"}},
		{
			[]message.QueuedResult{delivered, result("JSON web", notifier.Failed, "")},
			"", view.Failed,
			view.Says{Text: "1 of 2 delivered; failed: JSON web"},
		},
		{[]message.QueuedResult{result("JSON web", notifier.Failed, "")}, "", view.Failed, view.Says{Text: "Failed: JSON web"}},
		{
			[]message.QueuedResult{delivered, result("a", notifier.Failed, ""), result("b", message.StatusQueued, "")},
			"", view.Failed,
			view.Says{Text: "1 of 3 delivered; failed: a; waiting for b"},
		},
		{
			[]message.QueuedResult{result("a", notifier.Failed, ""), result("b", notifier.Failed, ""), result("c", notifier.Failed, ""), delivered},
			"", view.Failed,
			view.Says{Text: "1 of 4 delivered; failed: a, b, c"},
		},
		{
			[]message.QueuedResult{
				result("a", notifier.Failed, ""), result("b", notifier.Failed, ""), result("c", notifier.Failed, ""), result("d", notifier.Failed, ""),
			},
			"", view.Failed,
			view.Says{Text: "Failed: a, b and 2 more"},
		},
		{
			[]message.QueuedResult{delivered, result("JSON web", message.StatusQueued, "")},
			"", view.Queued,
			view.Says{Text: "1 of 2 delivered; waiting for JSON web"},
		},
		{
			[]message.QueuedResult{delivered, step("Bob", 2, 5*time.Minute), step("Eve", 3, 20*time.Minute), step("Bob", 2, time.Hour)},
			"",
			view.Delivered,
			view.Says{Text: "Delivered; Bob", At: at.Add(5 * time.Minute), Then: "unless acknowledged"},
		},
		{
			[]message.QueuedResult{delivered, until(notifier.RuleEscalating)}, // a silence keeps the step back
			"", view.Delivered,
			view.Says{Text: "Delivered; silent for Slack #ops until", At: at},
		},
		{[]message.QueuedResult{until(notifier.RuleEscalating)}, "", view.Queued, view.Says{Text: "Silenced until", At: at}},
		{
			[]message.QueuedResult{step("Bob", 2, time.Minute), step("Ann", 2, time.Minute)},
			"", view.Queued,
			view.Says{Text: "Bob, Ann", At: at.Add(time.Minute), Then: "unless acknowledged"},
		},
		{[]message.QueuedResult{delivered, skipped(notifier.RuleAcknowledged)}, "Ann", view.Delivered, view.Says{Text: "Acknowledged by Ann"}},
		{[]message.QueuedResult{delivered, skipped(notifier.RuleAcknowledged)}, "", view.Delivered, view.Says{Text: "Acknowledged"}},
		{[]message.QueuedResult{until(notifier.RulePlanned)}, "", view.Planned, view.Says{Text: "Planned for", At: at}},
		{[]message.QueuedResult{until(notifier.RuleHeld)}, "", view.Queued, view.Says{Text: "Held until", At: at}},
		{[]message.QueuedResult{until(notifier.RuleSilenced)}, "", view.Queued, view.Says{Text: "Silenced until", At: at}},
		{
			[]message.QueuedResult{delivered, until(notifier.RuleSilenced)},
			"", view.Delivered,
			view.Says{Text: "Delivered; silent for Slack #ops until", At: at},
		},
		{
			[]message.QueuedResult{delivered, until(notifier.RuleSilenced), step("Bob", 2, time.Minute)},
			"", view.Delivered,
			view.Says{Text: "Delivered; Bob", At: at.Add(time.Minute), Then: "unless acknowledged"},
		},
		{[]message.QueuedResult{until(notifier.RuleDigested)}, "", view.Queued, view.Says{Text: "In a digest", At: at}},
		{nil, "", view.Delivered, view.Says{Text: "Kept in the inbox"}},
		{[]message.QueuedResult{skipped(notifier.RuleSilenced)}, "", view.Skipped, view.Says{Text: "Silenced"}},
		{[]message.QueuedResult{skipped(notifier.RuleSuppressed)}, "", view.Skipped, view.Says{Text: "Not needed: known already"}},
		{[]message.QueuedResult{skipped(notifier.RuleSuperseded)}, "", view.Skipped, view.Says{Text: "Not needed: a newer one tells it"}},
		{[]message.QueuedResult{skipped(notifier.RuleHeld)}, "", view.Skipped, view.Says{Text: "Not needed: it did not last"}},
		{[]message.QueuedResult{skipped("")}, "", view.Skipped, view.Says{Text: "Not needed"}},
		{[]message.QueuedResult{result("Slack", message.StatusCancelled, "")}, "", view.Cancelled, view.Says{Text: "Cancelled"}},
		{
			[]message.QueuedResult{delivered, result("JSON web", message.StatusCancelled, "")},
			"", view.Cancelled,
			view.Says{Text: "1 of 2 delivered; cancelled for JSON web"},
		},
	} {
		if outcome, says := saysOf(tt.results, tt.by); outcome != tt.outcome || says != tt.says {
			t.Errorf("%+v: %s %+v, want %s %+v", tt.results, outcome, says, tt.outcome, tt.says)
		}
	}
}
