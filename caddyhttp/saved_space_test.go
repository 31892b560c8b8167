package caddyhttp

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// TestSharedSpaces checks which sites may use the same space of saved keys. A
// mistake must be found by caddy validate.
func TestSharedSpaces(t *testing.T) {
	x := func(port, configs string) string { return ":" + port + " {\nnotify {\n" + configs + "\n}\n}\n" }
	const unnamed = "name no space, so two sites would share the saved keys of the default one; write configs <space> in both"
	for name, tt := range map[string]struct {
		options, sites string
		want           []string // parts of the error; none for no error
	}{
		"one site":                             {"", x("9481", "configs"), nil},
		"a site with addresses of two servers": {"", "http://:9481, http://a.example:9482, https://b.example {\nnotify {\nconfigs\n}\n}\n", nil},
		"a site without":                       {"", x("9481", "configs") + x("9482", ""), nil},
		"two sites": {
			"", x("9481", "configs") + x("9482", "configs {\nmanage\n}"),
			[]string{"configs at Caddyfile:11 and configs at Caddyfile:16 " + unnamed},
		},
		"two sites of one server": {"", "a.example {\nnotify {\nconfigs\n}\n}\nb.example {\nnotify {\nconfigs\n}\n}\n", []string{unnamed}},
		"two blocks of one site": {
			"",
			":9481 {\nhandle_path /a/* {\nnotify {\nconfigs\n}\n}\nhandle_path /b/* {\nnotify {\nconfigs\n}\n}\n}\n",
			[]string{unnamed},
		},
		"two spaces":       {"", x("9481", "configs a") + x("9482", "configs b"), nil},
		"a space and none": {"", x("9481", "configs") + x("9482", "configs b"), nil},
		"a shared space":   {"", x("9481", "configs a") + x("9482", "configs a {\nmanage open\nmax_keys 5\n}"), nil},
		"different trust": {
			"", x("9481", "configs a {\ntrust operator\n}") + x("9482", "configs a"),
			[]string{"configs: trust differs from that of configs at Caddyfile:", "space a"},
		},
		"different include": {"", x("9481", "configs a {\ninclude on\n}") + x("9482", "configs a"), []string{"configs: include differs"}},
		"different secrets": {
			"", x("9481", "configs a {\nsecret 0123456789secretsecret\n}") + x("9482", "configs a {\nsecret secretsecret0123456789\n}"),
			[]string{"configs: secret differs"},
		},
		"the same secret": {
			"",
			x("9481", "configs a {\nsecret 0123456789secretsecret\n}") + x("9482", "configs a {\nsecret 0123456789secretsecret\n}"),
			nil,
		},
		"the global option": {"configs", x("9481", "") + x("9482", ""), nil},
		"the global option, a site": {
			"configs", x("9481", "") + x("9482", "configs"), []string{"configs at Caddyfile:6 and", unnamed},
		},
		"the global option, only a site of its own": {"configs", x("9481", "configs"), []string{unnamed}},
		"the global option, a space":                {"configs", x("9481", "") + x("9482", "configs a"), nil},
		"the global option with a space":            {"configs a", x("9481", "") + x("9482", "configs") + x("9483", "configs a"), nil},
		"mail":                                      {"configs\nsmtp 127.0.0.1:2525", x("9481", "") + x("9482", ""), nil},
		"an imported snippet": {
			"", "(saved) {\nnotify {\nconfigs\n}\n}\n:9481 {\nimport saved\n}\n:9482 {\nimport saved\n}\n",
			[]string{
				"configs at Caddyfile:11, through Caddyfile:15 (import saved) and configs " +
					"at Caddyfile:11, through Caddyfile:18 (import saved) " + unnamed,
			},
		},
		"an imported setting": {"", "(saved) {\nconfigs\n}\n" + x("9481", "import saved") + x("9482", "import saved"), []string{unnamed}},
		// Caddy's positions of the two blocks do not differ.
		"a snippet in a snippet": {
			"",
			"(saved) {\nnotify {\nconfigs\n}\n}\n(all) {\nimport saved\n}\n:9481 {\nimport all\n}\n:9482 {\nimport all\n}\n",
			[]string{unnamed},
		},
		"a snippet with a space": {
			"",
			"(saved) {\nnotify {\nconfigs {args[0]}\n}\n}\n:9481 {\nimport saved a\n}\n:9482 {\nimport saved b\n}\n",
			nil,
		},
		"a named route": {"", "&(saved) {\nnotify {\nconfigs\n}\n}\n:9481 {\ninvoke saved\n}\n:9482 {\ninvoke saved\n}\n", nil},
		"a named route and a site with the same snippet": {
			"",
			"(saved) {\nnotify {\nconfigs\n}\n}\n&(shared) {\nimport saved\n}\n:9481 {\ninvoke shared\n}\n:9482 {\nimport saved\n}\n",
			[]string{unnamed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			provisioning.Lock()
			defer provisioning.Unlock()
			// The storage keeps the test out of Caddy's folder.
			err := caddy.Validate(adapted(t, "{\nadmin off\nauto_https off\nstorage file_system \""+
				t.TempDir()+"\"\nnotify {\n"+tt.options+"\n}\n}\n"+tt.sites))
			if len(tt.want) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secretsecret") {
					t.Errorf("error %v, want %q", err, want)
				}
			}
		})
	}
}

// TestSpacesOfJSON checks that handlers in JSON are sites of their own.
func TestSpacesOfJSON(t *testing.T) {
	handler := func(configs string) string {
		return `{"routes":[{"handle":[{"handler":"notify","configs":` + configs + `}]}]}`
	}
	for _, tt := range []struct{ first, second, want string }{
		{`{}`, `{}`, "this configs and configs of another site name no space"},
		{`{"space":"a"}`, `{}`, ""},
		{`{"space":"a"}`, `{"space":"a"}`, ""},
		{`{"space":"a","trust":"operator"}`, `{"space":"a"}`, "trust differs from that of configs of another site"},
		{`{"space":"A"}`, `{}`, "a space has a name of 1 to 64 lower-case letters"},
		{`{"space":"../certificates"}`, `{}`, "a space has a name of 1 to 64 lower-case letters"},
		{`{"space":"default"}`, `{}`, "no space can have the name default"},
		{`{"manage":"user","manage_users":["ann"]}`, `{"space":"a"}`, ""},
		{`{"manage":"open","manage_users":["ann"]}`, `{"space":"a"}`, "manage_users needs manage user"},
		{`{"manage_users":["ann"]}`, `{"space":"a"}`, "manage_users needs manage user"},
		{`{"manage":"user","manage_users":["{env.USER}"]}`, `{"space":"a"}`, "must not be empty or have placeholders"},
	} {
		var c caddy.Config
		text := `{"admin":{"disabled":true},"apps":{"http":{"servers":{"a":` + handler(tt.first) + `,"b":` + handler(tt.second) + `}}}}`
		if err := caddy.StrictUnmarshalJSON([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		provisioning.Lock()
		err := caddy.Validate(&c)
		provisioning.Unlock()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s and %s: error %v, want %q", tt.first, tt.second, err, tt.want)
		}
	}
}
