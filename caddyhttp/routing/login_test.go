package routing_test

import (
	"maps"
	"strings"
	"testing"
)

// TestLogins checks for which keys a program needs a login of the server.
func TestLogins(t *testing.T) {
	const keys = "notify {\nkey ops {\nurl json://127.0.0.1:1\ntoken a-token-of-the-key\n}\nkey home {\nurl json://127.0.0.1:1\n}\n}\n"
	for name, c := range map[string]struct {
		text string
		want map[string]bool
	}{
		"none": {":9470 {\n" + keys + "}", map[string]bool{"": false, "ops": false, "home": false}},
		"all":  {":9470 {\nbasic_auth" + account + keys + "}", map[string]bool{"": true, "ops": true, "home": true}},
		"the console": {
			":9470 {\nbasic_auth /notify/console*" + account + keys + "}",
			map[string]bool{"": false, "ops": false, "home": false},
		},
		"one key": {":9470 {\nbasic_auth /notify/ops*" + account + keys + "}", map[string]bool{"": false, "ops": true, "home": false}},
		"below a prefix": {
			":9470 {\nhandle_path /alerts/* {\nbasic_auth" + account + keys + "}\n}",
			map[string]bool{"": true, "ops": true, "home": true},
		},
		"two addresses": {
			"(site) {\n" + strings.TrimSuffix(keys, "\n") + "\n}\n:9470 {\nbasic_auth" + account + "import site\n}",
			map[string]bool{"": true, "ops": true, "home": true},
		},
		"a login elsewhere": {
			":9470 {\nforward_auth 127.0.0.1:1 {\nuri /auth\ncopy_headers Remote-User>X-User\n}\n" + keys + "}",
			map[string]bool{"": true, "ops": true, "home": true},
		},
		"answered before it": {":9470 {\nroute {\nrespond /notify/ops 204\n" + keys + "}\n}", map[string]bool{"": false, "home": false}},
	} {
		t.Run(name, func(t *testing.T) {
			_, routes := provision(t, c.text)
			if got := routes.Sites[0].API.Logins(); !maps.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
