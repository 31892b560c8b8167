package loginurl

import "testing"

func TestEncode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"mailtos://me:pa/ss@example.com":                   "mailtos://me:pa%2Fss@example.com",
		" mailtos://me:/pass@example.com?to=a@example.org": "mailtos://me:%2Fpass@example.com?to=a@example.org",
		"mailtos://me@example.com:a/b@c@example.com":       "mailtos://me%40example.com:a%2Fb%40c@example.com",
		"jsons://me:a?b#c:d e%2F@10.0.0.1:8443/x":          "jsons://me:a%3Fb%23c%3Ad%20e%2F@10.0.0.1:8443/x",
		"json://me:a/b@[::1]:80":                           "json://me:a%2Fb@[::1]:80",
		"json://me:a/b@localhost":                          "json://me:a%2Fb@localhost",
		// nothing to encode, or no password
		"mailtos://me:pass@example.com":        "",
		"mailtos://me:pass@example.com/a@b.cd": "mailtos://me:pass%40example.com%2Fa@b.cd", // the caller parses the URL first
		"json://example.com/a@example.org":     "",
		"json://example.com:8080/path":         "",
		"json://me:a/b@host":                   "",
		"json://:a/b@example.com":              "",
		"https://me:a/b@example.com":           "",
		"me:a/b@example.com":                   "",
		"":                                     "",
	} {
		got, ok := Encode(text)
		if got != want || ok != (want != "") {
			t.Errorf("%q is %q, %t, want %q", text, got, ok, want)
		}
	}
}
