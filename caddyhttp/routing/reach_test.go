package routing_test

import (
	"slices"
	"strings"
	"testing"
)

// reachOf provisions a Caddyfile and returns the error and the warnings about what
// can be reached in its sites.
func reachOf(t *testing.T, text string) (warnings []string, err error) {
	t.Helper()
	_, routes := provision(t, text)
	warnings = warningsIn(routes, func() { err = routes.CheckReach() })
	return warnings, err
}

// TestUnreachable checks the error for a notify that no request reaches. Such a
// site answered 200 to every alert, or 404.
func TestUnreachable(t *testing.T) {
	const k = "{\nkey k {\nurl json://localhost\n}\n}"
	for name, tt := range map[string]struct{ text, want string }{
		"handle instead of handle_path": {
			"http://h {\nhandle /alerts/* {\nnotify " + k + "\n}\n}",
			"Caddyfile:7: no request reaches this notify, because its addresses are /notify",
		},
		"route with another path":        {"http://h {\nroute /alerts/* {\nnotify " + k + "\n}\n}", "handle_path /alerts/*"},
		"handle that answers everything": {"http://h {\nhandle {\nrespond hi\n}\nnotify " + k + "\n}", "respond comes before it"},
		"respond before in a route":      {"http://h {\nroute {\nrespond hi\nnotify " + k + "\n}\n}", "respond comes before it"},
		"reverse_proxy before in a route": {
			"http://h {\nroute {\nreverse_proxy localhost:1\nnotify " + k + "\n}\n}",
			"reverse_proxy comes before it",
		},
		"error before in a route": {"http://h {\nroute {\nerror 404\nnotify " + k + "\n}\n}", "error comes before it"},
		"second notify":           {"http://h {\nnotify " + k + "\nnotify " + k + "\n}", "another notify of the site"},
		"redir of everything":     {"http://h {\nredir https://example.com{uri}\nnotify " + k + "\n}", "redir comes before it"},
		"error for everything":    {"http://h {\nerror 404\nnotify " + k + "\n}", "error comes before it"},
		"handle_path, and inside another prefix": {
			"http://h {\nhandle_path /a/* {\nhandle /b/* {\nnotify " + k + "\n}\n}\n}",
			"no request reaches this notify",
		},
	} {
		if _, err := reachOf(t, tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}

// TestReachable checks that legitimate sites get neither an error nor a warning.
func TestReachable(t *testing.T) {
	const k = "notify {\nkey ops {\nurl json://localhost\n}\n}"
	const matched = " {\nkey ops {\nurl json://localhost\n}\n}"
	for _, siteID := range []string{
		k,
		"notify",
		"handle {\n" + k + "\n}",
		"handle_path /alerts/* {\n" + k + "\n}",
		"handle_path /a/* {\nhandle_path /b/* {\n" + k + "\n}\n}",
		"route {\n" + k + "\n}",
		"route {\n" + k + "\nrespond 404\n}",
		"route /notify* {\n" + k + "\n}",
		"handle /notify* {\n" + k + "\n}",
		"handle /notify/* {\n" + k + "\n}\nhandle {\nreverse_proxy localhost:1\n}",
		k + "\nreverse_proxy localhost:1",
		k + "\nfile_server",
		k + "\nrespond 404",
		k + "\nrespond / OK",
		k + "\nrespond /health OK",
		k + "\n@get method GET\nrespond @get OK",
		k + "\nredir /old https://example.com{uri}",
		k + "\n@other not path /notify*\nredir @other https://example.com{uri}",
		k + "\nerror /secret* 404",
		"notify /notify*" + matched,
		"notify /notify/ops" + matched,
		"notify /notify/ops*" + matched,
		"@ops path /notify/ops /notify/ops/*\nnotify @ops" + matched,
		"@ops path_regexp ^/notify/(ops|dev)$\nnotify @ops" + matched,
		"@lan remote_ip private_ranges\nnotify @lan" + matched,
		"@lan client_ip 192.168.0.0/16\nnotify @lan" + matched,
		"@post method POST\nnotify @post" + matched,
		"@h header X-Key secret\nnotify @h" + matched,
		"@e expression {method} == 'POST'\nnotify @e" + matched,
		"@q query a=b\nnotify @q" + matched,
		"@not not path /health\nnotify @not" + matched,
		"@not not remote_ip 10.0.0.0/8\nrespond @not 403\n" + k,
		"basic_auth {\nann $2a$04$ZmFrZWZha2VmYWtlZmFrZOeTlUyXJ5GQw9x0QbrGx7RkcBhrFrrUe\n}\n" + k,
		"basic_auth /notify/* {\nann $2a$04$ZmFrZWZha2VmYWtlZmFrZOeTlUyXJ5GQw9x0QbrGx7RkcBhrFrrUe\n}\n" + k,
		"forward_auth localhost:1 {\nuri /auth\n}\n" + k,
		"encode gzip\nheader X-A b\n" + k,
		"uri strip_prefix /alerts\n" + k,
		"route /alerts/* {\nuri strip_prefix /alerts\n" + k + "\n}",
		"handle /alerts/* {\nuri replace /alerts/ /\n" + k + "\n}",
		"rewrite /hook /notify/ops\n" + k,
		"handle /hook {\nrewrite * /notify/ops\n" + k + "\n}",
		"@a path /a\nrespond @a hi\nhandle /x/* {\nrespond x\n}\n" + k,
		"request_body {\nmax_size 1MB\n}\n" + k,
		"log\ntracing {\nspan x\n}\n" + k,
		"handle /notify/ops* {\nnotify" + matched + "\n}\nhandle /notify/dev* {\nnotify {\nkey dev {\nurl json://localhost\n}\n}\n}",
		"notify /notify/ops*" + matched + "\nnotify /notify/dev* {\nkey dev {\nurl json://localhost\n}\n}",
		"notify /cfg* {\nconfigs {\nmanage\n}\n}\nnotify /notify* {\nkey dev {\nurl json://localhost\n}\n}",
		"handle_errors {\nrespond oops\n}\n" + k,
		"map {path} {a} {\n/x y\n}\nvars b c\n" + k,
		"intercept {\n}\n" + k,
		"php_fastcgi localhost:1\n" + k,
	} {
		warnings, err := reachOf(t, "http://h {\n"+siteID+"\n}")
		warnings = slices.DeleteFunc(warnings,
			func(w string) bool { return strings.Contains(w, "nobody answers a mistyped address") }) // see TestNobody
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s\n%v %q", siteID, err, warnings)
		}
	}
}

// TestNobody checks the warning about a site where nobody answers a mistyped address, so that
// Caddy does, with 200 and an empty body.
func TestNobody(t *testing.T) {
	const k = "notify {\nkey ops {\nurl json://localhost\n}\n}"
	for siteID, want := range map[string]string{ // the address in the warning; "" for none
		k:                                        "/notfy/KEY,",
		"notify":                                 "", // it has no key that somebody may mistype
		k + "\nrespond 404":                      "",
		k + "\nrespond /notify* 404":             "/notfy/KEY,",
		k + "\nrespond / OK":                     "/notfy/KEY,",
		k + "\n@get method GET\nrespond @get OK": "/notfy/KEY,",
		k + "\n@post method POST\nrespond @post 404":     "",
		k + "\n@not not path /notify*\nrespond @not 404": "/notify/KEY/a.b,",
		k + "\nreverse_proxy localhost:1":                "",
		k + "\nreverse_proxy /app* localhost:1":          "/notfy/KEY,",
		k + "\nfile_server":                              "",
		k + "\nfile_server {\npass_thru\n}":              "/notfy/KEY,",
		k + "\nredir https://example.com{uri}\n":         "-", // no request reaches notify
		k + "\nredir /old https://example.com{uri}":      "/notfy/KEY,",
		k + "\nerror /secret* 404":                       "/notfy/KEY,",
		k + "\nabort":                                    "-",
		k + "\nencode gzip\nheader X-A b\nlog":           "/notfy/KEY,",
		"basic_auth {\nann $2a$04$ZmFrZWZha2VmYWtlZmFrZOeTlUyXJ5GQw9x0QbrGx7RkcBhrFrrUe\n}\n" + k: "/notfy/KEY,",
		"handle /notify* {\n" + k + "\n}":                                                                  "/notfy/KEY,",
		"handle /notify* {\n" + k + "\n}\nhandle {\nrespond 404\n}":                                        "/notify/KEY/a.b,",
		"handle /notify* {\n" + k + "\n}\nrespond 404":                                                     "",
		"handle /notify* {\n" + k + "\nrespond 404\n}\nhandle {\nreverse_proxy localhost:1\n}":             "",
		"handle_path /a/* {\n" + k + "\n}\nrespond 404":                                                    "",
		"handle_path /a/* {\n" + k + "\nrespond 404\n}":                                                    "/ax/notify/KEY,",
		"handle_path /a/* {\n" + k + "\nrespond 404\n}\nrespond 404":                                       "",
		"route {\n" + k + "\nrespond 404\n}":                                                               "",
		"@lan remote_ip private_ranges\nhandle @lan {\n" + k + "\n}\nhandle {\nrespond 404\n}":             "/notfy/KEY,",
		"@lan remote_ip private_ranges\nhandle @lan {\n" + k + "\nrespond 404\n}":                          "/notfy/KEY,",
		"@lan remote_ip private_ranges\nhandle @lan {\n" + k + "\nrespond 404\n}\nabort":                   "",
		"@lan remote_ip private_ranges\nnotify @lan {\nkey ops {\nurl json://localhost\n}\n}\nrespond 404": "",
		"@out not remote_ip private_ranges\nrespond @out 403\n" + k:                                        "/notfy/KEY,",
	} {
		warnings, err := reachOf(t, "http://h {\n"+siteID+"\n}")
		switch {
		case want == "-" && err != nil:
		case want == "" && err == nil && len(warnings) == 0:
		case want != "" && err == nil && len(warnings) == 1 &&
			strings.Contains(warnings[0], "nobody answers a mistyped address such as "+want):
		default:
			t.Errorf("%s\n%v %q, want %s", siteID, err, warnings, want)
		}
	}
}

// TestCatchAll checks the warning about a site that answers mistyped addresses with
// success.
func TestCatchAll(t *testing.T) {
	const k = "notify {\nkey ops {\nurl json://localhost\n}\n}"
	for _, siteID := range []string{
		k + "\nrespond OK", k + "\nrespond /* OK 202", "handle_path /a/* {\n" + k + "\nrespond OK\n}",
		"handle /notify* {\n" + k + "\n}\nhandle {\nrespond OK\n}",
	} {
		warnings, err := reachOf(t, "http://h {\n"+siteID+"\n}")
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "answers a mistyped address") {
			t.Errorf("%s\n%v %q", siteID, err, warnings)
		}
	}
}
