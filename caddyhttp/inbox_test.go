package caddyhttp

import (
	"strings"
	"testing"
)

const testReader = "reader-of-the-inbox"

// TestInboxRefused checks that an inbox that cannot work is refused when the
// configuration loads, with what to do.
func TestInboxRefused(t *testing.T) {
	t.Parallel()
	const inbox, reader = "inbox 7d\n", "reader " + testReader + "\n"
	queue := "queue {\npath " + t.TempDir() + "\n}\n"
	for _, tt := range []struct{ block, global, want string }{
		{"key k {\n" + inbox + reader + "}", "", "Testfile:3: key k: inbox: messages are kept in the queue, and there is none; add queue"},
		{
			"key k {\n" + inbox + reader + "queue off\n}", queue,
			"Testfile:3: key k: inbox: messages are kept in the queue, which the key does not use; remove queue off",
		},
		{
			"key k {\n" + inbox + "}", queue,
			"Testfile:3: key k: inbox: nobody can read it, because the key has no reader and nobody may manage; add reader",
		},
		{"configs {\nmanage\n" + inbox + "}", "", "Testfile:4: configs: inbox: messages are kept in the queue, and there is none"},
		{"configs {\n" + inbox + "}", queue, "Testfile:3: configs: inbox: nobody can read it, because nobody may manage; add manage"},
		{"key k {\n" + inbox + reader + "dedupe 1h\n}", queue, "dedupe: it has no effect, because rules are for URLs and the key has none"},
		{"key k {\n" + inbox + reader + "default_tag a\n}", queue, "no URL of the key has this tag"},
		{"", queue + "key k {\n" + inbox + "queue off\n}", "key k: inbox: messages are kept in the queue, which the key does not use"},
	} {
		if _, err := provision(t, tt.block, tt.global); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.block, err, tt.want)
		}
	}
	for _, tt := range []struct{ block, global, want string }{
		{"", queue + "key k {\n" + inbox + "}", "nobody can read it, because the key has no reader"},
		{"console {\nmanage open\n}", queue + "key k {\n" + inbox + "}", ""},
		{"", queue + "key k {\n" + inbox + reader + "}", ""},
	} {
		h, err := provision(t, tt.block, tt.global)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.app.checkInboxReaders(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.global, err, tt.want)
		}
	}
	h, err := provision(t, "", queue+"key k {\n"+inbox+reader+"}")
	if err != nil {
		t.Fatal(err)
	}
	h.app.gateway.Engine.Sites = nil
	if err := h.app.checkInboxReaders(); err == nil || !strings.Contains(err.Error(), "no site has notify") {
		t.Error(err)
	}
	if _, err := provision(t, `key k {`+"\n"+inbox+reader+"expect nightly every 1h\n}", queue); err != nil {
		t.Errorf("beats of a key with only an inbox: %v", err)
	}
}
