package notifier_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("hook.json", `{"content": "{{app_body}}"}`)
	write("wrong.json", `{"content": }`)
	write("empty.json", "")
	write("long.json", strings.Repeat(" ", 40000))
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	here := notifier.Files{Dir: dir}
	for _, c := range []struct {
		template string
		files    notifier.Files
		err      string
	}{
		{"hook.json", here, ""},
		{filepath.Join(dir, "hook.json"), notifier.Files{Dir: "/"}, ""},
		{"file://" + dir + "/hook.json?cache=no", here, ""},
		{"~/hook.json", notifier.Files{Dir: "/"}, ""},
		{"https://example.com/hook.json", notifier.Files{}, ""},
		{"hook.json", notifier.Files{}, "which only URLs in files there can"},
		{"file://" + dir + "/hook.json", notifier.Files{}, "which only URLs in files there can"},
		{"other.json", here, "no such file"},
		{"folder", here, "not a regular file"},
		{"empty.json", here, "it is empty"},
		{"long.json", here, "more than 35000 bytes"},
		{"wrong.json", here, "not JSON: there is a mistake in line 1"},
		{"other.json", notifier.Files{Dir: dir, Unread: true}, ""},
	} {
		_, err := notifier.ParseWithFiles("discord://1098765432109876543/AbCdEf-0123456789?template="+c.template, nil, c.files)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("template=%s with %+v: %v, want %q", c.template, c.files, err, c.err)
		}
		if err != nil && strings.Contains(err.Error(), dir) {
			t.Errorf("the error shows the path: %v", err)
		}
	}
	// Rules for a client's addresses do not let it name files.
	policy, err := egress.NewPolicy([]string{"all"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := notifier.Parse("discord://1098765432109876543/AbCdEf-0123456789?template="+filepath.Join(dir, "hook.json"),
		policy); err == nil {
		t.Error("a client's URL names a file")
	}
}

// TestChangedFile checks that a configuration that is loaded again gets the
// destination of the one before, unless a file that the URL names has changed.
func TestChangedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hook.json")
	sender := notifier.NewSender(egress.NewPool("test"), 0)
	defer sender.Close()
	parse := func(content string) *notifier.Destination {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := sender.ParseWithFiles("discord://1098765432109876543/AbCdEf-0123456789?template="+path, nil, notifier.Files{Dir: "."})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := parse(`{"content": "one"}`)
	if parse(`{"content": "one"}`) != first {
		t.Error("the same file is another destination")
	}
	if parse(`{"content": "two"}`) == first {
		t.Error("a changed file is not read again")
	}
}

func TestMayNameFiles(t *testing.T) {
	for url, want := range map[string]bool{
		"discord://a/b?template=x.json": true, "discord://a/b?:template=x": false, "sendgrid://a:b@c?template=id": false,
		"fcm://a/b?x=1;KEYFILE=x": true, "mailto://a@b?pgpkey=x": true,
		"{env.X}://a?template=x": true, "json://a/template=x": false, "{env.X}": false,
	} {
		if got := notifier.MayNameFiles(url); got != want {
			t.Errorf("%s: %v", url, got)
		}
	}
}
