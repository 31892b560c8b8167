package slack

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestUpdate checks that the messages of an incident change the first one in each
// channel, that replies tell that it is worse and over, and that a deleted message
// is replaced.
func TestUpdate(t *testing.T) {
	var got []string
	fail := ""
	service := servicetest.API(func(q *http.Request, body string) (int, string) {
		var m struct {
			Channel, TS string
			Thread      string `json:"thread_ts"`
			Attachments []struct{ Title, Text string }
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Error(err)
		}
		method := strings.TrimPrefix(q.URL.Path, "/api/")
		got = append(got, strings.Join([]string{method, m.Channel, m.TS, m.Thread, m.Attachments[0].Title, m.Attachments[0].Text}, "|"))
		if method == "chat.update" && fail != "" {
			return 200, `{"ok": false, "error": "` + fail + `"}`
		}
		return 200, `{"ok": true, "channel": "C1", "ts": "1.2"}`
	})
	send := service.Destination(t, "slack://xoxb-1234-1234-abc124/ops?update=yes")
	check := func(name string, want ...string) {
		t.Helper()
		if err := send(servicetest.Message(t, name)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q\nwant %q", name, got, want)
		}
		got = nil
	}
	check("open", "chat.postMessage|#ops|||Disk almost full|Volume /data is at 91% on host-7")
	check("worse",
		"chat.update|C1|1.2||Disk almost full|Volume /data is at 99% on host-7\n\n1 Mar 12:30 warning  \n1 Mar 12:30 failure",
		"chat.postMessage|C1||1.2||Disk almost full")
	check("resolved",
		"chat.update|C1|1.2||Disk has space again|Volume /data is at 40% on host-7\n"+
			"\n1 Mar 12:30 warning  \n1 Mar 12:30 failure  \n1 Mar 12:30 resolved",
		"chat.postMessage|C1||1.2||Disk has space again")
	check("open", "chat.postMessage|#ops|||Disk almost full|Volume /data is at 91% on host-7")
	fail = "message_not_found"
	check("updated",
		"chat.update|C1|1.2||Disk|a larger one is ordered\n\n1 Mar 12:30 warning  \n1 Mar 12:30 updated",
		"chat.postMessage|#ops|||Disk|a larger one is ordered")
}

// TestUpdateButton checks that the button to acknowledge an incident stays when
// something is added to it, and goes away when somebody has acknowledged it.
func TestUpdateButton(t *testing.T) {
	var got []string
	send := servicetest.API(func(q *http.Request, body string) (int, string) {
		method := q.URL.Path[strings.LastIndexByte(q.URL.Path, '/')+1:]
		if strings.Contains(body, servicetest.AcknowledgeURL) {
			method += " with a button"
		}
		got = append(got, method)
		return 200, `{"ok": true, "channel": "C1", "ts": "1.2"}`
	}).Destination(t, "slack://xoxb-1234-1234-abc124/ops?update=yes")
	for _, name := range []string{"button", "updated", "acknowledged"} {
		if err := send(servicetest.Message(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"chat.postMessage with a button", "chat.update with a button", "chat.update"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
