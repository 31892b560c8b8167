package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/history"
	"github.com/caddy-notify/caddy-notify/gateway/metrics"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestHistory checks that the newest message comes first, and that neither many
// messages nor large ones exceed the limits.
func TestHistory(t *testing.T) {
	var h history.History
	add := func(key string, n int, text string) {
		results := make([]notifier.Result, n)
		for i := range results {
			results[i] = notifier.Result{Service: "JSON", Destination: "json://" + text, Status: notifier.Failed, Err: fmt.Errorf("%s", text)}
		}
		h.Add((&Delivery{Message: &notifier.Message{Time: time.Now()}, Origin: Origin{Source: site.SourceHTTP, Key: key}}).
			HistoryEntry(outcomeOfMessage(results)), results)
	}
	for i := range history.MaxHistoryMessages + 5 {
		add(fmt.Sprint("k", i), 1, "h")
	}
	list := h.List()
	if len(list) != history.MaxHistoryMessages || string(list[0].Key) != fmt.Sprint("k", history.MaxHistoryMessages+4) ||
		list[len(list)-1].Key != "k5" {
		t.Errorf("%d messages, from %s to %s", len(list), list[0].Key, list[len(list)-1].Key)
	}
	add("", history.MaxHistoryResults-2, strings.Repeat("ü", history.MaxHistoryText))
	list = h.List()
	if len(list) != 3 || list[0].Key != "" || list[0].Outcome != "failed" || list[1].Outcome != "failed" {
		t.Errorf("beside a message to many destinations, %d others are kept, want 2", len(list)-1)
	}
	for _, text := range []string{list[0].Results[0].Destination, *list[0].Results[0].Error} {
		if len(text) > history.MaxHistoryText+len("…") || !strings.HasSuffix(text, "ü…") {
			t.Errorf("a text of %d bytes: …%s", len(text), text[len(text)-10:])
		}
	}
	add("large", history.MaxHistoryResults+7, "h")
	if list = h.List(); len(list) != 1 || len(list[0].Results) != history.MaxHistoryResults || list[0].Omitted != 7 {
		t.Errorf("%d messages, %d results, %d omitted", len(list), len(list[0].Results), list[0].Omitted)
	}
	add("none", 0, "")
	if list = h.List(); len(list) != 2 || list[0].Outcome != "delivered" {
		t.Errorf("%d messages", len(list))
	}
}

// TestHistoryOfRefusals checks that refusals of one kind are one entry, ordered
// by time, and that they are limited and remove no message.
func TestHistoryOfRefusals(t *testing.T) {
	var h history.History
	begin := time.Now()
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	refuse := func(key string, seconds int) {
		h.AddRefusal(history.Refusal{RefusalID: metrics.RefusalID{Key: key, Reason: metrics.RefusalTooLarge}, Time: at(seconds), Status: 413})
	}
	refuse("a", 0)
	h.Add((&Delivery{Message: &notifier.Message{Time: at(1)}, Origin: Origin{Source: site.SourceHTTP, Key: "m"}}).
		HistoryEntry(site.OutcomeDelivered), nil)
	refuse("b", 2)
	h.Add((&Delivery{Message: &notifier.Message{Time: at(3)}, Origin: Origin{Source: site.SourceHTTP, Key: "n"}}).
		HistoryEntry(site.OutcomeDelivered), nil)
	refuse("", 4)
	refuse("b", 5)
	var got []string
	for _, e := range h.List() {
		got = append(got, fmt.Sprint(e.Key, " ", e.Reason, e.Count))
	}
	if text := strings.Join(got, ", "); text != "b too_large2,  too_large1, n 0, m 0, a too_large1" {
		t.Errorf("the history is %s", text)
	}
	for i := range 3 * history.MaxHistoryRefusals {
		refuse(fmt.Sprint("k", i), 6)
	}
	list := h.List()
	if len(list) != history.MaxHistoryRefusals+2 || list[len(list)-1].Key != "m" {
		t.Errorf("%d entries, want %d refusals and 2 messages", len(list), history.MaxHistoryRefusals)
	}
}
