package telegram

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestUpdate checks that the messages of an incident change the first one in each
// chat, that replies tell that it is worse and over, and that a deleted message is
// replaced.
func TestUpdate(t *testing.T) {
	var got []string
	fail := ""
	service := servicetest.API(func(q *http.Request, body string) (int, string) {
		var m struct {
			Chat  json.Number `json:"chat_id"`
			ID    json.Number `json:"message_id"`
			Reply struct {
				ID json.Number `json:"message_id"`
			} `json:"reply_parameters"`
			Text string
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Error(err)
		}
		method := q.URL.Path[strings.LastIndexByte(q.URL.Path, '/')+1:]
		got = append(got, strings.Join([]string{method, m.Chat.String(), m.ID.String(), m.Reply.ID.String(), m.Text}, "|"))
		if method == "editMessageText" && fail != "" {
			return 400, `{"ok": false, "error_code": 400, "description": "Bad Request: ` + fail + `"}`
		}
		return 200, `{"ok": true, "result": {"message_id": 55}}`
	})
	send := service.Destination(t, "tgram://123456789:AAabcdefghijklmnopqrstuvwxyz0123456/42?update=yes")
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
	check("open", "sendMessage|42|||<b>Disk almost full</b>\nVolume /data is at 91% on host-7")
	check("worse",
		"editMessageText|42|55||<b>Disk almost full</b>\nVolume /data is at 99% on host-7\n1 Mar 12:30 warning\n1 Mar 12:30 failure",
		"sendMessage|42||55|<b>Disk almost full</b>")
	check("resolved",
		"editMessageText|42|55||<b>Disk has space again</b>\nVolume /data is at 40% on host-7\n"+
			"1 Mar 12:30 warning\n1 Mar 12:30 failure\n1 Mar 12:30 resolved",
		"sendMessage|42||55|<b>Disk has space again</b>")
	check("open", "sendMessage|42|||<b>Disk almost full</b>\nVolume /data is at 91% on host-7")
	fail = "message is not modified"
	check("updated", "editMessageText|42|55||<b>Disk</b>\na larger one is ordered\n1 Mar 12:30 warning\n1 Mar 12:30 updated")
	fail = "message to edit not found"
	check("acknowledged",
		"editMessageText|42|55||<b>Disk almost full: acknowledged</b>\nby Ann\n"+
			"1 Mar 12:30 warning\n1 Mar 12:30 updated\n1 Mar 12:30 acknowledged",
		"sendMessage|42|||<b>Disk almost full: acknowledged</b>\nby Ann")
}

// TestUpdateLimit checks that a long text stays within the limit of Telegram with the
// lines of its history.
func TestUpdateLimit(t *testing.T) {
	edits := 0
	service := servicetest.API(func(q *http.Request, body string) (int, string) {
		var m struct{ Text string }
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Error(err)
		}
		if n := len(utf16.Encode([]rune(m.Text))); n > 4096 {
			t.Errorf("a text of %d units", n)
		}
		if strings.HasSuffix(q.URL.Path, "/editMessageText") {
			edits++
		}
		return 200, `{"ok": true, "result": {"message_id": 55}}`
	})
	send := service.Destination(t, "tgram://123456789:AAabcdefghijklmnopqrstuvwxyz0123456/42?update=yes&overflow=truncate")
	for i := range 15 {
		m := servicetest.Message(t, []string{"open", "worse"}[i%2])
		m.Body = strings.Repeat("<&😀", 2000)
		if err := send(m); err != nil {
			t.Fatal(err)
		}
	}
	if edits != 14 {
		t.Errorf("%d changes, want 14", edits)
	}
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
		return 200, `{"ok": true, "result": {"message_id": 55}}`
	}).Destination(t, "tgram://123456789:AAabcdefghijklmnopqrstuvwxyz0123456/42?update=yes")
	for _, name := range []string{"button", "updated", "acknowledged"} {
		if err := send(servicetest.Message(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"sendMessage with a button", "editMessageText with a button", "editMessageText"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
