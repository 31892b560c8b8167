package doctor

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/commandtest"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

// run runs the command with a configuration, and returns its findings by their checks, and
// the exit code.
func run(t *testing.T, client *http.Client, config string, args ...string) (found map[string][]finding, code int) {
	t.Helper()
	out, errs, code := commandtest.Run(t, command(client), config, append([]string{"--config=-", "--adapter=caddyfile", "--json"}, args...)...)
	if strings.Contains(out+errs, "secretsecret") {
		t.Errorf("a secret shows:\n%s%s", out, errs)
	}
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("exit %d: %v\n%s%s", code, err, out, errs)
	}
	if r.OK != (code == 0) {
		t.Errorf("ok is %t, and the exit code %d", r.OK, code)
	}
	found = map[string][]finding{}
	for _, f := range r.Checks {
		if f.State != stateOK && f.Remedy == "" {
			t.Errorf("there is no remedy: %+v", f)
		}
		found[f.Check] = append(found[f.Check], f)
	}
	return found, code
}

// has reports whether a check has a finding with a state and a text.
func has(found map[string][]finding, check string, s state, text string) bool {
	for _, f := range found[check] {
		if f.State == s && strings.Contains(f.Text, text) {
			return true
		}
	}
	return false
}

// TestDoctorConfig checks what is found without a server.
func TestDoctorConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const admin = "admin 127.0.0.1:1\n"
	const key = "key ops {\nurl json://user:secretsecret@127.0.0.1:1/ops\n}\n"
	for name, tt := range map[string]struct {
		config string
		args   []string
		check  string
		state  state
		text   string
		code   int
	}{
		"good": {
			config: "{\n" + admin + "}\nhttp://localhost:9080 {\nbind 127.0.0.1\nnotify {\n" + key + "}\n}\n",
			check:  "strangers", state: stateOK, text: "no site",
		},
		"good, its keys": {config: "{\n" + admin + "notify {\n" + key + "}\n}\n", check: "destinations", state: stateOK, text: "1 URL of 1 key"},
		"an inbox only": {
			config: "{\n" + admin + "notify {\nqueue {\npath " + filepath.Dir(file) + "/new/queue\n" +
				"}\nkey home {\ninbox 7d\nreader secretsecretsecret\n}\n}\n}\n" +
				"http://localhost:9080 {\nbind 127.0.0.1\nnotify\n}\n",
			check: "destinations", state: stateOK, text: "1 key without a URL, only with devices or an inbox",
		},
		"no server": {
			config: "{\n" + admin + "notify {\n" + key + "}\n}\n", check: "server",
			state: stateWarn, text: "no server answers at 127.0.0.1:1",
		},
		"admin off": {
			config: "{\nadmin off\nnotify {\n" + key + "}\n}\n",
			check:  "server", state: stateWarn, text: "turns the admin API off",
		},
		"version": {config: "{\n" + admin + "notify {\n" + key + "}\n}\n", check: "versions", state: stateOK, text: "Caddy"},
		"scheme": {
			config: "{\nnotify {\nkey ops {\nurl nonsense://secretsecret\n}\n}\n}\n",
			check:  "configuration", state: stateFail, text: "which is not a scheme of any service", code: 1,
		},
		"a rule": {
			config: "{\nnotify {\n" + strings.Replace(key, "}", "dedupe 1m\n}", 1) + "}\n}\n:9080 {\nnotify\n}\n",
			check:  "configuration", state: stateFail, text: "standard input does not load: -:5: ", code: 1,
		},
		"unreached": {
			config: "{\n" + admin + "}\n:9080 {\nroute {\nrespond OK\nnotify {\n" + key + "}\n}\n}\n",
			check:  "configuration", state: stateFail, text: "no request reaches this notify", code: 1,
		},
		"no notify": {
			config: "{\n" + admin + "}\n:9080 {\nrespond OK\n}\n",
			check:  "configuration", state: stateFail, text: "has no notify", code: 1,
		},
		"open": {
			config: "{\n" + admin + "}\n:9080 {\nnotify {\n" + key + "}\n}\n",
			check:  "strangers", state: stateWarn, text: "anyone who can reach this site",
		},
		"open admin": {
			config: "{\nadmin :1\nnotify {\n" + key + "}\n}\n", args: []string{"--address=127.0.0.1:1"},
			check: "strangers", state: stateWarn, text: "the admin API",
		},
		"no queue": {config: "{\n" + admin + "notify {\n" + key + "}\n}\n", check: "queue", state: stateOK, text: "there is none"},
		"queue": {
			config: "{\n" + admin + "notify {\nqueue {\npath " + filepath.Dir(file) + "/new/queue\n}\n" + key + "}\n}\n",
			check:  "queue", state: stateOK, text: "can be written",
		},
		"queue in file": {
			config: "{\n" + admin + "notify {\nqueue {\npath " + file + "/queue\n}\n" + key + "}\n}\n",
			check:  "queue", state: stateFail, text: "not a directory", code: 1,
		},
		"postgres": {
			config: "{\n" + admin + "notify {\nqueue postgres postgres://u:secretsecret@127.0.0.1:1/x {\n" +
				"secret 0123456789abcdef\n}\n" + key + "}\n}\n",
			check: "queue", state: stateFail, text: "PostgreSQL", code: 1,
		},
		"public_url": {
			config: "{\n" + admin + "notify {\npublic_url http://127.0.0.1:1\n" + key + "}\n}\n",
			check:  "public_url", state: stateWarn, text: "cannot be reached",
		},
		"unknown key": {
			config: "{\n" + admin + "notify {\n" + key + "}\n}\n", args: []string{"--send", "--key=opps"},
			check: "destinations", state: stateFail, text: "no key opps", code: 1,
		},
		"no clock": {config: "{\n" + admin + "notify {\n" + key + "}\n}\n", check: "clock", state: stateOK, text: "not compared"},
	} {
		t.Run(name, func(t *testing.T) {
			found, code := run(t, http.DefaultClient, tt.config, tt.args...)
			if !has(found, tt.check, tt.state, tt.text) || code != tt.code {
				t.Errorf("exit %d: %+v", code, found)
			}
		})
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) != 1 {
		t.Errorf("the doctor leaves files behind: %v", left)
	}
	if _, errs, code := commandtest.Run(t, Command(), "", "--key=ops"); code != 1 || !strings.Contains(errs, "--send") {
		t.Errorf("--key alone: exit %d %s", code, errs)
	}
}

// TestDoctorSend checks that each destination gets one test message, and that the doctor
// says which has taken it.
func TestDoctorSend(t *testing.T) {
	s := gatewaytest.NewStation(t)
	config := "{\nadmin 127.0.0.1:1\nnotify {\nkey ops {\nurl " + s.NotifyURL("/a") + "\nurl " +
		s.NotifyURL("/refuse") + "\n}\nkey dev {\nurl " + s.NotifyURL("/a") + " chat\nurl " +
		s.NotifyURL("/refuse/too?optional=yes") + "\n}\n}\n}\n"
	if run(t, http.DefaultClient, config); len(s.Take()) > 0 {
		t.Error("messages are sent without --send")
	}
	found, code := run(t, http.DefaultClient, config, "--send")
	if code != 1 ||
		!has(found, "destinations", stateOK, "dev, ops: JSON json://"+strings.TrimPrefix(s.URL, "http://")+"/a has taken") ||
		!has(found, "destinations", stateFail, "/refuse: the service answered 500") ||
		!has(found, "destinations", stateWarn, "/refuse/too") {
		t.Errorf("exit %d: %+v", code, found)
	}
	if got := s.Paths(); got != "a refuse refuse/too" {
		t.Errorf("messages at %s", got)
	}
	if _, code = run(t, http.DefaultClient, config, "--send", "--key=dev"); code != 0 || s.Paths() != "a refuse/too" {
		t.Errorf("--key: exit %d", code)
	}
}

// TestDoctorAddresses checks what doctor says of a site in which a mistyped address leads nowhere,
// and of the lines that docs/caddyfile.md gives, and that a running Caddy answers so.
func TestDoctorAddresses(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	defer app.Close()
	const notify = "notify {\nstateless off\nkey ops {\nurl json://127.0.0.1:1/\n}\n}\n"
	proxy := "reverse_proxy " + app.URL + "\n"
	for name, tt := range map[string]struct {
		site  string
		state state
		text  string
		want  map[string]int // status by path
	}{
		"nothing": {
			notify, stateWarn, "nobody answers a mistyped address such as /notfy/KEY",
			map[string]int{"/notfy/ops": 200, "/notify/ops/a.b": 200, "/app": 200},
		},
		"respond 404": {
			notify + "respond 404\n", stateOK, "",
			map[string]int{"/notfy/ops": 404, "/notify/ops/a.b": 404, "/app": 404, "/notify/none": 404},
		},
		"beside another handler": {
			notify + "respond /notify* 404\n" + proxy, stateOK, "",
			map[string]int{"/notfy/ops": 202, "/notify/ops/a.b": 404, "/Notify/ops": 404, "/app": 202},
		},
		"before another handler": {notify + "respond 404\n" + proxy, stateOK, "", map[string]int{"/notify/ops/a.b": 404, "/app": 404}},
		"respond OK":             {notify + "respond OK\n", stateWarn, "respond answers a mistyped address", map[string]int{"/notfy/ops": 200}},
	} {
		text := caddyhttptest.Server + " {\n" + tt.site + "}\n"
		if found, _ := run(t, http.DefaultClient, "{\nadmin 127.0.0.1:1\n}\n"+text); !has(found, "addresses", tt.state, tt.text) ||
			len(found["addresses"]) != 1 {
			t.Errorf("%s: %+v", name, found["addresses"])
		}
		caddyhttptest.StartCaddy(t, "", text)
		for path, want := range tt.want {
			if got := caddyhttptest.Do(t, http.MethodPost, caddyhttptest.Server+path, "x", "Content-Type", "text/plain"); got.Status != want {
				t.Errorf("%s: POST %s is %d, want %d", name, path, got.Status, want)
			}
		}
	}
}

// TestDoctorServer checks what a running server adds, and that only its own addresses are
// taken for it.
func TestDoctorServer(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), r.Header) // it repeats what it is asked
	}))
	defer other.Close()
	pager := gatewaytest.NewPager(t, http.StatusNotFound)
	key := "key ops {\nurl " + pager.NotifyURL() + "\n}\n"
	login := "@login not path /notify/incidents/*\nbasic_auth @login {\nann $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}\n"
	global := func(url string) string {
		return "admin " + caddyhttptest.Admin + "\nnotify {\nqueue\npublic_url " + url + "\n" + key + "}\n"
	}
	serve := func(options string) {
		caddyhttptest.StartCaddy(t, "notify {\nqueue\n"+key+"}\n",
			caddyhttptest.Server+" {\nhandle_path /prefix/* {\nnotify\n}\n"+options+"notify\n}\n")
	}
	doctor := func(url string) (map[string][]finding, int) {
		return run(t, http.DefaultClient, "{\n"+global(url)+"}\n"+caddyhttptest.Server+" {\nnotify {\nstateless off\n}\n}\n")
	}
	serve("")
	for url, want := range map[string]finding{
		caddyhttptest.Server:             {State: stateOK, Text: "leads to this gateway"},
		caddyhttptest.Server + "/prefix": {State: stateOK, Text: "leads to this gateway"},
		caddyhttptest.Server + "/wrong":  {State: stateFail, Text: "is not this gateway"},
		other.URL:                        {State: stateFail, Text: "is not this gateway"},
		"http://127.0.0.1:1":             {State: stateFail, Text: "cannot be reached"},
	} {
		found, code := doctor(url)
		if !has(found, "public_url", want.State, want.Text) || (code == 0) != (want.State == stateOK) {
			t.Errorf("%s: exit %d: %+v", url, code, found)
		}
	}
	found, _ := doctor(caddyhttptest.Server)
	if !has(found, "server", stateOK, "runs") || !has(found, "queue", stateOK, "can be written") || has(found, "queue", stateWarn, "") ||
		!has(found, "clock", stateOK, "agrees with the clock of "+caddyhttptest.Site) {
		t.Errorf("%+v", found)
	}
	caddyhttptest.Send(t.Context(), t, "/notify/ops", "body=x")
	gatewaytest.Eventually(t, func() bool {
		found, _ = doctor(caddyhttptest.Server)
		return has(found, "queue", stateWarn, "1 delivery was given up")
	})
	serve(login)
	if found, _ := doctor(caddyhttptest.Server); !has(found, "public_url", stateOK, "leads to this gateway") {
		t.Errorf("with a login: %+v", found)
	}
	serve(strings.Replace(login, "@login not path /notify/incidents/*\nbasic_auth @login", "basic_auth", 1))
	if found, _ := doctor(caddyhttptest.Server); !has(found, "public_url", stateWarn, "asks for a login") {
		t.Errorf("with a login before all: %+v", found)
	}
	caddyhttptest.StartCaddy(t, "", caddyhttptest.Server+" {\nrespond OK\n}\n")
	if found, code := doctor(caddyhttptest.Server); code != 1 || !has(found, "server", stateFail, "runs no gateway") {
		t.Errorf("without a gateway: exit %d: %+v", code, found)
	}
}

// TestDoctorClock checks that the clock is compared with the clock of a destination, and that the
// request to it has nothing of its URL but the host.
func TestDoctorClock(t *testing.T) {
	for name, tt := range map[string]struct {
		ahead time.Duration // of this machine
		state state
		text  string
	}{
		"right":  {0, stateOK, "agrees with the clock of 127.0.0.1"},
		"near":   {30 * time.Second, stateWarn, "s ahead of the clock of 127.0.0.1"},
		"ahead":  {time.Hour, stateFail, "ahead of the clock of 127.0.0.1"},
		"behind": {-time.Hour, stateFail, "behind the clock of 127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked++; r.Method != http.MethodHead || r.URL.RequestURI() != "/" || r.Header.Get("Authorization") != "" {
					t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
				}
				w.Header().Set("Date", time.Now().Add(-tt.ahead).UTC().Format(http.TimeFormat))
				w.WriteHeader(http.StatusNotFound)
			}))
			defer s.Close()
			url := "jsons://user:secretsecret@" + strings.TrimPrefix(s.URL, "https://") + "/secretsecret"
			found, _ := run(t, s.Client(), "{\nadmin 127.0.0.1:1\nnotify {\nkey ops {\nurl json://127.0.0.1:1/\nurl "+url+"\n}\n}\n}\n")
			if !has(found, "clock", tt.state, tt.text) || asked != 1 {
				t.Errorf("asked %d times: %+v", asked, found["clock"])
			}
		})
	}
}
