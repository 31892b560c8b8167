package integration

import (
	"encoding/json"
	"net/url"
	"slices"
	"testing"

	"github.com/nicholas-fedor/shoutrrr"
)

// TestShoutrrr sends with the URLs of shoutrrr that the documentation names, and reads what
// it has published back from the inbox.
func TestShoutrrr(t *testing.T) {
	t.Parallel()
	g := newClientGateway(t)
	query := url.Values{
		"scheme": {"http"}, "title": {"Disk"}, "tags": {"rotating_light,db1"}, "priority": {"max"},
		"click": {"https://db1.example.com/"}, "actions": {"view, Graph, https://db1.example.com/graph"},
	}
	ntfy := "@" + g.host + "/notify/ops/ntfy/alerts?" + query.Encode()
	must(t, shoutrrr.Send("ntfy://:secret"+ntfy, "91% full"))
	g.wants(t, "failure", "\U0001F6A8 Disk", "91% full\nGraph: https://db1.example.com/graph\nhttps://db1.example.com/\nTags: db1")
	must(t, shoutrrr.Send("gotify://"+g.host+"/notify/ops/gotify/Asecretsecret12?disabletls=yes&title=Connection&priority=8", "web1 is down"))
	g.wants(t, "failure", "Connection", "web1 is down")
	must(t, shoutrrr.Send("generic://"+g.host+"/notify/ops?disabletls=yes&template=json&messagekey=body&$type=warning", "slow"))
	g.wants(t, "warning", "", "slow")
	g.refused(t, "token", func() error { return shoutrrr.Send("ntfy://:wrong"+ntfy, "91% full") })
	g.refused(t, "401", func() error {
		return shoutrrr.Send("gotify://"+g.host+"/notify/ops/gotify/Awrongwrongwro1?disabletls=yes", "91% full")
	})

	type event struct {
		ID, Title, Message, Click string
		Priority                  int
		Tags                      []string
		Actions                   []struct{ Label, URL string }
	}
	var got []event
	for _, line := range g.inboxOf(t, "all") {
		var e event
		must(t, json.Unmarshal([]byte(line), &e))
		got = append(got, e)
	}
	if len(got) != 3 {
		t.Fatalf("the inbox has %+v", got)
	}
	e := got[0]
	if e.Title != "Disk" || e.Message != "91% full" || e.Priority != 5 || !slices.Equal(e.Tags, []string{"rotating_light", "db1"}) ||
		e.Click != "https://db1.example.com/" || len(e.Actions) != 1 ||
		e.Actions[0].Label != "Graph" || e.Actions[0].URL != "https://db1.example.com/graph" {
		t.Errorf("the inbox has %+v", e)
	}
	if later := g.inboxOf(t, e.ID); len(later) != 2 {
		t.Errorf("since the first one: %q", later)
	}
}
