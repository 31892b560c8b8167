package caddyhttp

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// TestKeyURLJSON checks both forms of a URL in JSON.
func TestKeyURLJSON(t *testing.T) {
	for _, c := range []struct {
		url  KeyURL
		want string
	}{
		{KeyURL{URL: "json://host/a?b=c&d"}, `"json://host/a?b=c\u0026d"`},
		{KeyURL{URL: `json://host/"ä\`}, `"json://host/\"ä\\"`},
		{KeyURL{}, `""`},
		{KeyURL{URL: "json://host", Tags: []string{"ops"}}, `{"url":"json://host","tags":["ops"]}`},
		{KeyURL{URL: "json://host", Dir: "/etc"}, `{"url":"json://host","dir":"/etc"}`},
	} {
		got, err := json.Marshal(c.url)
		if err != nil || string(got) != c.want {
			t.Errorf("%+v becomes %s, %v", c.url, got, err)
		}
		back := KeyURL{Dir: "/other", Tags: []string{"other"}}
		if c.want[0] == '{' {
			back = KeyURL{}
		}
		if err := caddy.StrictUnmarshalJSON(got, &back); err != nil || !reflect.DeepEqual(back, c.url) {
			t.Errorf("%s becomes %+v, %v", got, back, err)
		}
	}
	// Versions before the string wrote every URL as an object.
	var old KeyURL
	if err := json.Unmarshal([]byte(`{"url":"json://host"}`), &old); err != nil || old.URL != "json://host" {
		t.Errorf("an object without tags becomes %+v, %v", old, err)
	}
	for text, want := range map[string]string{
		`{"url":"json://host","tag":"ops"}`: "unknown field",
		`5`:                                 "cannot unmarshal number",
		`["json://host"]`:                   "cannot unmarshal array",
	} {
		if err := json.Unmarshal([]byte(text), new(KeyURL)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
