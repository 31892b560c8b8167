package admin_test

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestAdminForget checks how the admin API forgets one incident, all incidents of a key, and what
// is under way.
func TestAdminForget(t *testing.T) {
	caddyhttptest.ReplaceShared(t)
	to := gatewaytest.NewStation(t).NotifyURL("/")
	caddyhttptest.Serve(t, "notify {\nqueue {\npath "+t.TempDir()+"\n}\npublic_url "+gatewaytest.PublicURL+
		"\nkey ops {\nurl "+to+" 1:oncall\nescalate after 1h\n}\nkey net {\nurl "+to+"\ndedupe 1h\n}\n}", "")
	ids := map[string]string{}
	for _, form := range []string{"ops failure pages", "net warning slow", "net warning loss", "net failure down"} {
		f := strings.Fields(form)
		caddyhttptest.Send(t.Context(), t, "/notify/"+f[0], "body=x&type="+f[1]+"&incident="+f[2])
		_, list := ask(t, "GET", "/notify/incidents?key="+f[0]+"&limit=1000", "")
		for _, part := range strings.Split(list, `"id":"`)[1:] {
			if id := part[:26]; strings.Contains(part, `"incident":"`+f[2]+`"`) {
				ids[f[2]] = id
			}
		}
	}
	for _, tt := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"DELETE", "/notify/incidents/" + ids["pages"], 409, "resolve it first"},
		{"DELETE", "/notify/incidents/" + ids["slow"], 200, `"incident":"slow"`},
		{"DELETE", "/notify/incidents/" + ids["slow"], 404, "there is no such incident"},
		{"DELETE", "/notify/incidents", 400, "?key="},
		{"DELETE", "/notify/incidents?key=net&state=shut", 400, "state must be"},
		{"DELETE", "/notify/incidents?key=net&state=acknowledged", 200, `{"forgotten":0,"kept":0,"more":false}`},
		{"DELETE", "/notify/incidents?key=net", 200, `{"forgotten":2,"kept":0,"more":false}`},
		{"DELETE", "/notify/incidents?key=ops", 200, `{"forgotten":0,"kept":1,"more":false}`},
		{"GET", "/notify/incidents", 200, ids["pages"]},
		{"PUT", "/notify/incidents", 405, "use GET, HEAD, DELETE"},
	} {
		if status, text := ask(t, tt.method, tt.path, ""); status != tt.status || !strings.Contains(text, tt.want) {
			t.Errorf("%s %s: %d %s; want %d %s", tt.method, tt.path, status, text, tt.status, tt.want)
		}
	}
}
