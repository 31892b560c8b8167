package view

import (
	"go/ast"
	"go/parser"
	"go/token"
	"html/template"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/caddy-notify/caddy-notify/internal/golden"
)

// TestMain sets a time zone that pages must not show.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("", 2*60*60)
	os.Exit(m.Run())
}

// exampleFrame is the frame of the examples, for somebody who may manage.
var exampleFrame = Frame{
	Root: "../", User: "ann",
	Places: []Place{
		{Name: "Now", Address: "../notify/console", Counts: true, Count: 2, Trouble: "1 incident open, 1 destination down"},
		{Name: "Keys", Address: "../notify/console/keys", Here: true},
	},
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// exampleLine has a point of each kind that needs no silence, and silentLine the others.
var (
	exampleLine = NewLine([]Point{
		{Kind: PointTold, Who: "ntfy <ann> (1:oncall)", Words: "told", At: noon.Add(-25 * time.Hour)},
		{Kind: PointFailed, Who: "Bob", Words: "not reached", At: noon.Add(-2 * time.Minute), Note: "round 2"},
		{Kind: PointSending, Who: "Eve", Words: "being sent", At: noon.Add(-time.Minute)},
		{Kind: PointTaken, Who: "Ann", Words: "acknowledged", At: noon},
		{Kind: PointUntold, Who: "Joe", Words: "not told"},
		{Kind: PointNow},
		{Kind: PointNext, Who: "Jim", At: noon.Add(time.Minute)},
		{Kind: PointNext, Who: "Jo", At: noon.Add(5 * time.Hour)},
		{Kind: PointLater, Who: "Kim", At: noon.Add(6 * time.Hour)},
		{Kind: PointAgain, Who: "Ann", At: noon.Add(20 * time.Hour), Note: "round 3 of 3"},
		{Kind: PointNobody, Words: "then nobody"},
		{Kind: PointResolved, Words: "resolved", At: noon},
	}, noon)
	silentLine = NewLine([]Point{
		{Kind: PointBegins, Words: "silent since", At: noon.Add(-time.Hour), Silent: true},
		{Kind: PointSilent, Who: "Ann", Words: "silenced", At: noon.Add(-time.Minute), Silent: true},
		{Kind: PointNow, Silent: true},
		{Kind: PointSilent, Who: "Bob", Words: "silent until", At: noon.Add(time.Hour), Until: true, Silent: true},
		{Kind: PointEnds, Words: "silence ends", At: noon.Add(time.Hour)},
	}, noon)
)

// equalExample returns a row of equal incidents of a key, whose forms are sent to an address.
func equalExample(action string) IncidentRow {
	row := IncidentRow{
		ListedIncident: ListedIncident{
			Address: "../notify/console/incidents/d1", Title: "Disk <full> on web-3", Key: "many", KeyAddress: "../notify/console/keys/many",
			Type: "failure", State: IncidentOpen, Since: noon.Add(-time.Minute),
		}, PublicID: "d1", Now: noon, Action: action, Silence: "../notify/console/silences?key=many#silence",
	}
	other := row
	other.Title, other.PublicID = "", "d2"
	row.Equal = &EqualIncidents{
		Rows: []IncidentRow{row, other}, Count: 200, More: 198, Newest: noon.Add(-time.Minute), PublicIDs: "d1 d2 d3",
		Address: "../notify/console/incidents?key=many&state=open", SilenceAll: "../notify/console/silences?key=many&title=Disk#silence",
	}
	return row
}

// exampleBeats has a beat in each state, the worst first.
var exampleBeats = []Beat{
	{
		Name: "sync", Address: "../notify/console/beats?beat=sync&key=ops",
		Key: "ops", KeyAddress: "../notify/console/keys/ops", State: BeatFailed,
		Now: noon, How: "every 1h", Grace: "6m", Since: noon.Add(-time.Hour), Last: noon.Add(-time.Hour), Ran: "12m", Exit: "3",
		Due: noon.Add(-time.Minute), Late: noon.Add(5 * time.Minute), Runs: []Run{
			{At: noon.Add(-5 * time.Hour), Outcome: RunOnTime, Took: 8 * time.Minute, Ran: "8m", Output: "copied <b>12</b> files"},
			{At: noon.Add(-4 * time.Hour), Outcome: RunMissed},
			{At: noon.Add(-3 * time.Hour), Outcome: RunLate, Due: noon.Add(-4 * time.Hour)},
			{At: noon.Add(-2 * time.Hour), Outcome: RunTooLong, Took: 2 * time.Hour, Ran: "2h"},
			{At: noon.Add(-time.Hour), Outcome: RunFailed, Took: 12 * time.Minute, Ran: "12m", Exit: "3", Output: "no space left on <device>"},
			{At: noon.Add(-2 * time.Minute), Outcome: RunRunning, Took: 2 * time.Minute, Ran: "2m"},
		},
	},
	{
		Name: "backup", State: BeatTooLong, Now: noon, How: "cron 15 3 * * 1-5 Europe/Berlin", Grace: "2h", Since: noon, Key: "ops",
		Started: noon.Add(-time.Hour), RunEnds: noon.Add(-time.Minute), Due: noon.Add(15 * time.Hour), Late: noon.Add(17 * time.Hour),
		Runs: []Run{{At: noon.Add(-time.Hour), Outcome: RunTooLong, Took: time.Hour, Ran: "1h"}},
	},
	{
		Name: "hourly", State: BeatLate, Now: noon, How: "every 1h", Grace: "6m", Since: noon.Add(-time.Minute), Due: noon.Add(-7 * time.Minute),
		Late: noon.Add(-time.Minute), Runs: []Run{{At: noon.Add(-7 * time.Minute), Outcome: RunMissed}},
	},
	{
		Name: "due", State: BeatInGrace, Now: noon, How: "every 1d", Grace: "2h", Last: noon.Add(-25 * time.Hour), Due: noon.Add(-time.Hour),
		Late: noon.Add(time.Hour), Runs: []Run{{At: noon.Add(-25 * time.Hour), Outcome: RunOnTime}},
	},
	{
		Name: "runs", State: BeatRunning, Now: noon, How: "every 1d", Grace: "2h", Last: noon.Add(-23 * time.Hour), Due: noon.Add(time.Hour),
		Late: noon.Add(3 * time.Hour), Started: noon.Add(-time.Minute), RunEnds: noon.Add(time.Hour), Runs: []Run{
			{At: noon.Add(-23 * time.Hour), Outcome: RunOnTime}, {At: noon.Add(-time.Minute), Outcome: RunRunning},
		},
	},
	{Name: "new", State: BeatNew, Now: noon, How: "every 1d", Grace: "2h", Due: noon.Add(23 * time.Hour), Late: noon.Add(25 * time.Hour)},
	{
		Name: "nightly", State: BeatOnTime, Now: noon, How: "every 1d", Grace: "2h", Last: noon.Add(-time.Hour), Ran: "12m",
		Due: noon.Add(23 * time.Hour), Late: noon.Add(25 * time.Hour), Runs: manyRuns(),
	},
}

// exampleWeek has days with everything, with some and with nothing.
var exampleWeek = func() *IncidentWeek {
	w := &IncidentWeek{Keep: 48 * time.Hour, Cut: true}
	for i := range w.Days {
		w.Days[i].Begin = time.Date(2026, 2, 23+i, 0, 0, 0, 0, time.UTC)
		w.Days[i].Address = "../notify/console/incidents?day=" + w.Days[i].Begin.Format(time.DateOnly)
	}
	d := &w.Days
	d[0].Escalated, d[0].Failures, d[0].Others = 1, 200, 3
	d[1].Others, d[3].Failures, d[4].Escalated, d[6].Escalated, d[6].Failures, d[6].Here = 1, 1, 2, 1, 12, true
	return w
}()

// manyRuns returns as many runs as a beat remembers.
func manyRuns() (runs []Run) {
	for i := range runsShown {
		took := time.Duration(10+i%3) * time.Minute
		runs = append(runs, Run{
			At: noon.AddDate(0, 0, i-runsShown), Outcome: RunOnTime,
			Took: took, Ran: strings.TrimSuffix(took.String(), "0s"),
		})
	}
	return runs
}

// examples has pages by the names of their golden files, each with everything it can show.
var examples = map[string]Page{
	"beats": BeatsPage{
		Root: "../", Address: "../notify/console/beats", Beats: exampleBeats, More: 2, Problem: "The queue cannot be read.", State: BeatFailed,
		Tallies: []BeatTally{
			{BeatFailed, 1, ""},
			{BeatInGrace, 1, "../notify/console/beats?state=in_grace"},
			{BeatRunning, 1, "../notify/console/beats?state=running"},
			{BeatOnTime, 1, "../notify/console/beats?state=on_time"},
		},
	},
	"beats_one": BeatsPage{Root: "../", Address: "../notify/console/beats", Key: "ops", One: true, Beats: exampleBeats[:1], Texts: true},
	"beats_new": BeatsPage{Root: "../", Address: "../notify/console/beats", Key: "ops", One: true, Beats: exampleBeats[5:6]},
	"beats_none": BeatsPage{
		Root: "../", Address: "../notify/console/beats", Lacks: []CopiedLine{{Name: "a beat", Text: "expect nightly every 24h"}},
	},
	"beats_unfit": BeatsPage{Root: "../", Address: "../notify/console/beats", Key: "web"},
	"now": NowPage{
		Root: "../", Now: noon, Sentence: "2 incidents open, 1 destination down", State: Failing, Keys: 30, Last: noon.Add(-12 * time.Second),
		Stored: true, Waiting: 5, Lost: 2, Done: "It is resolved.",
		Watchdog: &exampleTrouble, AllOpen: "../notify/console/incidents", More: 3, MoreDown: 1, MoreKeys: 26, MoreFailures: 2,
		Failures: []ListedMessage{
			{
				Address: "../notify/console/messages/1", Title: "web is <down>", Incident: "7", Source: "uptime_kuma", Key: "web",
				KeyAddress: "../notify/console/keys/web", Time: noon.Add(-5 * time.Minute),
			},
			{Source: "http", Time: noon.Add(-5 * time.Hour)},
		},
		Incidents: []IncidentRow{
			{
				ListedIncident: ListedIncident{
					Address: "../notify/incidents/a", Title: "Disk <full>", Key: "ops",
					KeyAddress: "../notify/console/keys/ops", Type: "failure", State: IncidentOpen, Since: noon.Add(-14 * time.Minute),
					Line: exampleLine.Short(),
				}, PublicID: "a", Now: noon, Action: "../notify/console",
				Silence: "../notify/console/silences?key=ops&tag=all", Resolve: true,
			},
			{ListedIncident: ListedIncident{
				Name: "disk db1", Key: "web", State: IncidentOpen, Since: noon.Add(-3 * time.Hour),
				Silenced: noon.Add(time.Hour),
			}, PublicID: "b", Now: noon, Action: "../notify/console", Silence: "../notify/console/silences?key=web&tag=all", Resolve: true},
			{
				ListedIncident: ListedIncident{
					Name: "disk db2", Key: "web", State: IncidentOpen, Since: noon.Add(-3 * time.Hour),
					Line: silentLine, Silenced: noon.Add(time.Hour), Partly: true, SilentFor: "JSON boss.example (2:boss)",
				}, PublicID: "d", Now: noon, Action: "../notify/console",
				Silence: "../notify/console/silences?key=web&tag=all",
				Resolve: true,
			},
			{ListedIncident: ListedIncident{
				Title: "Certificate", Key: "web", State: IncidentAcknowledged, By: "Ann",
				Since: noon.Add(-72 * time.Hour), Until: noon.Add(4 * time.Hour),
			}, PublicID: "c", Now: noon, Action: "../notify/console", Resolve: true},
			equalExample("../notify/console"),
		},
		Questions: []OpenQuestion{
			{
				Title: "Deploy <1.4>?", Address: "../notify/console/messages/1", Key: "ops", KeyAddress: "../notify/console/keys/ops",
				Until: noon.Add(3*time.Hour + time.Minute), Default: "no",
			},
			{Address: "../notify/console/messages/2", Key: "web", KeyAddress: "../notify/console/keys/web", Until: noon.Add(time.Minute)},
		},
		Troubled: ByState([]QueuedDestination{
			{
				Named: Named{"Slack #ops", "chat"}, URL: "slack://xxxxx/#ops", Keys: []KeyLink{{"ops", "../notify/console/keys/ops"}},
				Health: Health{State: Down, Since: noon.Add(-time.Hour), Cause: "the service answered 503", Waiting: 5},
				Waits:  Waits{"../notify/console", "aGFzaA", "Slack #ops ops", 5}, Bar: exampleBar,
				Silences: []SilenceLink{exampleSilence},
			},
			{
				Named: Named{"Telegram", ""}, URL: "tgram://xxxxx", Health: Health{State: Failing, Cause: "the service answered 401"},
				Waits: Waits{"../notify/console", "aGFzaB", "Telegram", 0},
			},
		}),
		Rows: []ListedKey{
			{
				Name: "ops", Address: "../notify/console/keys/ops", Services: "Slack #ops, ntfy duty", URLs: 2,
				Health: &Health{State: Down, Waiting: 5, Cause: "Slack #ops: the service answered 503", Troubles: []Trouble{exampleTrouble}},
				Bar:    exampleBar, Last: NewMoment(noon.Add(-12*time.Second), noon),
			},
			{
				Name: "web", Address: "../notify/console/keys/web", Services: "Telegram web-team", URLs: 1, Health: &Health{State: Fine},
				Last: NewMoment(noon.Add(-3*time.Hour), noon),
			},
			{Name: "new", Address: "../notify/console/keys/new", Health: &Health{State: Silent}, Last: Moment{Text: "never used"}},
			{Name: "broken", Address: "../notify/console/keys/broken", Problem: "it has mistakes"},
		},
	},
	"now_quiet": NowPage{
		Root: "./", Now: noon, Sentence: "All quiet: 1 key", State: Fine, Keys: 1, Lost: 0, Stored: true,
		AllOpen: "./notify/console/incidents",
		Rows: []ListedKey{{
			Name: "ops", Address: "./notify/console/keys/ops", Services: "JSON web.example", URLs: 1,
			Health: &Health{State: Silent}, Last: Moment{Text: "never used"},
		}},
	},
	"now_new": NowPage{
		Root: "./", Now: noon, Sentence: "No keys yet", State: Silent, Lost: -1, MayAdd: true,
		Problem: "The queue cannot be read at the moment.",
	},
	"send": SendPage{
		Address: "./ops", Messages: "./messages/", Key: "ops",
		Tags: []Tag{{"chat", "JSON, XML"}, {"all", "JSON, 2 × XML"}}, Otherwise: "JSON", Others: true,
		MaxFiles: 5, MaxFileSize: "10 MiB", Sources: []string{"github", "grafana"},
		Device: "./ops?device",
	},
	"send_nowhere":      SendPage{Address: "./ops", Key: "ops", Tags: []Tag{{"chat", "JSON"}, {"all", "JSON"}}, Others: true},
	"send_without_tags": SendPage{Address: "./ops", Key: "ops", Otherwise: "JSON"},
	"send_urls":         SendPage{Address: "./notify", Otherwise: "JSON", MaxFiles: 5, MaxFileSize: "10 MiB"},
	"preview":           PreviewPage{Title: "Disk full", Note: "failure · tags: db", Body: "<p><strong>97 %</strong></p>"},
	"response": ResponsePage{
		Title: "Not sent to all", Log: true, FormURL: "./ops",
		Lines: []ResponseLine{
			{Level: "INFO", Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Text: "Sent to JSON web.example (chat)."},
			{Level: "ERROR", Optional: true, Time: time.Date(2026, 3, 1, 12, 0, 1, 0, time.UTC), Text: "XML failed."},
		},
	},
	"response_button": ResponsePage{
		Title: "Not changed", Reason: "The configuration has mistakes.", BackURL: "../cfg/ops",
		Lines: []ResponseLine{
			{Level: "ERROR", Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Text: "line 2: <url> has no host"},
			{Level: "WARNING", Time: time.Date(2026, 3, 1, 12, 0, 1, 0, time.UTC), Text: "line 3: it is there twice"},
		},
	},
	"response_error": ResponsePage{Title: "There is no page here", Reason: "There is no such <key>.", Home: "../notify"},
	"about":          AboutPage{Root: "./", Address: "https://alerts.example.com/notify"},
	"keys": KeysPage{
		Root: "../", All: 122, Found: 122, First: 51, Last: 54, Watchdog: &exampleTrouble, Previous: "../notify/console?page=1",
		Next: "../notify/console?page=3", MayAdd: true, Hint: "Without a queue, less is known.",
		Lacks:   []CopiedLine{{Name: "the line for the queue", Text: "queue", Note: "Health is remembered with this line:"}},
		Tallies: []Tally{{Down, 1, "../notify/console?state=down"}, {Fine, 121, ""}},
		Keys: []ListedKey{
			{
				Name: "ops", Address: "../notify/console/keys/ops", Send: "../notify/ops", Fixed: true, Services: "JSON example.com, Slack #ops",
				URLs: 2, Hurry: "../notify/console/keys/ops",
				Health: &Health{
					State: Down, Since: noon, Cause: "JSON example.com: the service answered 503", Waiting: 112, WaitingSince: noon,
					Delivered: noon.Add(-time.Hour),
				},
			},
			{
				Name: "home", Address: "../notify/console/keys/home", Send: "../notify/home", Services: "Discord", URLs: 1,
				Health: &Health{State: Fine, Delivered: noon},
			},
			{
				Name: "new", Address: "../notify/console/keys/new", Send: "../notify/new", Services: "Discord", URLs: 1,
				Health: &Health{State: Silent},
			},
			{Name: "broken", Address: "../notify/console/keys/broken", Problem: "It cannot be read."},
		},
	},
	"keys_search": KeysPage{
		Root: "./", Search: "op", State: Fine, All: 122, Found: 1, First: 1, Last: 1, Problem: "The queue cannot be read at the moment.",
		Keys: []ListedKey{{Name: "ops", Address: "./notify/console/keys/ops", Send: "./notify/ops", Services: "JSON", URLs: 1}},
	},
	"keys_nothing": KeysPage{Root: "./", Search: "absent", State: Down, All: 122},
	"keys_none": KeysPage{Root: "./", Lacks: []CopiedLine{{
		Name: "the line for keys", Text: "configs {\n\tmanage ann\n}", Note: "Keys can be made here with these lines:",
	}}},
	"keys_first":   KeysPage{Root: "./", MayAdd: true},
	"key":          exampleKey(TabState),
	"key_messages": exampleKey(TabMessages),
	"key_devices":  exampleKey(TabDevices),
	"key_settings": exampleKey(TabSettings),
	"key_inbox": KeyPage{
		Root: "../", Key: "ops", Tab: TabMessages, Address: "../notify/console/keys/ops", Fixed: true, Saved: true,
		KeyMessages: KeyMessages{Queue: &Queue{}, Inbox: &KeyInbox{Address: "../notify/ops/messages", Keep: "7 days"}},
		KeySend:     KeySend{Lines: []CopiedLine{{Name: "curl", Text: "curl -d x https://alerts.example.com/notify/ops"}}},
	},
	"key_token": KeyPage{
		Root: "../", Key: "ops", Tab: TabSettings, Address: "../notify/console/keys/ops", Editable: true, Saved: true,
		KeyMessages: KeyMessages{Queue: &Queue{}}, KeySettings: KeySettings{Tokens: 1, NewToken: "T0KEN"},
	},
	"device": DevicePage{
		Root: "../", Key: "ops", Invite: "abc", Tags: []string{"oncall"}, ServerKey: "BKey",
		Manifest: "./app.webmanifest?key=ops&invite=abc", Messages: "./ops/messages",
	},
	"device_open":    DevicePage{Root: "../", Key: "ops", ServerKey: "BKey", Manifest: "./app.webmanifest?key=ops"},
	"device_refused": DevicePage{Root: "../", Key: "ops", Refused: "The invitation is used up.", Manifest: "./app.webmanifest?key=ops"},
	"messages": MessagesPage{
		Root: "../", Stored: true, Titles: true,
		Filter: MessageFilter{Key: "ops", State: "failed", Type: "warning", Since: "24h", Title: "disk", Chips: []Chip{
			{From: noon, Until: noon.Add(PartLength), Name: "half", Value: "20260301T1200Z", Without: "../notify/console/messages?key=ops"},
			{Text: "to ntfy <duty>", Name: "to", Value: "ntfy://duty", Without: "../notify/console/messages?half=x"},
		}},
		Keys: []string{"home", "ops"}, Hint: "Refused requests are those of the latest.",
		Lacks:   []CopiedLine{{Name: "the line for titles", Text: "titles on", Note: "Messages have titles with this line:"}},
		Scanned: true, Until: noon, Newest: "../notify/console/messages", Older: "../notify/console/messages?before=0195-1",
		Planned: []PlannedMessage{{
			ID: "0195-9", Address: "../notify/console/messages/0195-9", Cancel: "../notify/console/messages/0195-9?drop",
			Key: "ops", KeyAddress: "../notify/console/keys/ops", Tags: "oncall", Title: "Bins <out>", At: noon.Add(time.Hour),
		}}, Later: 3,
		Messages: []ListedMessage{
			{
				ID: "0195-1", Address: "../notify/console/messages/0195-1", Time: noon, Key: "ops", KeyAddress: "../notify/console/keys/ops",
				Type: "failure", Source: "alertmanager", Title: "Disk <full>", Kept: true, Incident: "disk db1", Outcome: Failed,
				Lines: []string{"JSON json://example.com/: failed: the service answered 500"}, More: 1,
			},
			{Time: noon, Key: "home", Source: "http", Outcome: Refused, Count: 3, Client: "192.0.2.1", Reason: "400: the field body is missing"},
			{Time: noon, Source: "http", Outcome: Cancelled},
		},
	},
	"messages_none":    MessagesPage{Root: "../"},
	"messages_nothing": MessagesPage{Root: "../", Filter: MessageFilter{Key: "x"}},
	"messages_problem": MessagesPage{Root: "../", Problem: "The queue cannot be read at the moment."},
	"message": MessagePage{
		Root: "../", Keep: "7 days", Retry: true, Drop: true, Incident: "../notify/incidents/abc",
		Inbox: "../notify/ops/messages?since=2026-07-01T08%3A00%3A00Z",
		Message: ListedMessage{
			ID: "0195-1", Time: noon, Title: "Disk <full>", Kept: true, Key: "ops", KeyAddress: "../notify/console/keys/ops",
			Type: "failure", Source: "alertmanager", Incident: "disk db1", Outcome: Queued,
		},
		Deliveries: []Delivery{
			{
				Named: Named{"JSON example.com", "server"}, URL: "json://example.com/", Tags: "a, b", Outcome: Queued, Attempts: 4, Elapsed: "1.2 s",
				Silence: exampleSilence, Next: noon, Error: "the service answered 503",
				Tries: []Try{
					{Time: noon, First: noon.Add(-time.Hour), Error: "the service answered 503", Count: 3},
					{Time: noon, First: noon, Count: 1},
				},
			},
			{Named: Named{"Discord", "chat"}, URL: "discord://***", Outcome: GivenUp, Says: Says{Text: "optional"}, Attempts: 1, Elapsed: "3 ms"},
			{Named: Named{"XML example.com", "server"}, URL: "xml://example.com/", Outcome: Skipped, Says: Says{Text: "a newer message tells it"}},
			{
				Named: Named{"JSON boss.example", "server"}, URL: "json://boss.example/", Tags: "2:boss", Outcome: Later,
				Says: Says{Text: "step 2 begins", At: noon.Add(time.Hour), Then: "unless somebody acknowledges"}, Again: 2,
			},
		},
	},
	"message_asks": MessagePage{
		Root: "../", Keep: "7 days", Message: ListedMessage{
			ID: "0195-1", Time: noon, Outcome: Queued, Says: Says{Text: "Asked, no answer yet; ends", At: noon},
		},
		Question: &Question{
			Options: []string{"yes", "<no>"}, Asked: []string{"ntfy ann (1:oncall)", "JSON <b>"}, Until: noon, Default: "<no>", Open: true,
		},
	},
	"message_answered": MessagePage{
		Root: "../", Keep: "7 days",
		Message:  ListedMessage{ID: "0195-1", Time: noon, Outcome: Delivered, Says: Says{Text: "Answered “x” by Ann"}},
		Question: &Question{Asked: []string{"ntfy ann"}, Until: noon, Outcome: "Answered", Answer: "<x>", By: "Ann", At: noon},
	},
	"message_planned": MessagePage{
		Root: "../", Keep: "7 days", Retry: true, Drop: true, Planned: noon.Add(time.Hour),
		Message: ListedMessage{
			ID: "0195-9", Time: noon, Key: "ops", Outcome: Planned,
			Says: Says{Text: "Planned for", At: noon.Add(time.Hour)},
		},
		Deliveries: []Delivery{{
			Named: Named{"Key ops", ""}, URL: "ops", Outcome: Planned,
			Says: Says{Text: "its destinations are looked up when the message is due"},
		}},
	},
	"message_done": MessagePage{
		Root: "../", Keep: "7 days", Message: ListedMessage{ID: "0195-1", Time: noon, Outcome: Delivered},
		Deliveries: []Delivery{{
			Named: Named{"JSON example.com", "server"}, URL: "json://example.com/", Outcome: Delivered, Attempts: 1,
			Elapsed: "3 ms",
		}},
	},
	"queue": QueuePage{
		Root: "../", Numbers: true, Problem: "No message can be stored now.",
		Done: "112 that waited and 3 that were given up are being tried now.", Waiting: 112, Held: 27, Sending: 1, GivenUp: 3, Oldest: noon,
		Size: "1.2 MiB", More: 4,
		Hurry: "../notify/console/queue", All: &Waits{Address: "../notify/console/queue", Destination: "all", Count: 112},
		Troubled: ByState([]QueuedDestination{
			{
				Named: Named{"JSON example.com", "server"}, URL: "json://example.com/", Tags: []string{"1:oncall"},
				Keys:   []KeyLink{{"ops", "../notify/console/keys/ops"}},
				Health: Health{State: Down, Since: noon, Cause: "the service answered 503", Waiting: 112, WaitingSince: noon},
				Waits:  Waits{"../notify/console/queue", "aGFzaA", "JSON example.com ops", 112},
			},
			{
				Named: Named{"XML example.com", "server"}, URL: "xml://example.com/", Health: Health{State: Failing, Cause: "the service answered 401"},
				Waits: Waits{"../notify/console/queue", "aGFzaB", "XML example.com", 0},
			},
		}),
	},
	"queue_given_up": QueuePage{Root: "../", Numbers: true, Hurry: "../notify/console/queue", GivenUp: 3, Size: "0 B"},
	"incidents": IncidentsPage{
		Root: "../", Filter: IncidentFilter{Key: "ops", State: IncidentOpen}, Keys: []string{"home", "ops"}, Rules: true, Week: exampleWeek,
		First: "../notify/console/incidents", More: "../notify/console/incidents?after=x",
		Action: "../notify/console/incidents", Done: "One incident is forgotten.",
		Incidents: []IncidentRow{
			equalExample("../notify/console/incidents"),
			{
				ListedIncident: ListedIncident{
					Address: "../notify/incidents/abc", Title: "db1 is down", Name: "disk <db1>", Key: "ops",
					KeyAddress: "../notify/console/keys/ops", Type: "failure", State: IncidentOpen, Since: noon, Line: exampleLine,
				}, PublicID: "abc", Silence: "../notify/console/silences?key=ops&tag=all",
				Resolve: true,
			},
			{ListedIncident: ListedIncident{
				Address: "../notify/incidents/abe", Name: "db2", Key: "ops", Type: "failure", State: IncidentOpen,
				Since: noon, Silenced: noon.Add(time.Hour),
			}, PublicID: "abe", Resolve: true},
			{ListedIncident: ListedIncident{
				Address: "../notify/incidents/abf", Name: "db3", Key: "ops", Type: "failure", State: IncidentOpen,
				Since: noon, Line: silentLine, Silenced: noon.Add(time.Hour),
			}},
			{ListedIncident: ListedIncident{
				Address: "../notify/incidents/ac1", Name: "db5", Key: "ops", Type: "failure", State: IncidentOpen,
				Since: noon, Silenced: noon.Add(time.Hour), Partly: true,
				SilentFor: "JSON web.example (1:oncall)",
			}},
			{ListedIncident: ListedIncident{
				Title: "db3 is down", State: IncidentAcknowledged, Since: noon, Changed: noon.Add(time.Minute),
				By: "ann", Until: noon.Add(4 * time.Hour), Line: exampleLine,
			}, PublicID: "abd", Resolve: true},
			{ListedIncident: ListedIncident{
				Title: "db4 <is> down", State: IncidentResolved, Since: noon, Changed: noon.Add(time.Minute),
			}, PublicID: "abf", Forget: true},
		},
	},
	"inbox": InboxPage{
		Key: "ops", Keep: "7 days", Since: "24h", More: true,
		Messages: []InboxMessage{
			{ID: "m0hofnw3czzx", Time: noon, Type: "failure", Title: "Disk <full>", Text: "/var has 2 GB left\nAttached: df.txt (1 kB)", Cut: true},
			{ID: "m0hofnw3czzw", Time: noon, Type: "success", Text: "fine"},
		},
	},
	"inbox_empty":   InboxPage{Key: "ops", Keep: "7 days", Since: "24h"},
	"inbox_problem": InboxPage{Key: "ops", Keep: "7 days", Since: "all", Problem: "The queue cannot be read at the moment."},
	"incidents_day": IncidentsPage{
		Root: "../", Filter: IncidentFilter{Key: "x", Day: "2026-02-23"}, Rules: true, AnyDay: "../notify/console/incidents?key=x",
	},
	"incidents_none": IncidentsPage{Root: "../", Lacks: []CopiedLine{{
		Name: "the line for a rule", Text: "rate 30/1m", Note: "Incidents are listed here with this line:",
	}}},
	"incidents_empty":   IncidentsPage{Root: "../", Rules: true},
	"incidents_nothing": IncidentsPage{Root: "../", Filter: IncidentFilter{Key: "x"}, Rules: true},
	"incidents_problem": IncidentsPage{Root: "../", Problem: "The queue cannot be read at the moment."},
	"incident": IncidentPage{
		Root: "../", Console: true, Done: Says{
			Text: "It is silenced until", At: noon.Add(time.Hour),
			Then: "and if it is still open then, that is told",
		}, Text: "The disk <b>is</b> full.", Problem: "It cannot be silenced.",
		Action: "../notify/incidents/abc", Acknowledge: true, Resolve: true,
		Incident: ListedIncident{
			Title: "db1 is down", Name: "disk <db1>", Key: "ops", KeyAddress: "../notify/console/keys/ops", Type: "failure",
			State: IncidentOpen, Since: noon, Line: exampleLine,
		},
		Events:  []IncidentEvent{{Time: noon.Add(time.Minute), Text: "step 1 was told"}, {Time: noon, Text: "opened", Worse: true}},
		Silence: "../notify/console/silences?incident=a&key=ops",
	},
	"incident_done": IncidentPage{
		Root: "../", User: "ann", Action: "../notify/incidents/abc", Resolve: true,
		Incident: ListedIncident{Key: "ops", State: IncidentAcknowledged, Since: noon, Changed: noon, By: "bob"},
	},
	"ask": AskPage{
		Root: "../", Key: "ops", Title: "Deploy <1.4>?", Text: "It adds a column.\nIt takes 2 minutes.", Type: "info",
		Asked: []string{"json://localhost", "device://Phone"}, Until: noon, Default: "wait", Open: true,
		Problem: "The answer must be one of the options.", Action: "./abc", Options: []AskOption{{"deploy", true}, {"wait", false}},
	},
	"ask_text": AskPage{
		Root: "../", Key: "ops", Text: "Why?", Asked: []string{"json://localhost"}, Until: noon, Open: true,
		Action: "./abc", User: "ann", NoName: true, FreeText: true, Typed: "<because", MaxText: 2000,
	},
	"ask_done": AskPage{
		Root: "../", Key: "ops", Title: "Deploy?", Asked: []string{"json://localhost"}, Until: noon,
		Done: "Your answer counts. It is stored.", Outcome: "Answered", Answer: "deploy", By: "Ann (typed)", At: noon,
	},
	"ask_expired": AskPage{
		Root: "../", Key: "ops", Title: "Deploy?", Asked: []string{"json://localhost"}, Until: noon,
		Outcome: "Nobody has answered in time", At: noon,
	},
	"silences": SilencesPage{
		Root: "../", Action: "../notify/console/silences", Done: "The silence is made.", Keys: []string{"home", "ops"},
		New:     SilenceForm{Key: "ops", Title: "disk", Incident: "db1", Tag: "phone"},
		Lengths: []Choice{{"2h", "2 hours", true}, {"8h", "8 hours", false}},
		Longer:  []Choice{{Value: "1h", Label: "1 hour"}, {Value: "08:00", Label: "Until 8:00"}},
		Offer: &SilenceOffer{
			Matches: "3 open incidents, 14 messages of the last day", Reach: []string{"Ann (phone)", "Bob (2:phone)"},
			Ends: []Choice{
				{Value: "1h", Label: "1 hour"}, {Value: "08:00", Label: "Until 8:00"}, {Value: "resolved", Label: "Until it is resolved"},
			},
		},
		Silences: []ListedSilence{
			{
				ID: "1", Key: "ops", KeyAddress: "../notify/console/keys/ops", Until: noon, Title: "disk <full>", Tag: "phone", Reason: "new disks",
				Who: "ann", Messages: 12,
			},
			{ID: "2", Key: "home", KeyAddress: "../notify/console/keys/home", Until: noon.Add(time.Hour), Incident: "db1", Messages: 1, ToEnd: true},
			{
				ID: "3", Key: "home", KeyAddress: "../notify/console/keys/home", From: noon.Add(time.Hour), Until: noon.Add(2 * time.Hour), Title: "db",
				Told: true,
			},
			{
				ID: "4", Key: "ops", KeyAddress: "../notify/console/keys/ops", From: noon.Add(time.Hour), Until: noon.Add(2 * time.Hour),
				Reason: "backups", Configured: true,
			},
		},
	},
	"silences_refused": SilencesPage{
		Root: "../", Action: "../notify/console/silences", New: SilenceForm{Key: "ops", Tag: "all"}, User: "ann",
		Offer: &SilenceOffer{Problem: "There is no such key"},
	},
	"silences_none":    SilencesPage{Root: "../", Action: "../notify/console/silences", User: "ann"},
	"silences_problem": SilencesPage{Root: "../", Problem: "The queue cannot be read at the moment."},
	"queue_empty":      QueuePage{Root: "../", Numbers: true, Size: "0 B"},
	"key_draft": KeyPage{
		Root: "../", Key: "ops", Tab: TabSettings, Address: "../notify/console/keys/ops", Editable: true,
		KeySettings: KeySettings{
			Text: "json://example.com/\nnope\nmsteams://x\n",
			Draft: &Draft{
				Mistakes: []Mistake{{Line: 2, Text: "unknown line"}},
				Warnings: []Mistake{{Line: 3, Text: "use workflows://"}, {Text: "few URLs"}},
			},
		},
	},
	"key_checked": KeyPage{
		Root: "../", Key: "ops", Tab: TabSettings, Address: "../notify/console/keys/ops", Editable: true,
		KeySettings: KeySettings{Text: "json://example.com/\n", Format: "text", Draft: &Draft{URLs: 1}},
	},
	"key_not_saved": KeyPage{
		Root: "../", Key: "ops", Tab: TabSettings, Address: "../notify/console/keys/ops", Editable: true,
		Problem:     "The saved configuration cannot be used.",
		KeySettings: KeySettings{Format: "yaml", Draft: &Draft{Problem: "there are 9 saved keys already", URLs: 2}},
	},
	"key_saved": KeyPage{
		Root: "../", Key: "ops", Tab: TabState, Address: "../notify/console/keys/ops", Saved: true,
		KeyState: KeyState{Destinations: []Destination{exampleDestination}},
	},
	"key_many": KeyPage{
		Root: "../", Key: "ops", Tab: TabState, Address: "../notify/console/keys/ops", Fixed: true,
		KeyState: KeyState{Destinations: manyDestinations},
	},
	"key_fixed_settings": KeyPage{
		Root: "../", Key: "ops", Tab: TabSettings, Address: "../notify/console/keys/ops", Fixed: true, Saved: true,
		KeySettings: KeySettings{Facts: []Setting{
			{Name: "Who may send", Text: "Only who has its token."},
			{Name: "Inbox", Text: "Messages are not kept. This line keeps them:", Line: &CopiedLine{Name: "The line for the key", Text: "inbox 7d"}},
		}},
	},
	"key_fixed": KeyPage{
		Root: "../", Key: "ops", Tab: TabMessages, Address: "../notify/console/keys/ops", Fixed: true,
		KeyState:    KeyState{Destinations: []Destination{exampleDestination}},
		KeyMessages: KeyMessages{Queue: &Queue{Problem: "The queue cannot be read at the moment."}},
	},
	"key_damaged": KeyPage{
		Root: "../", Key: "ops", Tab: TabDevices, Address: "../notify/console/keys/ops", Fixed: true, Saved: true,
		KeyMessages: KeyMessages{Queue: &Queue{}}, KeyDevices: KeyDevices{DevicesProblem: "They cannot be read."},
	},
	"key_unused": KeyPage{
		Root: "../", Key: "ops", Tab: TabState, Address: "../notify/console/keys/ops", Saved: true, Editable: true,
		KeyMessages: KeyMessages{Recent: nil, Queue: &Queue{}},
	},
	"builder_services": ServicesPage{
		Address: "../cfg/ops", Key: "ops", Device: &DeviceOffer{Address: "../notify/console/keys/ops"},
		Groups: []ServiceGroup{
			{Title: "Chat", Services: []Service{
				{Name: "Discord", Scheme: "discord", Group: "chat"},
				{Name: "46elks", Scheme: "46elks", Group: "sms"},
			}},
			{Title: "Phone, desktop and browser", Services: []Service{
				{Name: "Discord", Scheme: "discord", Group: "chat"},
				{Name: "…", Scheme: "x", Group: "other"},
			}},
		},
	},
	"builder_services_found": ServicesPage{
		Address: "../cfg/ops", Key: "ops", Text: "push <key>",
		Guesses: []Guess{
			{Service: Service{Name: "Telegram", Scheme: "tgram", Group: "chat"}, What: "the name of a bot", Note: "its token is needed"},
			{Service: Service{Name: "Gotify", Scheme: "gotify", Group: "phone"}, What: "a token"},
			{Service: Service{Name: "3", Scheme: "c"}},
			{Service: Service{Name: "4", Scheme: "d"}},
			{Service: Service{Name: "5", Scheme: "e"}},
			{Service: Service{Name: "6", Scheme: "f"}},
			{Service: Service{Name: "7", Scheme: "g"}},
		},
		Found: []Service{
			{Name: "Pushover", Scheme: "pover", Group: "phone", Reason: `known for "push"`},
			{Name: "Gmail", Scheme: "mailto", Provider: "Gmail", Group: "mail", Reason: "E-Mail"},
		},
		Device: &DeviceOffer{Problem: "It is off"},
	},
	"builder_services_senders": ServicesPage{
		Address: "../cfg/ops", Key: "ops", Text: "grafana", Network: NewNetwork(),
		Senders: []Sender{{
			Name: "Grafana <x>", Where: []Part{{Text: "Contact points, as "}, {Text: "here", Address: "https://example.com/docs"}},
			Lines: []CopiedLine{
				{Name: "The address for Grafana", Text: "https://example.com/notify/ops/grafana"},
				{Name: "The header for Grafana", Text: "X-Gotify-Key: $TOKEN", Note: "Where it takes headers.", Log: "https://example.com/docs"},
			},
			Enter: []Part{{Text: "ops", Code: true}, {Text: " and any topic"}}, Page: "https://example.com/docs",
		}},
	},
	"builder_services_nothing": ServicesPage{
		Address: "../cfg/ops", Key: "ops", Text: "hello",
		Problem: "No service gives out a text of this form",
	},
	"builder_form": FormPage{
		Address: "../cfg/ops", Key: "ops", Service: Service{Name: "JSON", Scheme: "json", Group: "server"}, Setup: "Any server.",
		Site:    "https://example.com/docs",
		Natives: true, Unread: "hello <token>", Saves: true, Tests: true,
		Template: "json://{host}", Form: 2, Forms: []Choice{{"1", "With a host", false}, {"2", "With a host and a port", true}},
		Schemes: []Choice{{"json", "without TLS, json://", false}, {"jsons", "with TLS, jsons://", true}},
		Sections: []Section{
			{Open: true, Fields: []Field{
				{
					ID: "p-host", Name: "p.host", Param: "host", Label: "Host", Control: ControlText, Default: "localhost", Required: true,
					Hint: "A name or an address.",
				},
				{
					ID: "p-port", Name: "p.port", Param: "port", Label: "Port", Control: ControlNumber, Value: "99999", Default: "80", Min: "1",
					Max: "65535", Step: "1", Optional: true, Hint: "A whole number.", Problem: "port must be at most 65535",
				},
				{
					ID: "p-password", Name: "p.password", Param: "password", Label: "Password", Control: ControlSecret, Value: "t0ken", Example: "abc123",
					Required: true, Secret: true,
				},
			}},
			{Title: "More parameters of JSON", Open: true, Fields: []Field{
				{
					ID: "p-method", Name: "p.method", Param: "method", Label: "Method", Control: ControlSelect,
					Choices: []Choice{{"", "", false}, {"POST", "POST", true}},
				},
				{ID: "p-to", Name: "p.to", Param: "to", Label: "To", Control: ControlLines, Value: "a\nb", Required: true},
				{
					ID: "p-header", Name: "header", Param: "header", Label: "Headers", Control: ControlPairs,
					Pairs: []Pair{{1, "X-Key", "t0ken"}, {Number: 2}}, Problem: "the header is malformed",
				},
			}},
			{Title: "Parameters that all services have", Fields: []Field{
				{ID: "p-verify", Name: "p.verify", Param: "verify", Label: "Verify", Control: ControlCheck, Checked: true},
			}},
		},
		Tags: Field{
			ID: "own-tags", Name: "tags", Label: "Tags in this key", Control: ControlText, Value: "a, b.c", Optional: true,
			Problem: "the tag is malformed",
		},
		Problem: "The address is private",
	},
	"builder_form_shown": FormPage{
		Address: "../cfg/ops", Key: "ops", Service: Service{Name: "Discord", Scheme: "discord", Group: "chat"}, Template: "discord://{id}",
		Form: 1, Shown: true,
		Natives: true, Recognized: "the address of a webhook", Note: "it belongs to a channel", Saves: true, Tests: true,
		Result: "Delivered in 3 ms.", Status: "delivered", Warnings: []string{"the parameter x has no effect"},
		Sections: []Section{{Fields: []Field{
			{ID: "p-token", Name: "p.token", Param: "token", Label: "Token", Control: ControlSecret, Value: "t0ken", Secret: true, Shown: true},
			{
				ID: "p-header", Name: "header", Param: "header", Label: "Headers", Control: ControlPairs, Pairs: []Pair{{1, "X-Key", "t0ken"}},
				Shown: true,
			},
		}}},
		Tags: Field{ID: "own-tags", Name: "tags", Label: "Tags in this key", Control: ControlText, Optional: true},
	},
	"builder_form_provider": FormPage{
		Address: "../cfg/ops", Key: "ops", Service: Service{Name: "Gmail", Scheme: "mailto", Group: "mail"}, Provider: "Gmail", Of: "E-Mail",
		Setup: "Make an app password.", Template: "mailto://{host}", Form: 1, Saves: true,
		Sections: []Section{{
			Open:   true,
			Fields: []Field{{ID: "account", Name: "account", Label: "E-mail address", Control: ControlText, Required: true}},
		}},
		Tags: Field{ID: "own-tags", Name: "tags", Label: "Tags in this key", Control: ControlText, Optional: true},
	},
	"builder_form_line": FormPage{
		Address: "../notify/console/keys/fixed", Key: "fixed", Service: Service{Name: "Discord", Scheme: "discord", Group: "chat"},
		Template: "discord://{id}", Form: 1,
		Tags: Field{ID: "own-tags", Name: "tags", Label: "Tags in this key", Control: ControlText, Optional: true},
		Line: "url discord://id/t0ken ops", URL: "discord://id/t0ken", Network: NewNetwork(), Problem: "The address 10.0.0.7 is private",
	},
}

var exampleBar = func() *Bar {
	b := &Bar{End: noon, Messages: "../notify/console/messages?key=ops&half="}
	for i := range b.Parts {
		b.Parts[i].Delivered = i % 3
	}
	b.Parts[45], b.Parts[46], b.Parts[47] = BarPart{Delivered: 90, Waited: 1, Failed: 1}, BarPart{Waited: 2}, BarPart{Failed: 1}
	return b
}()

var exampleTrouble = Trouble{What: "The beat nightly is late", Since: noon, Cause: "cause"}

// exampleKey returns the page of a key with everything that a tab can show.
func exampleKey(t KeyTab) KeyPage {
	p := KeyPage{
		Root: "../", Tab: t, Added: "JSON", Key: "ops", Address: "../notify/console/keys/ops", Editable: true, Saved: true,
		KeyState: KeyState{
			Incidents: []IncidentRow{
				{ListedIncident: ListedIncident{
					Address: "../notify/console/incidents/abc", Title: "db1 <is> down", State: IncidentOpen, Since: noon, Line: exampleLine.Short(),
				}},
				equalExample(""),
			}, MoreIncidents: true, AllIncidents: "../notify/console/incidents?key=ops&state=open",
			Silences: []KeySilence{
				{Of: "titles like “disk <x>”", Until: noon, Reason: "new <disks>", Who: "Ann"},
				{Of: "in the configuration", From: noon, Until: noon.Add(time.Hour)},
			}, AllSilences: "../notify/console/silences", Week: exampleWeek,
			Destinations: []Destination{exampleDestination, exampleDestination}, Waiting: 112,
			Health: &Health{State: Down, Troubles: []Trouble{exampleTrouble}}, Watchdog: &exampleTrouble,
			Beats: exampleBeats,
			BeatLine: &CopiedLine{
				Name: "a beat", Text: "backup.sh; curl -fsS \"https://alerts.example.com/notify/ops?beat=nightly&exit=$?\"",
				Note: "Behind the command of the job.",
			},
		},
		KeyMessages: KeyMessages{
			Inbox: &KeyInbox{
				Address: "../notify/ops/messages", Keep: "7 days", Readers: 1,
				Lines: []CopiedLine{{
					Name: "curl, what comes in", Text: "curl -N https://alerts.example.com/notify/ops/stream",
					Note: "A line of JSON for each message.",
				}, {Name: "ntfy's app", Text: "https://alerts.example.com/notify/ops/ntfy"}},
			},
			Recent: Group([]ListedMessage{
				{
					ID: "0195-1", Address: "../notify/console/messages/0195-1", Time: noon, Type: "success", Source: "http", Outcome: Delivered,
					Lines: []string{"JSON json://example.com/: delivered"},
				},
				{
					ID: "0195-2", Address: "../notify/console/messages/0195-2", Time: noon, Source: "mail", Incident: "disk <db1>", Outcome: Failed,
					Lines: []string{"JSON json://example.com/: failed: the service answered 500"}, More: 2,
				},
				{
					ID: "0195-3", Address: "../notify/console/messages/0195-3", Time: noon.Add(-time.Minute), Source: "mail", Outcome: Failed,
					Lines: []string{"JSON json://example.com/: failed: the service answered 500"},
				},
				{Time: noon, Source: "log", Outcome: Queued},
				{Time: noon, Source: "http", Outcome: Refused, Count: 3, Client: "192.0.2.1", Reason: "400: the field body is missing"},
			}, 10),
			RecentHint: "Equal ones are counted.",
			Queue: &Queue{
				More: true,
				Groups: []QueuedGroup{
					{
						Named: Named{"JSON example.com", "server"}, URL: "json://example.com/", Outcome: GivenUp, Reason: "the service answered 404",
						Count: 1, First: noon, Messages: []MessageLink{{"0195-1", noon}},
					},
					{
						Named: Named{"JSON example.com", "server"}, URL: "json://example.com/", Outcome: Queued, Count: 112, First: noon,
						Next: noon.Add(time.Minute), Messages: slices.Repeat([]MessageLink{{"0195-2", noon}}, 7),
					},
				},
			},
		},
		KeyDevices: KeyDevices{
			Invite: true,
			Devices: []Device{
				{ID: "d1", Name: "Ann's phone", Tags: []string{"oncall"}, Service: "fcm.googleapis.com", Added: noon, Sent: noon, Seen: noon},
				{
					ID: "d2", Name: "Old phone", Service: "push.apple.com", Added: noon, Sent: noon,
					Problem: "It has confirmed none of the last 3 messages.",
				},
			},
			Invitation: &Invitation{
				Link: "https://alerts.example.com/notify/ops?invite=abc", Code: QRCode{3, "M1 1h1v1h-1z"},
				Tags: []string{"oncall"}, Until: noon,
			},
		},
		KeySend: KeySend{
			Lines: []CopiedLine{
				{Name: "curl", Text: "curl -d x https://alerts.example.com/notify/ops"},
				{Name: "Alertmanager", Note: "Into alertmanager.yml.", Text: "receivers:\n  - name: ops\n"},
			},
		},
		KeySettings: KeySettings{
			Text: "json://example.com/\n", Format: "text",
			Rules: []string{
				"Repetitions within 10m are left out.",
				"22:00–07:00 (the server's time): held, then sent as one message (info, success, warning).",
			},
			Tokens: 2,
		},
	}
	for _, x := range KeyTabs {
		p.Tabs = append(p.Tabs, Tab{Name: x.Name, Address: p.Address + "?tab=" + string(x.Tab), Here: x.Tab == t})
	}
	return p
}

var exampleDestination = Destination{
	Number: 1, Named: Named{"JSON example.com", "server"}, URL: "json://example.com/***", Tags: "a, b", Address: "../cfg/ops",
	Health: &Health{State: Waiting, Waiting: 1, WaitingSince: noon}, Waits: &Waits{"../notify/console/keys/ops", "aGFzaA", "JSON 1", 1},
	Fields: []HiddenField{{"destination", "1"}}, Label: "Test destination 1, JSON", Status: "delivered", Result: "Delivered in 3 ms.",
	Silence: exampleSilence,
}

var exampleSilence = SilenceLink{
	"../notify/console/silences?key=ops&tag=a", "Silence 2 with a", "Silence 2 with a, all destinations with the tag",
}

// manyDestinations are more than a key shows at once; the first was never used.
var manyDestinations = func() (out []Destination) {
	for n := range maxShown + 2 {
		d := exampleDestination
		d.Number, d.Health, d.Waits, d.Status, d.Result = n+1, &Health{State: Fine, Delivered: noon}, nil, "", ""
		out = append(out, d)
	}
	out[0].Health = &Health{State: Silent}
	return out
}()

// TestPages compares each example with its golden file, in which style sheets and scripts are
// replaced by their file names.
func TestPages(t *testing.T) {
	for name, page := range examples {
		t.Run(name, func(t *testing.T) {
			document, policy := render(t, page)
			golden.Check(t, "testdata/"+name+".golden", nameFiles("<!-- "+policy+" -->\n"+document))
		})
	}
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if examples[strings.TrimSuffix(f.Name(), ".golden")] == nil {
			t.Errorf("testdata/%s is of no example", f.Name())
		}
	}
}

func render(t *testing.T, page Page) (document, policy string) {
	t.Helper()
	b, policy, err := Render(exampleFrame, page)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), policy
}

// nameFiles replaces scripts, style sheets and their hashes by the names of their
// files.
func nameFiles(text string) string {
	for _, f := range embedded() {
		if !strings.HasSuffix(f, ".html") {
			text = strings.NewReplacer(">"+readFile(f)+"<", ">"+f+"<", hashSource(readFile(f)), f).Replace(text)
		}
	}
	return text
}

// embedded returns the names of the package's files.
func embedded() (names []string) {
	all, err := files.ReadDir(".")
	if err != nil {
		panic(err)
	}
	for _, f := range all {
		names = append(names, f.Name())
	}
	return names
}

// TestEveryPageHasAnExample finds the pages in the source of the package, so that
// none is without a golden file and the tests with hostile texts.
func TestEveryPageHasAnExample(t *testing.T) {
	have := map[string]bool{}
	for _, p := range examples {
		have[reflect.TypeOf(p).Name()] = true
	}
	sources, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range sources {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if strings.Contains(spec.Path.Value, ".") {
				t.Errorf("%s imports %s; the package has nothing but the standard library", f.Name(), spec.Path.Value)
			}
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				name := spec.(*ast.TypeSpec).Name.Name
				if name == "Page" || !strings.HasSuffix(name, "Page") || !ast.IsExported(name) {
					continue
				}
				if found++; !have[name] {
					t.Errorf("%s has no example", name)
				}
			}
		}
	}
	if found < len(have) {
		t.Errorf("%d pages are declared, but %d have examples", found, len(have))
	}
}

// TestEveryFileIsUsed checks that each script and style sheet is part of a page,
// and that each template is part of the HTML of a page.
func TestEveryFileIsUsed(t *testing.T) {
	shared := []string{"layout.html", "components.html"}
	for _, f := range embedded() {
		used := slices.Contains(shared, f) || f == "push.js" && strings.Contains(string(Worker()), readFile(f))
		for _, p := range examples {
			parts := p.view().parts()
			switch {
			case strings.HasSuffix(f, ".html"):
				used = used || parts.template.Lookup(f) != nil
			default:
				used = used || strings.Contains(parts.policy, hashSource(readFile(f)))
			}
		}
		if !used {
			t.Errorf("%s is part of no page", f)
		}
	}
}

// TestPolicies checks that each page loads and runs only its own files, and leads
// nowhere but to the gateway and the site of a service.
func TestPolicies(t *testing.T) {
	inline := regexp.MustCompile(`(?s)<(?:style|script)>(.*?)</(?:style|script)>`)
	elsewhere := regexp.MustCompile(`(?:src|href|action)="[^.#d"][^"]*"|url\(|@import|https?://[^\s"'<]*`)
	shown := regexp.MustCompile(`<code>[^<]*</code>|<output>[^<]*</output>`) // there is something to copy
	for name, p := range examples {
		document, policy := render(t, p)
		if !strings.HasPrefix(policy, "default-src 'none'; base-uri 'none'; ") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %s", name, policy)
		}
		for _, want := range []string{"frame-ancestors", "form-action", "img-src data:"} {
			if strings.Count(policy, want) != 1 {
				t.Errorf("%s: the policy lacks %s: %s", name, want, policy)
			}
		}
		for _, m := range inline.FindAllStringSubmatch(document, -1) {
			if !strings.Contains(policy, hashSource(m[1])) {
				t.Errorf("%s: the policy does not allow the page's own %.40q", name, m[1])
			}
		}
		for _, m := range elsewhere.FindAllString(strings.ReplaceAll(shown.ReplaceAllString(document, ""), "http://www.w3.org/2000/svg", ""),
			-1) {
			if !strings.Contains(m, "https://example.com/docs") {
				t.Errorf("%s leads elsewhere: %s", name, m)
			}
		}
	}
	// The page shows the preview in a frame that has both policies.
	if _, policy := render(t, SendPage{}); !strings.Contains(policy, hashSource(readFile(previewStyle))) {
		t.Errorf("the page does not allow the style of the preview: %s", policy)
	}
	if _, policy := render(t, PreviewPage{}); !strings.Contains(policy, "; sandbox") || strings.Contains(policy, "script-src") {
		t.Errorf("the preview can run scripts: %s", policy)
	}
}

// TestHostileText fills each example with texts that would change the page if they were not
// escaped, and checks that its elements and attributes are the same as with harmless texts.
func TestHostileText(t *testing.T) {
	for name, p := range examples {
		harmless, _ := render(t, withText(p, "x"))
		want := elements(t, harmless)
		for _, text := range []string{
			`"><script>alert(1)</script>`, `'><img src=x onerror=alert(1)>`, `x onfocus=alert(1) autofocus`,
			`</textarea></title></style></script><script>alert(1)//`,
			`javascript:alert(1)`, `{{.Key}}`, "<!--", "`${alert(1)}`", "\x00\xff\u2028",
		} {
			document, _ := render(t, withText(p, text))
			if got := elements(t, document); !slices.Equal(got, want) {
				t.Errorf("%s with the text %q has the elements\n%s\nwant\n%s", name, text, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// withText returns a copy of a page with text in place of all its texts, except empty ones, words
// of the package such as [Outcome], and the HTML of a preview.
func withText(p Page, text string) Page {
	var fill func(v reflect.Value) reflect.Value
	fill = func(v reflect.Value) reflect.Value {
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		switch v.Kind() {
		case reflect.String:
			if v.Type() == reflect.TypeFor[string]() && v.String() != "" {
				out.SetString(text)
			}
		case reflect.Slice:
			out.Set(reflect.MakeSlice(v.Type(), 0, v.Len()))
			for i := range v.Len() {
				out.Set(reflect.Append(out, fill(v.Index(i))))
			}
		case reflect.Pointer:
			if !v.IsNil() {
				out.Set(reflect.New(v.Type().Elem()))
				out.Elem().Set(fill(v.Elem()))
			}
		case reflect.Struct:
			if v.Type() != reflect.TypeFor[time.Time]() {
				for i := range v.NumField() {
					out.Field(i).Set(fill(v.Field(i)))
				}
			}
		}
		return out
	}
	return fill(reflect.ValueOf(p)).Interface().(Page)
}

// elements returns the elements of a document with the names of their attributes.
// An attribute with a scheme that runs scripts has its value, too.
func elements(t *testing.T, document string) (out []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.TextNode || n.Type == html.DocumentNode {
			continue
		}
		attributes := map[string]bool{}
		for _, a := range n.Attr {
			if strings.Contains(a.Key, "=") || slices.Contains([]string{"href", "action", "formaction", "src"}, a.Key) &&
				strings.HasPrefix(strings.ToLower(strings.TrimSpace(a.Val)), "javascript:") {
				attributes[a.Key+"="+a.Val] = true
			}
			attributes[a.Key] = true
		}
		out = append(out, n.Data+" "+strings.Join(slices.Sorted(maps.Keys(attributes)), " "))
	}
	return out
}

// TestPreviewBody checks that a preview has the HTML of its message.
func TestPreviewBody(t *testing.T) {
	const body = template.HTML("<script>alert(1)</script>")
	if document, _ := render(t, PreviewPage{Body: body}); !strings.Contains(document, string(body)) {
		t.Error(document)
	}
}

// TestWrite checks the headers of a page, and that HEAD has no body.
func TestWrite(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		w := httptest.NewRecorder()
		if err := Write(w, httptest.NewRequest(method, "/", nil), http.StatusConflict, exampleFrame, KeysPage{Root: "./"}); err != nil {
			t.Fatal(err)
		}
		document, policy := render(t, KeysPage{Root: "./"})
		want := http.Header{
			"Content-Type": {"text/html; charset=utf-8"}, "Content-Security-Policy": {policy},
			"Referrer-Policy": {"same-origin"}, "X-Content-Type-Options": {"nosniff"}, "Vary": {"Accept"},
		}
		if w.Code != http.StatusConflict || !reflect.DeepEqual(w.Header(), want) || method == http.MethodGet && w.Body.String() != document ||
			method == http.MethodHead && w.Body.Len() > 0 {
			t.Errorf("%s: %d %v %s", method, w.Code, w.Header(), w.Body)
		}
	}
}

// TestEditorLines checks that the height of the editor is bounded, and that the
// script has the same bounds.
func TestEditorLines(t *testing.T) {
	for text, want := range map[string]int{"": 12, strings.Repeat("x\n", 20): 21, strings.Repeat("x\n", 5000): 1000} {
		if got := len((KeyPage{KeySettings: KeySettings{Text: text, Draft: &Draft{Mistakes: []Mistake{{Line: 4999}}}}}).lines()); got != want {
			t.Errorf("%d bytes: %d lines, want %d", len(text), got, want)
		}
	}
	for _, want := range []string{"maxLines = 1000;", "Math.max(12, "} {
		if !strings.Contains(readFile("key_editor.js"), want) {
			t.Errorf("the script has no %s", want)
		}
	}
}
